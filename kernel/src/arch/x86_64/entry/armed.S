// Kernel IPC of and to threads that exchange messages in user mode (armed.rs; decision 0062):
// what cannot go there, for its receiver has another name for the sender, or lives elsewhere, or waits
// at an instruction that is none of the stubs'. The limits of ipc.S are closed while such
// a thread runs, and its rendezvous word is a busy one while it waits, so that ordinary IPC
// knows nothing of this. A second word like the ordinary one, `armed_rendezvous`, says whom it waits
// for. While it runs the current tcb is the pad, its own is what the pad names.
//
// None of the two uses vector registers; for those that do there is beside.S.

.section .fastpath, "ax"

// The running thread RDI, whose id is R11, waits: closed if RDX is RSI (a call), else open.
.macro wait_as_armed
    mov     rcx, r11
    cmp     rdx, rsi
    jne     73f
    xor     rcx, rsi
73: mov     [rdi + {ARMED_RENDEZVOUS}], rcx
.endm

// The same for an ordinary thread; leaves for the complete path if it is neither.
.macro wait_as_plain
    mov     rcx, r11
    cmp     rdx, rsi
    jne     71f
    xor     rcx, rsi
    jmp     72f
71: cmp     rdx, [rdi + {OPEN_FROM}]
    jne     baton_ipc_complete
72: // POINT OF NO RETURN
    mov     [rdi + {RENDEZVOUS}], rcx
.endm

// On to `yes` if the receiver waits in public and for the sender RDI, else to `no`; and if there is
// nothing special about it but `special`.
.macro ask_published yes, no, special
    cmp     byte ptr [rbp + {TCB_FIRST} + {SPECIAL}], \special
    jne     \no
    mov     rcx, [rbp + {TCB_FIRST} + {UTCB_K}]
    mov     rcx, [rcx + {LIPC_WAIT}]            // once: the program may change it
    cmp     rcx, {LIPC_OPEN}
    je      \yes
    cmp     rcx, {LIPC_OPEN_LOCAL}
    je      74f
    cmp     rcx, [rdi + {UTCB}]
    jne     \no
74: mov     rcx, [rbp + {TCB_FIRST} + {CR3}]
    cmp     rcx, [rdi + {CR3}]
    je      \yes
    jmp     \no
.endm

// The receiver, which waits in public, is ready. RCX is lost.
.macro wake_published
    xor     dword ptr [rbp + {TCB_FIRST} + {RENDEZVOUS} + {STATE}], {PUBLISHED} ^ {ARMED}
    mov     rcx, [rbp + {TCB_FIRST} + {SPACE}]
    dec     qword ptr [rcx + {PUBLISHED_COUNT}]
    mov     rcx, [rbp + {TCB_FIRST} + {UTCB_K}]
    mov     qword ptr [rcx + {LIPC_WAIT}], {LIPC_RUNS}
    mov     rcx, [rcx + {LIPC_SP}]
    mov     [rbp + {TCB_FIRST} + {SP}], rcx
    mov     qword ptr [rbp + {TCB_FIRST} + {PARTNER}], {NOBODY} // whom it waits for next stands elsewhere
.endm

// The receiver, armed and of the same space, runs: the pad stays, and the current word, in R11, and GS
// base with the space.
.macro run_beside
    lea     rbp, [rbp + {TCB_FIRST}]
    mov     [rip + {PAD} + {PAD_THREAD}], rbp
    mov     rdi, [rbp + {UTCB}]
    mov     [r11], rdi
    mov     rsp, [rbp + {SP}]
    mov     r11, [rbp + {FLAGS}]
    mov     rcx, [rbp + {IP}]
leave_kernel {VERW}, baton_sysret_emptied, sysretq
.endm

// From vector.S, the limits closed and no vector registers: an IPC with simple timeouts.
.balign 64
.global baton_armed_ipc
baton_armed_ipc:
    cmp     r9w, [rip + {CPU} + {GATE} + {SECOND}]     // an armed thread; at most 7 untyped words, no items, no flags
    jae     baton_beside_ipc
    mov     rdi, [rip + {PAD} + {PAD_THREAD}]
    mov     [rdi + {SP}], rsp
    mov     [rdi + {IP}], rcx
    mov     [rdi + {FLAGS}], r11
    mov     r11, [rip + {PAD} + {PAD_WORD}]
    mov     rcx, [rdi + {UTCB}]
    cmp     [r11], rcx                          // nobody has taken its place in user mode
    jne     .Larmed_complete
    find_receiver
    cmp     rdx, rsi
    jne     .Larmed_reply
    xor     rsi, [rbp + {TCB_FIRST} + {ARMED_RENDEZVOUS}]
    jnz     .Larmed_call_otherwise
    mov     rcx, [rbp + {TCB_FIRST} + {CR3}]
    cmp     rcx, [rdi + {CR3}]
    jne     .Larmed_call_otherwise
    // POINT OF NO RETURN: call to a receiver in open wait, of the same space
    mov     rcx, [rdi + {ID}]
    xor     rcx, rdx
    mov     [rdi + {ARMED_RENDEZVOUS}], rcx     // we: closed wait for it
    xor     dword ptr [rbp + {TCB_FIRST} + {ARMED_RENDEZVOUS} + {STATE}], {READY}
    mov     rsi, [rdi + {UTCB}]
    run_beside

