// The IPC fast path (design 3; Liedtke 1993, 5.3-5.5): a register message to a
// receiver that waits for it, nothing special about either thread.
//
// In:  RSI to, RDX from-specifier, R8 timeouts or -call number, RDI U, R9 tag,
//      RAX RBX R10 R12..R15 MR1..MR7; RCX user ip, R11 user flags, RSP user stack.
// Out: RSI sender, RDI U, message registers unchanged. RDX, R8, RBP, RCX, R11 are the
//      sender's or the kernel's leavings (addresses that follow from thread ids).
//
// The user state goes to the current tcb at once: those fields are dead while a
// thread runs, the complete path needs them there anyway, and it frees RSP, RCX
// and R11. RBP, RDI, RCX, R11 and RSP are the scratch registers. Everything up to
// a POINT OF NO RETURN only checks; from there on there are only stores.
// The sender costs no check of its own: while something about it is special
// (vector state in the registers, foreign), no number of words is below the limits.
// Nothing but RDI is lost when it leaves the fast path for that reason. A receiver
// that uses vector registers, or is foreign, waits with a busy word: vector.S, foreign.S.
// Each instruction is accounted for in docs/fast-path.md.

.section .fastpath, "ax"
.balign 64
.global baton_ipc_entry
baton_ipc_entry:
    mov     [rip + {CPU} + {USER_RDI}], rdi     // only a foreign thread has something there
    mov     rdi, [rip + {CPU} + {CURRENT}]      // the current tcb
    mov     [rdi + {SP}], rsp
    mov     [rdi + {IP}], rcx
    mov     [rdi + {FLAGS}], r11
divert {IBPB} | {LACKS_FAST}, baton_ipc_complete
    test    r8, -0x7fff0001                     // receive timeout never, a period as send timeout, an IPC at all
    jnz     baton_ipc_complete
    cmp     r9w, [rip + {CPU} + {LIMIT}]        // at most 7 untyped words, no items, no flags; usual sender
    jae     20f
    mov     rbp, rsi                            // the receiver's tcb from its thread number (5.3.1)
    shr     rbp, 32 - {BLOCK_BITS}
    and     ebp, {TCB_MASK}
    mov     rcx, rsi                            // id current, waiting, for us or anybody: see rendezvous.rs
    xor     rcx, [rbp + {TCB_FIRST} + {RENDEZVOUS}]
    jne     10f
    cmp     rdx, rsi                            // open wait: a call?
    jne     5f
    // POINT OF NO RETURN: call to a receiver in open wait
    mov     r11, [rdi + {ID}]
    xor     rsi, r11
    mov     [rdi + {RENDEZVOUS}], rsi           // we: closed wait for it
    xor     dword ptr [rbp + {TCB_FIRST} + {RENDEZVOUS} + 4], {READY} // it: ready
    mov     rsi, r11                            // it sees our global id
.global baton_ipc_switch
baton_ipc_switch:
2:  mov     rcx, [rbp + {TCB_FIRST} + {CR3}]
    cmp     rcx, [rdi + {CR3}]
    je      8f
    mov     cr3, rcx
3:  lea     rbp, [rbp + {TCB_FIRST}]            // direct switch (5.3.5): stack, current thread,
    mov     [rip + {CPU} + {CURRENT}], rbp      // ready queue untouched (5.3.4)
    mov     rdi, [rbp + {UTCB}]
    lea     rcx, [rdi + {SELF}]
    wrgsbase rcx
    mov     rsp, [rbp + {SP}]
    mov     r11, [rbp + {FLAGS}]
    mov     rcx, [rbp + {IP}]
leave_kernel {VERW}, baton_sysret_emptied, sysretq

5:  cmp     rdx, [rdi + {OPEN_FROM}]            // reply to a receiver in open wait; nobody waits to send to us
    jne     baton_ipc_complete
    // POINT OF NO RETURN: send & open wait, to a receiver in open wait
    mov     r11, [rdi + {ID}]
    mov     [rdi + {RENDEZVOUS}], r11           // we: open wait
    xor     dword ptr [rbp + {TCB_FIRST} + {RENDEZVOUS} + 4], {READY}
    mov     rsi, r11
    jmp     2b

8:  mov     rsi, [rdi + {UTCB}]                 // same space: it sees our local id
    jmp     3b

