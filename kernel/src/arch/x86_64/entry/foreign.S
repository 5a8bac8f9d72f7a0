// System calls of foreign threads (control/foreign.rs): a register message to the
// handler, and its answer, each in one motion. The complete path does the same.

.section .fastpath, "ax"

// RDI current tcb with SP, IP and flags saved, its own RDI in the processor's line;
// RCX IP, R11 flags, RSP user stack; all others are the program's.
.balign 64
.global baton_foreign_call
baton_foreign_call:
    frame_upper store, rdi + {FRAME}
    frame_kept store, rdi + {FRAME}
    frame_parameters store, rdi + {FRAME}
    mov     [rdi + {FRAME} + {R11}], r11
    mov     [rdi + {FRAME} + {RAX}], rax
    mov     [rdi + {FRAME} + {RCX}], rcx
    mov     rbx, [rip + {CPU} + {USER_RDI}]
    mov     [rdi + {FRAME} + {RDI}], rbx
    mov     [rdi + {FRAME} + {FRAME_IP}], rcx
    mov     [rdi + {FRAME} + {FRAME_FLAGS}], r11
    mov     [rdi + {FRAME} + {FRAME_SP}], rsp
.if {FAST}
divert {IBPB} | {LACKS_FAST}, .Lforeign_complete
    mov     r12, rsi                            // MR4 to MR7; MR1, MR3 are in place, MR2 is RBX
    mov     rsi, [rdi + {HANDLER}]
    find_receiver
    cmp     rsi, [rbp + {TCB_FIRST} + {RENDEZVOUS}] // current, and in open wait?
    jne     .Lforeign_complete
    cmp     byte ptr [rip + {CPU} + {LOOK_FIRST}], 0 // somebody waits whom the switch could pass over
    jne     .Lforeign_complete
    mov     r13, rdx
    mov     r14, r8
    mov     r15, r9
    // POINT OF NO RETURN
    mov     eax, {ALL_COMPONENTS}             // our vector registers to our area, initial ones for the handler
    mov     rcx, [rdi + {VECTOR_AREA}]
    xsave64 [rcx]
patch_site {X87_SURVIVES_RESET}, fninit
    xrstor64 [rip + {INITIAL}]
    mov     rax, [rdi + {FRAME} + {RAX}]
    xor     dword ptr [rdi + {RENDEZVOUS} + {STATE}], {READY} ^ {WAITS} // we: wait for the answer
    mov     [rdi + {PARTNER}], rsi
    mov     qword ptr [rdi + {RESUME}], {RESUME_FRAME}
    mov     byte ptr [rdi + {KIND}], {KIND_SYSTEM_CALL}
    rdfsbase rcx
    mov     [rdi + {FS_BASE}], rcx
    rdgsbase rcx
    mov     [rdi + {GS_BASE}], rcx
    xor     ecx, ecx
    wrfsbase rcx
    mov     qword ptr [rip + {CPU} + {LIMIT}], {LIMITS_OPEN} // and the gate closed
    wake_open
    mov     r9, {TAG}
    mov     rsi, [rdi + {ID}]
    jmp     baton_ipc_switch
.endif
.Lforeign_complete:
    lea     rsp, [rdi + {FRAME}]
    mov     qword ptr [rsp + {VECTOR}], {VECTOR_CALL}
    cmp     byte ptr [rdi + {STANDS_IN}], 0     // the pad, or a shadow on another processor
    jne     baton_armed_call
    call    {CALL}                              // (current) -> next
    jmp     baton_resume

// From the fast path: RDI current tcb, RBP offset of the receiver's tcb, RCX its
// rendezvous word ^ RSI; RBP and RCX are free, all else is the sender's message.
.balign 64
.global baton_foreign_reply
baton_foreign_reply:
.if {FAST}
    ror     rcx, {OTHER_HALF}
    cmp     rcx, {WAITS}                        // id current, and it waits for a call's answer?
    jne     baton_to_vector_user
    mov     rcx, [rdi + {ID}]
    cmp     rcx, [rbp + {TCB_FIRST} + {PARTNER}] // ours?
    jne     baton_ipc_complete
    cmp     r9w, {ONE_WORD}                   // the result and nothing else
    jne     baton_ipc_complete
    cmp     rdx, [rdi + {OPEN_FROM}]            // reply & wait, nobody waits to send to us
    jne     baton_ipc_complete
    // POINT OF NO RETURN
    mov     [rdi + {RENDEZVOUS}], rcx           // we: open wait
    xor     dword ptr [rbp + {TCB_FIRST} + {RENDEZVOUS} + {STATE}], {WAITS} ^ {READY}
    lea     rdi, [rbp + {TCB_FIRST}]
    mov     [rip + {CPU} + {CURRENT}], rdi
    mov     dword ptr [rip + {CPU} + {LIMIT}], {CLOSED}
    mov     qword ptr [rdi + {RESUME}], {RESUME_IPC}
    mov     byte ptr [rdi + {KIND}], {KIND_USER}
    mov     rcx, [rdi + {CR3}]
    mov     cr3, rcx
    mov     rbp, rax
    mov     eax, {ALL_COMPONENTS}
    mov     rcx, [rdi + {VECTOR_AREA}]
patch_site {X87_SURVIVES_LOAD}, fninit
    xrstor64 [rcx]
    mov     rax, rbp
    mov     rcx, [rdi + {FS_BASE}]
    wrfsbase rcx
    mov     rcx, [rdi + {GS_BASE}]
    wrgsbase rcx
    frame_upper load, rdi + {FRAME}
    frame_kept load, rdi + {FRAME}
    frame_parameters load, rdi + {FRAME}
    frame_exit rdi + {FRAME}
    mov     rdi, [rdi + {FRAME} + {RDI}]
leave_kernel {VERW}, baton_sysret_emptied, sysretq
.else
    ror     rcx, {OTHER_HALF}
    jmp     baton_to_vector_user
.endif