.balign 16
.Larmed_reply:
    cmp     rdx, [rdi + {OPEN_FROM}]            // reply & wait, nobody waits to send to us
    jne     .Larmed_complete
    xor     rsi, [rbp + {TCB_FIRST} + {ARMED_RENDEZVOUS}]
    cmp     rsi, [rdi + {ID}]
    jne     .Larmed_reply_otherwise
    mov     rcx, [rbp + {TCB_FIRST} + {CR3}]
    cmp     rcx, [rdi + {CR3}]
    jne     .Larmed_reply_otherwise
    // POINT OF NO RETURN: reply & wait, to a receiver of the same space in closed wait for us
    mov     [rdi + {ARMED_RENDEZVOUS}], rsi     // we: open wait (RSI is our id)
    btc     rsi, {READY_BIT}
    xor     [rbp + {TCB_FIRST} + {ARMED_RENDEZVOUS}], rsi
    mov     rsi, [rdi + {UTCB}]
    run_beside

.Larmed_call_otherwise:
    mov     rsi, rdx
    jmp     .Larmed_otherwise
.Larmed_reply_otherwise:
    xor     rsi, [rbp + {TCB_FIRST} + {ARMED_RENDEZVOUS}]
.Larmed_otherwise:
    mov     r11, [rdi + {ID}]
    mov     rcx, rsi
    xor     rcx, [rbp + {TCB_FIRST} + {ARMED_RENDEZVOUS}]
    jz      .Larmed_to_armed
    cmp     rcx, r11
    je      .Larmed_to_armed
    ask_receiver
    jz      .Larmed_to_plain
    cmp     rcx, r11
    je      .Larmed_to_plain
    ror     rcx, {OTHER_HALF}
    cmp     rcx, {PUBLISHED}
    jne     .Larmed_complete
    ask_published .Larmed_to_published, .Larmed_complete, {ARMED_ONLY}

// Back to where the complete path begins, with the sender as it was.
.Larmed_complete:
    lea     rdi, [rip + {PAD} + {PAD_TCB}]
    mov     rcx, [rdi + {IP}]
    mov     r11, [rdi + {FLAGS}]
    jmp     baton_foreign_call

.Larmed_to_armed:
    // POINT OF NO RETURN
    wait_as_armed
.Lwake_armed:
    btc     rsi, {READY_BIT}
    mov     [rbp + {TCB_FIRST} + {ARMED_RENDEZVOUS}], rsi
.Lname_for_armed:
    mov     rsi, r11
    unless_same_space 75f
    mov     cr3, rcx
76: lea     rbp, [rbp + {TCB_FIRST}]
    mov     [rip + {PAD} + {PAD_THREAD}], rbp
    lea     rcx, [rip + {PAD} + {PAD_TCB}]
    mov     [rip + {CPU} + {CURRENT}], rcx
    mov     dword ptr [rip + {CPU} + {LIMIT}], {CLOSED}
    mov     dword ptr [rip + {CPU} + {GATE}], {GATE_ARMED}
    mov     rcx, [rbp + {SPACE}]
    mov     r11, [rcx + {WORD_USER}]
    wrgsbase r11
    mov     r11, [rcx + {WORD_KERNEL}]
    mov     [rip + {PAD} + {PAD_WORD}], r11
    mov     rdi, [rbp + {UTCB}]
    mov     [r11], rdi
    mov     rsp, [rbp + {SP}]
    mov     r11, [rbp + {FLAGS}]
    mov     rcx, [rbp + {IP}]
leave_kernel {VERW}, baton_sysret_emptied, sysretq
75: mov     rsi, [rdi + {UTCB}]
    jmp     76b

.Larmed_to_published:
    // POINT OF NO RETURN
    wait_as_armed
.Lwake_published:
    wake_published
    jmp     .Lname_for_armed

.Larmed_to_plain:
    // POINT OF NO RETURN
    wait_as_armed
    wake_any
    mov     rsi, r11
    unless_same_space 77f
    mov     cr3, rcx
78: run_receiver
    mov     qword ptr [rip + {CPU} + {LIMIT}], {LIMITS_OPEN} // and the gate closed
    return_to_user
77: mov     rsi, [rdi + {UTCB}]
    jmp     78b

// From vector.S, limits open: the sender RDI, whose id is R11, is an ordinary thread; RCX is the code
// in the receiver's rendezvous word.
.balign 16
.global baton_to_armed
baton_to_armed:
    cmp     ecx, {PUBLISHED}
    je      .Lto_published
    cmp     ecx, {ARMED}
    jne     baton_ipc_complete
    mov     rcx, rsi
    xor     rcx, [rbp + {TCB_FIRST} + {ARMED_RENDEZVOUS}]
    jz      .Lto_armed
    cmp     rcx, r11
    jne     baton_ipc_complete
.Lto_armed:
    wait_as_plain
    jmp     .Lwake_armed
.Lto_published:
    ask_published .Lto_public, baton_ipc_complete, {ARMED_ONLY}
.Lto_public:
    wait_as_plain
    jmp     .Lwake_published
