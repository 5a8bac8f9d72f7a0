// The complete path's entries and exits: system calls, interrupts, exceptions,
// and the ways back to user mode. Kernel code runs on the current thread's kernel
// stack (Liedtke 1993, 5.2.4), whose top is the tcb; a handler never blocks, it
// returns the thread to run next.

.section .text, "ax"

// The registers of a frame (frame.rs); RDI's value is in the register named.
.macro push_registers rdi_is_in
    push    \rdi_is_in
    push    rsi
    push    rdx
    push    rcx
    push    rax
    push    r8
    push    r9
    push    r10
    push    r11
    push    rbx
    push    rbp
    push    r12
    push    r13
    push    r14
    push    r15
.endm
.macro pop_kept
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     rbp
    pop     rbx
.endm
.macro pop_others
    pop     r11
    pop     r10
    pop     r9
    pop     r8
    pop     rax
    pop     rcx
    pop     rdx
    pop     rsi
    pop     rdi
.endm
// The handler's answer, RAX, is the current thread, which has nothing to do but return as
// `way` says: no switch, no interrupt to handle, no operation to go on with. Else to `aside`.
.macro unless_same_returns way, aside
    cmp     rax, [rip + {CPU} + {CURRENT}]
    jne     \aside
    cmp     qword ptr [rip + {CPU} + {PENDING}], 0
    jne     \aside
    cmp     qword ptr [rax + {RESUME}], \way
    jne     \aside
.endm
// The same through the frame on its stack, where RSP is.
.macro unless_same_goes_on aside
unless_same_returns {RESUME_FRAME}, \aside
    mov     qword ptr [rax + {RESUME}], {RESUME_IPC} // user mode: resume is always Ipc
.endm

// RDI current tcb with user state saved; RBP, RCX, R11, RSP free. An IPC whose timeouts are not the
// usual ones, or no IPC.
.global baton_not_simple
baton_not_simple:
    cmp     r8, -{CALL_LRPC_RETURN}             // procedure calls are below all other calls,
    jle     baton_lrpc                          // and timeouts positive
    ja      baton_call_complete
.global baton_ipc_complete
baton_ipc_complete:
    cmp     qword ptr [rdi + {HANDLER}], 0
    jne     baton_foreign_call
    mov     rsp, rdi
    message_registers store, rdi, rbp
    mov     rcx, r8
    test    r9d, {TYPED}
    jnz     .Lcall_with_items
    call    {IPC}                               // (current, to, from, timeouts)
    jmp     baton_resume
.Lcall_with_items:
    call    {IPC_WITH_ITEMS}                    // (current, to, from, timeouts)
    jmp     baton_resume
.global baton_call_complete
baton_call_complete:
    cmp     qword ptr [rdi + {HANDLER}], 0
    jne     baton_foreign_call
    mov     rsp, rdi
    cmp     r8, -{CALL_UNMAP}
    jne     .Lcall_with_frame
    message_registers store, rdi, rbp
    mov     rsi, rdx
    call    {UNMAP}                             // (current, control)
    unless_same_returns {RESUME_IPC}, baton_resume
    mov     rbp, rax
    jmp     baton_ipc_return

// From lrpc.S: a procedure call or return that is not for the fast path.
.global baton_lrpc_complete
baton_lrpc_complete:
    cmp     qword ptr [rdi + {HANDLER}], 0
    jne     baton_foreign_call
    mov     rsp, rdi
    message_registers store, rdi, rbp
    cmp     r8, -{CALL_LRPC_RETURN}             // whatever is below is a call
    je      1f
    call    {LRPC_CALL}                         // (current, token) -> next
    jmp     baton_resume
1:  call    {LRPC_RETURN}                       // (current, clerk) -> next
    jmp     baton_resume

// Any other call: a register frame like an exception's. The caller goes on through SYSRET:
// RCX and R11 are lost anyway. No call changes RBX and RBP, which Rust code keeps.
.Lcall_with_frame:
    push    {USER_SS}
    push    qword ptr [rdi + {SP}]
    push    qword ptr [rdi + {FLAGS}]
    push    {USER_CS}
    push    qword ptr [rdi + {IP}]
    push    0
    push    {VECTOR_CALL}
    push_registers r14                          // the stub moved RDI there
    mov     rsi, rsp
    call    {CALL}                              // (current, frame) -> next
    unless_same_goes_on baton_resume
    frame_upper load, rsp                       // RBX and RBP are as they were
    frame_parameters load, rsp
    mov     rax, [rsp + {RAX}]
    mov     rdi, [rsp + {RDI}]
    frame_exit rsp
leave_kernel {VERW}, baton_sysret_emptied, sysretq

// Exceptions and interrupts. Each vector's stub pushed (0 or the error code), the vector.
// A gate leaves AC as it was: whoever has set it in user mode would have SMAP off in here.
.balign 16
baton_exception:
patch_site {PATCH_SMAP}, clac
.global baton_exception_common                  // where a test meets the stack
baton_exception_common:
    push_registers rdi
    cld
    lea     rdi, [rsp + {FRAME_SIZE} + {TCB_SIZE}]
    test    edi, {IN_PAGE}                      // just below a tcb, which ends its page: user mode
    jnz     .Ltrap_elsewhere
    call    {TRAP}                              // (end of the tcb) -> next
    unless_same_goes_on baton_resume
    add     rsp, {RBX} + 8 - {R15}              // what Rust code keeps is as it was
    jmp     baton_pop_others
