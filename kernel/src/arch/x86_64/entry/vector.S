// The fast path for threads that use vector registers, as senders or receivers
// (docs/decisions/0019-vector-registers.md). The limits of ipc.S are closed while such a
// thread runs, and its rendezvous word is a busy one while it waits, so that ordinary
// IPC knows nothing of all this.
//
// On entry from ipc.S the user state is in the tcb, R8 holds simple timeouts, and RBP,
// RCX, R11, RSP are free; RDX and R8 are once the checks are done. XRSTOR and XSAVEOPT
// take their component mask from EAX (EDX selects components that are never on), so
// MR1 spends that time in R8.

.section .fastpath, "ax"

// Begins the wait of the running thread RDI, which uses vector registers: closed if RDX
// is RSI (a call), else open. Leaves for the complete path if it is neither. As it is
// written here the thread has declared its registers dead; KEEP corrects that.
.macro WAIT_AS_VECTOR_USER
    cmp     rdx, rsi
    jne     61f
    // POINT OF NO RETURN: call
    mov     [rdi + {PARTNER}], rdx
    xor     dword ptr [rdi + {RENDEZVOUS} + {STATE}], {READY} ^ {DEAD_CLOSED}
    jmp     62f
61: cmp     rdx, [rdi + {OPEN_FROM}]
    jne     baton_ipc_complete
    // POINT OF NO RETURN: send & open wait
    xor     dword ptr [rdi + {RENDEZVOUS} + {STATE}], {READY} ^ {DEAD_OPEN}
62:
.endm

// Sees to the registers of the sender RDI: keeps its control words if it has declared the
// rest dead (bit 0 of RDI), else everything. Takes RAX, which goes to R8, and RCX.
.macro LEAVE_REGISTERS
    mov     r8, rax
    test    byte ptr [rip + {CPU} + {USER_RDI}], {DEAD}
    jz      63f
    mov     rcx, [rdi + {VECTOR_INITIAL}]
    fnstcw  [rcx]
    stmxcsr [rcx + {MXCSR}]
64: mov     [rdi + {VECTOR_FROM}], rcx
.endm

// The other way of LEAVE_REGISTERS.
.macro KEEP_REGISTERS
63: mov     rcx, [rdi + {VECTOR_AREA}]
    mov     eax, {ALL_COMPONENTS}
    xsaveopt64 [rcx]
    xor     dword ptr [rdi + {RENDEZVOUS} + {STATE}], {DEAD_OPEN} ^ {KEPT_OPEN}
    jmp     64b
.endm

// The receiver RBP, whose id is RSI, is ready; RSI becomes the name of the sender RDI for it.
.macro WAKE
    wake_any
    mov     rsi, [rdi + {ID}]
    unless_same_space 65f
    mov     cr3, rcx
66: run_receiver
.endm

// The other way of WAKE: inside one space it is the local id.
.macro LOCAL_NAME
65: mov     rsi, [rdi + {UTCB}]
    jmp     66b
.endm

// To the user, the tcb in RBP, MR1 in R8.
.macro RETURN
    mov     rax, r8
    return_to_user
.endm

// Registers with only the control words of the thread in RBP.
.macro LOAD_INITIAL
    mov     rcx, [rbp + {VECTOR_INITIAL}]
    mov     eax, {ALL_COMPONENTS}
    xrstor64 [rcx]
    fldcw   [rcx]
.endm

// The registers that the thread in RBP had.
.macro LOAD_KEPT
    mov     rcx, [rbp + {VECTOR_AREA}]
    mov     eax, {ALL_COMPONENTS}
patch_site {X87_SURVIVES_LOAD}, fninit
    xrstor64 [rcx]
.endm

