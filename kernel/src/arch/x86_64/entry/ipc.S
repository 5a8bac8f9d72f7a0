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
divert {IBPB} | {LACKS_FAST}, baton_not_simple
    test    r8, {NOT_SIMPLE}                    // receive timeout never, a period as send timeout, an IPC at all
    jnz     baton_not_simple
    cmp     r9w, [rip + {CPU} + {LIMIT}]        // at most 7 untyped words, no items, no flags; usual sender
    jae     .Lipc_long
    find_receiver
    ask_receiver
    jne     .Lipc_closed_wait
    cmp     rdx, rsi                            // open wait: a call?
    jne     .Lipc_then_open
    // POINT OF NO RETURN: call to a receiver in open wait
    mov     r11, [rdi + {ID}]
    xor     rsi, r11
    mov     [rdi + {RENDEZVOUS}], rsi           // we: closed wait for it
    wake_open
    mov     rsi, r11                            // it sees our global id
.global baton_ipc_switch
baton_ipc_switch:
.Lipc_switch:
    unless_same_space .Lipc_same_space
    mov     cr3, rcx
.Lipc_run:
    run_receiver
    return_to_user

.Lipc_then_open:
    cmp     rdx, [rdi + {OPEN_FROM}]            // reply to a receiver in open wait; nobody waits to send to us
    jne     baton_ipc_complete
    // POINT OF NO RETURN: send & open wait, to a receiver in open wait
    mov     r11, [rdi + {ID}]
    mov     [rdi + {RENDEZVOUS}], r11           // we: open wait
    wake_open
    mov     rsi, r11
    jmp     .Lipc_switch

.Lipc_same_space:
    mov     rsi, [rdi + {UTCB}]                 // same space: it sees our local id
    jmp     .Lipc_run

.balign 16
.Lipc_closed_wait:
    cmp     rcx, [rdi + {ID}]                   // closed wait: for us?
    jne     baton_foreign_reply
    cmp     rdx, [rdi + {OPEN_FROM}]            // reply & wait with nobody waiting to send to us
    jne     .Lipc_call_back
    // POINT OF NO RETURN: reply & wait
    mov     [rdi + {RENDEZVOUS}], rcx           // we: open wait (RCX is our id)
    wake_any
    mov     rsi, rcx
    unless_same_space .Lipc_same_space
    mov     cr3, rcx
    run_receiver
    return_to_user

.Lipc_call_back:
    cmp     rdx, rsi                            // a call to a receiver that waits for us
    jne     baton_ipc_complete
    // POINT OF NO RETURN: call to a receiver in closed wait for us
    mov     r11, rcx
    xor     rcx, rsi
    mov     [rdi + {RENDEZVOUS}], rcx
    wake_any
    mov     rsi, r11
    jmp     .Lipc_switch

// 8 to 63 untyped words: the same checks, then one copy from UTCB to UTCB.
.balign 16
.Lipc_long:
    cmp     r9w, [rip + {CPU} + {LIMIT} + {SECOND}]
    jae     baton_ipc_closed
    find_receiver
    ask_receiver
    jne     .Lipc_long_closed_wait
    cmp     rdx, rsi
    jne     .Lipc_long_then_open
    // POINT OF NO RETURN: call to a receiver in open wait
    mov     r11, [rdi + {ID}]
    xor     rsi, r11
    mov     [rdi + {RENDEZVOUS}], rsi
    wake_open
.Lipc_copy:
    mov     ecx, r9d
    and     ecx, {WORDS_MASK}
    sub     ecx, {IN_REGISTERS}
    mov     rsi, [rdi + {UTCB_K}]
    mov     rdi, [rbp + {TCB_FIRST} + {UTCB_K}]
    add     rsi, {FIRST_IN_MEMORY}              // behind the tag and what is in registers
    add     rdi, {FIRST_IN_MEMORY}
    rep     movsq
    mov     rdi, [rip + {CPU} + {CURRENT}]
    mov     rsi, r11
    jmp     .Lipc_switch
.Lipc_long_then_open:
    cmp     rdx, [rdi + {OPEN_FROM}]
    jne     baton_ipc_complete
    // POINT OF NO RETURN: send & open wait, to a receiver in open wait
    mov     r11, [rdi + {ID}]
    mov     [rdi + {RENDEZVOUS}], r11
    wake_open
    jmp     .Lipc_copy
.Lipc_long_closed_wait:
    cmp     rcx, [rdi + {ID}]
    jne     baton_ipc_complete
    cmp     rdx, [rdi + {OPEN_FROM}]
    jne     .Lipc_long_call_back
    // POINT OF NO RETURN: reply & wait
    mov     r11, rcx
    mov     [rdi + {RENDEZVOUS}], rcx
    wake_any
    jmp     .Lipc_copy
.Lipc_long_call_back:
    cmp     rdx, rsi
    jne     baton_ipc_complete
    // POINT OF NO RETURN: call to a receiver in closed wait for us
    mov     r11, rcx
    xor     rcx, rsi
    mov     [rdi + {RENDEZVOUS}], rcx
    wake_any
    jmp     .Lipc_copy