.Ltrap_elsewhere:
    test    byte ptr [rsp + {FRAME_CS}], {PRIVILEGE}
    jnz     baton_armed_trap
    mov     rdi, rsp
    call    {KERNEL_TRAP}                       // (frame) -> next tcb, or 0: go on where it was
    test    rax, rax
    jnz     baton_resume
.global baton_pop_frame                         // a visitor's, too (visitors.rs)
baton_pop_frame:
    pop_kept
baton_pop_others:
    pop_others
    add     rsp, {CODES}
leave_kernel {VERW}, baton_iret_emptied, iretq

// Double fault, NMI, machine check: on a stack of their own, at any instruction of the
// kernel's, where nothing but that stack is known. They return to where they met the machine.
.balign 16
baton_own_stack:
patch_site {PATCH_SMAP}, clac
    push_registers rdi
    cld
    mov     rdi, rsp
    call    {OWN_STACK}                         // (frame)
    jmp     baton_pop_frame

// RAX: the thread to run next.
.balign 16
.global baton_resume
baton_resume:
    mov     rdi, rax
    lea     rsp, [rax - {FRAME_SIZE}]           // its own kernel stack, below its frame
divert {IBPB}, {ACTIVATE_FLUSHING}
    call    {ACTIVATE}                          // -> how it resumes
    cmp     eax, {RESUME_IPC}
    jne     .Lresume_otherwise
    mov     rbp, [rip + {CPU} + {CURRENT}]
baton_ipc_return:
    message_registers load, rbp, rdx
    mov     rsi, [rbp + {RESULT_FROM}]
    mov     rdi, [rbp + {UTCB}]
    mov     rcx, [rbp + {IP}]
    mov     r11, [rbp + {FLAGS}]
    mov     rsp, [rbp + {SP}]
    xor     edx, edx
    xor     r8d, r8d                            // RBP: the tcb's address, which follows from the id
leave_kernel {VERW}, baton_sysret_emptied, sysretq

.Lresume_otherwise:
    cmp     eax, {RESUME_FRAME}
    je      baton_frame_return
    cmp     eax, {RESUME_IDLE}
    je      baton_idle
    cmp     eax, {LEAVES_IPC}
    jae     baton_armed_leave
    mov     rdi, [rip + {CPU} + {CURRENT}]
    lea     rsp, [rdi - {FRAME_SIZE}]
    call    {CONTINUE}                          // (current) -> next
    jmp     baton_resume

.balign 16
baton_frame_return:
    mov     rsp, [rip + {CPU} + {CURRENT}]
baton_frame_of_tcb:
    mov     qword ptr [rsp + {RESUME}], {RESUME_IPC} // user mode: resume is always Ipc
    sub     rsp, {FRAME_SIZE}
    pop_kept
    pop_others
    add     rsp, {CODES}
leave_kernel {VERW}, baton_iret_emptied, iretq

// An armed thread leaves the kernel (`armed.rs`): EAX as what. The pad takes its place.
.balign 16
baton_armed_leave:
    mov     rbp, [rip + {CPU} + {CURRENT}]
    lea     rcx, [rip + {PAD} + {PAD_TCB}]
    mov     [rip + {CPU} + {CURRENT}], rcx
    cmp     eax, {LEAVES_IPC}
    je      baton_ipc_return
    mov     rsp, rbp
    jmp     baton_frame_of_tcb

// An armed thread, or one to which it has handed over, enters by an exception or interrupt.
baton_armed_trap:
    call    {ENTER}                             // -> tcb
    lea     rdi, [rax + {TCB_SIZE}]
    lea     rsp, [rax - {FRAME_SIZE}]
    call    {TRAP}
    jmp     baton_resume

// The same by a system call: from foreign.S, where nobody is foreign, the frame complete.
.global baton_armed_call
baton_armed_call:
    call    {ENTER}
    mov     rdi, rax
    lea     rsp, [rax - {FRAME_SIZE}]
    call    {ARMED_CALL}                        // (tcb) -> next
    jmp     baton_resume

// VERW with a selector in memory empties the processor's buffers.
baton_sysret_emptied:
    verw    word ptr [rip + baton_verw_selector]
    sysretq
baton_iret_emptied:
    verw    word ptr [rip + baton_verw_selector]
    iretq
.balign 2
baton_verw_selector:
    .word   {KERNEL_SS}

// On the stack of the idle thread.
baton_idle:
    cmp     byte ptr [rip + {CPU} + {WATCHES}], 0
    je      1f
    call    {WATCH}                             // -> next, or 0: nobody has come
    test    rax, rax
    jnz     baton_resume
1:  mov     rax, [rip + {CPU} + {CURRENT}]
    cmp     qword ptr [rip + {CPU} + {PENDING}], 0
    jne     baton_resume                        // noted while the idle thread was chosen
2:  sti
    hlt
    jmp     2b

// Opens a window for interrupts; they only note that they happened.
.global baton_window
baton_window:
    sti
    nop
    cli
    ret

.altmacro
.macro VECTOR_STUB n, ordinary
    .balign 16
    .if \n < 32 && {PUSH_A_CODE} >> \n & 1
    .else
    push    0
    .endif
    push    \n
    .if \n < 32 && {ON_OWN_STACKS} >> \n & 1
    jmp     baton_own_stack
    .else
    jmp     \ordinary
    .endif
.endm
.balign 16
.global baton_vectors
baton_vectors:
.set n, 0
.rept {VECTORS}
    VECTOR_STUB %n, baton_exception
    .set n, n + 1
.endr
.noaltmacro
