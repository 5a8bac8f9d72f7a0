// Kernel IPC between armed threads of one space that use vector registers (armed.rs; decision 0074).
// Whatever is in these registers is their space's, who hands over has declared it dead, and who
// waits expects nothing of it: so it stays, and only the control words change, which are each thread's
// own here. `beside_rendezvous` says whom such a thread waits for, as the ordinary word does.
// All other receivers: the complete path.

.section .fastpath, "ax"

// The control words of the sender RDI to its area, those of the receiver to the processor. What is pending
// in the x87 unit must not meet the receiver's mask in the kernel. RCX is lost.
.macro change_control_words
    mov     rcx, [rdi + {VECTOR_INITIAL}]       // RDI's `vector_from`, since it runs
    fnstcw  [rcx]
    stmxcsr [rcx + {MXCSR}]
    mov     rcx, [rbp + {TCB_FIRST} + {VECTOR_INITIAL}]
    fnclex
    fldcw   [rcx]
    ldmxcsr [rcx + {MXCSR}]
.endm

// The running thread RDI waits: closed if RDX is RSI (a call), else open. RCX is lost.
.macro wait_beside
    mov     rcx, [rdi + {ID}]
    cmp     rdx, rsi
    jne     81f
    xor     rcx, rsi
81: mov     [rdi + {BESIDE_RENDEZVOUS}], rcx
.endm

// From armed.S: an IPC with simple timeouts, the limits closed. RDI is the pad's tcb.
.balign 64
.global baton_beside_ipc
baton_beside_ipc:
    cmp     r9w, [rip + {CPU} + {BESIDE}]       // such a thread; at most 7 untyped words, no items, no flags
    jae     baton_ipc_complete
    mov     rdi, [rip + {PAD} + {PAD_THREAD}]
    mov     [rdi + {SP}], rsp
    mov     [rdi + {IP}], rcx
    mov     [rdi + {FLAGS}], r11
    mov     rcx, [rdi + {UTCB}]
    inc     rcx                                 // RDI was U and bit 0: registers are dead, and nobody has
    cmp     rcx, [rip + {CPU} + {USER_RDI}]     // taken its place in user mode; who lies there could
    jne     .Larmed_complete                    // write it to the current word as well
    mov     r11, [rip + {PAD} + {PAD_WORD}]
    find_receiver
    cmp     rdx, rsi
    jne     .Lbeside_reply
    xor     rsi, [rbp + {TCB_FIRST} + {BESIDE_RENDEZVOUS}]
    jnz     .Lbeside_call_otherwise
    mov     rcx, [rbp + {TCB_FIRST} + {CR3}]
    cmp     rcx, [rdi + {CR3}]
    jne     .Lbeside_call_otherwise
    // POINT OF NO RETURN: call to a receiver in open wait
    mov     rcx, [rdi + {ID}]
    xor     rcx, rdx
    mov     [rdi + {BESIDE_RENDEZVOUS}], rcx    // we: closed wait for it
    xor     dword ptr [rbp + {TCB_FIRST} + {BESIDE_RENDEZVOUS} + {STATE}], {READY}
    mov     rsi, [rdi + {UTCB}]
    change_control_words
    run_beside

.balign 16
.Lbeside_reply:
    cmp     rdx, [rdi + {OPEN_FROM}]            // reply & wait, nobody waits to send to us
    jne     .Larmed_complete
    xor     rsi, [rbp + {TCB_FIRST} + {BESIDE_RENDEZVOUS}]
    cmp     rsi, [rdi + {ID}]
    jne     .Lbeside_reply_otherwise
    mov     rcx, [rbp + {TCB_FIRST} + {CR3}]
    cmp     rcx, [rdi + {CR3}]
    jne     .Lbeside_reply_otherwise
    // POINT OF NO RETURN: reply & wait, to a receiver in closed wait for us
    mov     [rdi + {BESIDE_RENDEZVOUS}], rsi    // we: open wait (RSI is our id)
    btc     rsi, {READY_BIT}
    xor     [rbp + {TCB_FIRST} + {BESIDE_RENDEZVOUS}], rsi
.Lbeside_switch:
    mov     rsi, [rdi + {UTCB}]
    change_control_words
    run_beside

// The receiver may wait in public, in closed wait for us who call it, or in open wait for us who
// answer: as those of a chain do.
.Lbeside_call_otherwise:
    mov     rsi, rdx
    jmp     .Lbeside_otherwise
.Lbeside_reply_otherwise:
    xor     rsi, [rbp + {TCB_FIRST} + {BESIDE_RENDEZVOUS}]
.Lbeside_otherwise:
    mov     rcx, [rbp + {TCB_FIRST} + {CR3}]
    cmp     rcx, [rdi + {CR3}]
    jne     .Larmed_complete
    mov     rcx, rsi
    xor     rcx, [rbp + {TCB_FIRST} + {BESIDE_RENDEZVOUS}]
    jz      .Lbeside_waits
    cmp     rcx, [rdi + {ID}]
    je      .Lbeside_waits
    ask_receiver
    ror     rcx, {OTHER_HALF}
    cmp     rcx, {PUBLISHED}
    jne     .Larmed_complete
    mov     rcx, [rbp + {TCB_FIRST} + {VECTOR_FROM}]
    cmp     rcx, [rbp + {TCB_FIRST} + {VECTOR_INITIAL}]
    jne     .Larmed_complete                    // all its registers are kept, its control words among them
    ask_published .Lbeside_to_public, .Larmed_complete, {ARMED_VECTOR}
.Lbeside_waits:
    // POINT OF NO RETURN
    wait_beside
    btc     rsi, {READY_BIT}
    mov     [rbp + {TCB_FIRST} + {BESIDE_RENDEZVOUS}], rsi
    jmp     .Lbeside_switch
.Lbeside_to_public:
    // POINT OF NO RETURN
    wait_beside
    wake_published
    jmp     .Lbeside_switch
