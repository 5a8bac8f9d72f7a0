// The pieces that the fast paths share (ipc.S, vector.S, foreign.S), each written once.
// The running thread's tcb is in RDI, the receiver's offset in RBP.

// RBP: where thread RSI's tcb is in the array, from its number (5.3.1).
.macro find_receiver
    mov     rbp, rsi
    shr     rbp, {NUMBER_AT} - {BLOCK_BITS}
    and     ebp, {TCB_MASK}
.endm

// RCX: what its rendezvous word says for RSI (rendezvous.rs): zero, current and in open wait; a thread's
// id, in closed wait for that one.
.macro ask_receiver
    mov     rcx, rsi
    xor     rcx, [rbp + {TCB_FIRST} + {RENDEZVOUS}]
.endm

// The receiver, which was in open wait, is ready.
.macro wake_open
    xor     dword ptr [rbp + {TCB_FIRST} + {RENDEZVOUS} + {STATE}], {READY}
.endm

// The receiver, whose id is RSI, is ready, whatever it waited for; RSI is lost.
.macro wake_any
    btc     rsi, {READY_BIT}
    mov     [rbp + {TCB_FIRST} + {RENDEZVOUS}], rsi
.endm

// RCX: the receiver's address space; on to `same` if we are in it.
.macro unless_same_space same
    mov     rcx, [rbp + {TCB_FIRST} + {CR3}]
    cmp     rcx, [rdi + {CR3}]
    je      \same
.endm

// Direct switch (5.3.5): stack and current thread in one store, ready queue untouched (5.3.4).
.macro run_receiver
    lea     rbp, [rbp + {TCB_FIRST}]
    mov     [rip + {CPU} + {CURRENT}], rbp
.endm

// To user mode as the thread RBP; RSI has the sender, message registers are in place.
.macro return_to_user
    mov     rdi, [rbp + {UTCB}]
    lea     rcx, [rdi + {SELF}]
    wrgsbase rcx
    mov     rsp, [rbp + {SP}]
    mov     r11, [rbp + {FLAGS}]
    mov     rcx, [rbp + {IP}]
leave_kernel {VERW}, baton_sysret_emptied, sysretq
.endm