.balign 16
10: cmp     rcx, [rdi + {ID}]                   // closed wait: for us?
    jne     baton_foreign_reply
    cmp     rdx, [rdi + {OPEN_FROM}]            // reply & wait with nobody waiting to send to us
    jne     15f
    // POINT OF NO RETURN: reply & wait
    mov     [rdi + {RENDEZVOUS}], rcx           // we: open wait (RCX is our id)
    btc     rsi, 32
    mov     [rbp + {TCB_FIRST} + {RENDEZVOUS}], rsi // it: ready
    mov     rsi, rcx
    mov     rcx, [rbp + {TCB_FIRST} + {CR3}]
    cmp     rcx, [rdi + {CR3}]
    je      8b
    mov     cr3, rcx
    lea     rbp, [rbp + {TCB_FIRST}]
    mov     [rip + {CPU} + {CURRENT}], rbp
    mov     rdi, [rbp + {UTCB}]
    lea     rcx, [rdi + {SELF}]
    wrgsbase rcx
    mov     rsp, [rbp + {SP}]
    mov     r11, [rbp + {FLAGS}]
    mov     rcx, [rbp + {IP}]
leave_kernel {VERW}, baton_sysret_emptied, sysretq

15: cmp     rdx, rsi                            // a call to a receiver that waits for us
    jne     baton_ipc_complete
    // POINT OF NO RETURN: call to a receiver in closed wait for us
    mov     r11, rcx
    xor     rcx, rsi
    mov     [rdi + {RENDEZVOUS}], rcx
    btc     rsi, 32
    mov     [rbp + {TCB_FIRST} + {RENDEZVOUS}], rsi
    mov     rsi, r11
    jmp     2b

// 8 to 63 untyped words: the same checks, then one copy from UTCB to UTCB.
.balign 16
20: cmp     r9w, [rip + {CPU} + {LIMIT} + 2]
    jae     baton_ipc_closed
    mov     rbp, rsi
    shr     rbp, 32 - {BLOCK_BITS}
    and     ebp, {TCB_MASK}
    mov     rcx, rsi
    xor     rcx, [rbp + {TCB_FIRST} + {RENDEZVOUS}]
    jne     25f
    cmp     rdx, rsi
    jne     24f
    // POINT OF NO RETURN: call to a receiver in open wait
    mov     r11, [rdi + {ID}]
    xor     rsi, r11
    mov     [rdi + {RENDEZVOUS}], rsi
    xor     dword ptr [rbp + {TCB_FIRST} + {RENDEZVOUS} + 4], {READY}
23: mov     ecx, r9d
    and     ecx, 63
    sub     ecx, 7
    mov     rsi, [rdi + {UTCB_K}]
    mov     rdi, [rbp + {TCB_FIRST} + {UTCB_K}]
    add     rsi, 64
    add     rdi, 64
    rep     movsq
    mov     rdi, [rip + {CPU} + {CURRENT}]
    mov     rsi, r11
    jmp     2b
24: cmp     rdx, [rdi + {OPEN_FROM}]
    jne     baton_ipc_complete
    // POINT OF NO RETURN: send & open wait, to a receiver in open wait
    mov     r11, [rdi + {ID}]
    mov     [rdi + {RENDEZVOUS}], r11
    xor     dword ptr [rbp + {TCB_FIRST} + {RENDEZVOUS} + 4], {READY}
    jmp     23b
25: cmp     rcx, [rdi + {ID}]
    jne     baton_ipc_complete
    cmp     rdx, [rdi + {OPEN_FROM}]
    jne     26f
    // POINT OF NO RETURN: reply & wait
    mov     r11, rcx
    mov     [rdi + {RENDEZVOUS}], rcx
    btc     rsi, 32
    mov     [rbp + {TCB_FIRST} + {RENDEZVOUS}], rsi
    jmp     23b
26: cmp     rdx, rsi
    jne     baton_ipc_complete
    // POINT OF NO RETURN: call to a receiver in closed wait for us
    mov     r11, rcx
    xor     rcx, rsi
    mov     [rdi + {RENDEZVOUS}], rcx
    btc     rsi, 32
    mov     [rbp + {TCB_FIRST} + {RENDEZVOUS}], rsi
    jmp     23b