// From the fast path: an IPC with simple timeouts, while the limits are closed.
.balign 64
.global baton_ipc_closed
baton_ipc_closed:
    cmp     qword ptr [rip + {CPU} + {GATE}], {CLOSED} // and what is behind it
    je      baton_ipc_string
    cmp     r9w, [rip + {CPU} + {GATE}]         // at most 7 untyped words, no items, no flags
    jae     baton_armed_ipc
    find_receiver
    ask_receiver
    ror     rcx, {OTHER_HALF}
    cmp     rcx, {DEAD_CLOSED}
    jne     .Lvector_not_dead_closed
    mov     rcx, [rdi + {ID}]
    cmp     rcx, [rbp + {TCB_FIRST} + {PARTNER}]
    jne     baton_ipc_complete
.Lvector_dead:
    WAIT_AS_VECTOR_USER
    LEAVE_REGISTERS
    WAKE
    LOAD_INITIAL
    RETURN
    KEEP_REGISTERS
    LOCAL_NAME

.Lvector_not_dead_closed:
    cmp     rcx, {DEAD_OPEN}
    je      .Lvector_dead
    cmp     rcx, {KEPT_OPEN}
    je      .Lvector_kept
    cmp     rcx, {KEPT_CLOSED}
    jne     .Lvector_to_other
    mov     rcx, [rdi + {ID}]
    cmp     rcx, [rbp + {TCB_FIRST} + {PARTNER}]
    jne     baton_ipc_complete
.Lvector_kept:
    WAIT_AS_VECTOR_USER
    LEAVE_REGISTERS
    WAKE
    LOAD_KEPT
    RETURN
    KEEP_REGISTERS
    LOCAL_NAME

// A receiver that uses no vector registers, or one for the complete path.
.Lvector_to_other:
    test    rcx, rcx
    jz      .Lvector_to_plain
    ror     rcx, {OTHER_HALF}
    cmp     rcx, [rdi + {ID}]
    jne     baton_ipc_complete
.Lvector_to_plain:
    WAIT_AS_VECTOR_USER
    LEAVE_REGISTERS
    WAKE
    mov     eax, {ALL_COMPONENTS}
    xrstor64 [rip + {INITIAL}]
    mov     qword ptr [rip + {CPU} + {LIMIT}], {LIMITS_OPEN} // and the gate closed
    RETURN
    KEEP_REGISTERS
    LOCAL_NAME

// From the fast path, limits open: RCX the receiver's rendezvous word ^ RSI, halves
// exchanged; the sender uses no vector registers, the receiver may.
.balign 64
.global baton_to_vector_user
baton_to_vector_user:
    lea     r11, [rcx - {DEAD_OPEN}]            // the codes are neighbours
    cmp     r11, {ARMED} - {DEAD_OPEN}
    ja      baton_ipc_complete
    mov     r11, [rdi + {ID}]
    test    cl, {DEAD_OPEN} ^ {DEAD_CLOSED}
    jz      .Lto_vector_waits
    cmp     r11, [rbp + {TCB_FIRST} + {PARTNER}]
    jne     baton_to_armed                      // nobody is the partner of an armed thread that waits
.Lto_vector_waits:
    cmp     rdx, rsi
    jne     .Lto_vector_then_open
    // POINT OF NO RETURN: call
    xor     rdx, r11
    mov     [rdi + {RENDEZVOUS}], rdx           // we: closed wait for it
    jmp     .Lto_vector_wake
.Lto_vector_then_open:
    cmp     rdx, [rdi + {OPEN_FROM}]
    jne     baton_ipc_complete
    // POINT OF NO RETURN: send & open wait
    mov     [rdi + {RENDEZVOUS}], r11
.Lto_vector_wake:
    mov     edx, ecx
    mov     r8, rax
    WAKE
    mov     dword ptr [rip + {CPU} + {LIMIT}], {CLOSED}
    mov     dword ptr [rip + {CPU} + {GATE}], {GATE_VECTOR}
    test    dl, {DEAD_OPEN} ^ {KEPT_OPEN}
    jnz     .Lto_vector_kept
    LOAD_INITIAL
    RETURN
.Lto_vector_kept:
    LOAD_KEPT
    RETURN
    LOCAL_NAME
