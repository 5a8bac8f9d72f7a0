// A register message with one string to a receiver that waits for it: compiled code copies the
// string (ipc/simple_string.rs), if both sides have their pages at hand; all else is as in ipc.S.
// Whatever is unusual leaves for the complete path, with nothing changed.

.section .fastpath, "ax"

// From vector.S: an IPC with simple timeouts that is not for there. RDI current tcb with SP, IP and
// flags saved; RBP, RCX, R11 and RSP are free once the limits are known to be open: a foreign
// thread's are its own.
.balign 64
.global baton_ipc_string
baton_ipc_string:
    cmp     r9w, {ONE_ITEM}                     // one item, no words, no flags
    jne     .Lstring_with_words
    test    eax, {NOT_SIMPLE_STRING}            // no string, or a compound one
    jnz     baton_ipc_complete
    cmp     rax, {LONGEST_STRING}               // longer than a page
    ja      baton_ipc_complete
.Lstring_begin:
    cmp     dword ptr [rip + {CPU} + {LIMIT}], {LIMITS_OPEN}
    jne     baton_ipc_complete
    find_receiver
    ask_receiver
    je      .Lstring_receiver_waits
    cmp     rcx, [rdi + {ID}]                   // closed wait: for us?
    jne     baton_ipc_complete
.Lstring_receiver_waits:
    cmp     rdx, rsi                            // a call,
    je      .Lstring_copy
    cmp     rdx, [rdi + {OPEN_FROM}]            // or send & open wait with nobody waiting to send to us
    jne     baton_ipc_complete
.Lstring_copy:
    lea     rsp, [rdi - 8 * 9]                  // a call wants it at a multiple of 16
    message_words store, rsp                    // not to the UTCB, where others of the task may write
    mov     ecx, r9d
    and     ecx, {WORDS_MASK}
    push    rsi
    push    rdx
    push    r8
    lea     rsi, [rbp + {TCB_FIRST}]
    mov     rdx, [rsp + 8 * rcx + 8 * 4]        // the item behind so many words, 3 registers and MR0
    mov     rcx, [rsp + 8 * rcx + 8 * 5]
    call    {COPY_STRING}                       // (sender, receiver, its item) -> whether it has arrived
    mov     ecx, eax
    pop     r8
    pop     rdx
    pop     rsi
    mov     r9, [rsp]
    mov     rax, [rsp + 8 * 1]                  // MR1 and MR3; the others are kept
    mov     r10, [rsp + 8 * 3]
    mov     rdi, [rip + {CPU} + {CURRENT}]
    test    cl, cl
    jz      baton_ipc_complete
    // POINT OF NO RETURN
    mov     r11, [rdi + {ID}]
    mov     rcx, r11                            // we: open wait,
    cmp     rdx, rsi
    jne     .Lstring_wait
    xor     rcx, rsi                            // or closed wait for it
.Lstring_wait:
    mov     [rdi + {RENDEZVOUS}], rcx
    wake_any
    mov     rsi, r11
    jmp     baton_ipc_switch

.Lstring_with_words:
    jb      baton_ipc_complete
    cmp     r9w, {ONE_ITEM} + {IN_REGISTERS} - 2 // words and item are in registers
    jbe     .Lstring_begin
    jmp     baton_ipc_complete
