// The user page's stubs for messages between threads of one space, without the kernel where that is
// possible; behind stubs.S in the same page.

    // To where the receiver has called its stub from. A RET would be predicted from the calls of
    // the thread before and cost a misprediction each time (`native/lipc-with-ret-cycles`).
.macro leave_path
    pop rcx
    jmp rcx
.endm
    // The restrictive check (2002, 4.6.1): with it a thread that waits otherwise than the last time
    // lets the kernel see it.
.macro unless_changed thread, wait, slow
.if !{PENDING_SEND}
    cmp qword ptr [\thread + 8 * {LIPC_WAITED}], \wait
    jne \slow
.endif
.endm
    // Local IPC in user mode (Wenske 2002, 4.3 and 5.7; decision 0044). RSI the partner's U,
    // RDI U, R8 timeouts (receive: never), R9 tag, MR1..7; vector registers are dead. Out: as Ipc.
    // One store hands over, the one to the current word: an interruption before it leads back
    // to the restart point, and behind it the kernel does the rest (`arch/x86_64/entry/armed.rs`).
    // R11 becomes our state, which is also how one waits for anybody on our processor (decision 0088).
    // \receiver, \wait: what the partner's word is compared with first, what ours becomes; \from: RDX, if
    // that says which bits of R11 that is. \short: the tag is known to be one of a short message; that our state
    // is open follows from the partner's wait then, or is asked aside.
.macro local_path name, receiver, wait, slow, from, short
    .global \name\()_restart, \name\()_forward, \name\()_done, \name\()_aside, \name\()_end
\name\()_restart:
    mov r11, [rdi + 8 * {LIPC_STATE}]
.ifb \short
    cmp r9w, r11w                       // untyped words only, no flags, and open
    jae \slow
.endif
    cmp [rsi + 8 * {LIPC_WAIT}], \receiver
    jne \name\()_aside
1:
.ifnb \from
    and r11, \from
.endif
    unless_changed rdi, \wait, \slow
    mov [rdi + 8 * {LIPC_SP}], rsp
    mov [rdi + 8 * {LIPC_WAIT}], \wait
    mov gs:[0], rsi                     // it runs
\name\()_forward:
    mov qword ptr [rsi + 8 * {LIPC_WAIT}], {LIPC_RUNS}
    mov rsp, [rsi + 8 * {LIPC_SP}]
    xchg rdi, rsi
\name\()_done:
    leave_path
\name\()_aside:
.ifnb \short
    cmp r9w, r11w
    jae \slow
.endif
    mov rcx, [rsi + 8 * {LIPC_WAIT}]
    cmp rcx, rdi                        // for us
    je 1b
    xor rcx, r11                        // for anybody, here
    je 1b
    cmp rcx, {LIPC_OPEN} ^ {LIPC_OPEN_LOCAL} // for anybody of this space
    je 1b
    jmp \slow
\name\()_end:
.endm

    stub {LOCAL_CALL}                   // then waits for the partner
local_call:
    local_path local_call, r11, rsi, local_slow_call

    stub {LOCAL_REPLY_WAIT}             // RDX whom to wait for then: anybody, or of this space
local_reply:
    local_path local_reply, rdi, r11, local_slow, rdx

    stub {LOCAL_SLOW}
    .global local_slow, local_slow_call, local_slow_call_one, local_slow_onward, local_syscall
local_slow_call:
    mov rdx, rsi
local_slow:
    cmp qword ptr [rsi + 8 * {LIPC_STATE}], {LIPC_REFUSED}
    jge 1f                              // or it keeps its registers: then it asks itself
    cmp qword ptr [rsi + 8 * {LIPC_STATE}], {LIPC_UNKNOWN}
    je 4f
    test dword ptr [rdi + 8 * {LIPC_STATE}], {LIPC_UNKNOWN} - 1
    jz 4f                               // not known, or it has kept its registers once
.if {PENDING_SEND}
    cmp rdx, rsi
    jne 1f                              // a call: by the complete path, so that our wait is public
.endif
    cmp qword ptr [rdi + 8 * {LIPC_STATE}], {LIPC_REFUSED}
    jge 1f
    bts r8, {PUBLISH}
1:  mov rsi, [rsi - {MY_GLOBAL_ID}]
    if_local edx, 3f
2:  or rdi, {DEAD}                       // vector registers are dead
local_syscall:
    syscall
    ret
3:  globalise rdx, 2b
4:  cmp qword ptr [rdi + 8 * {LIPC_STATE}], {LIPC_REFUSED}
    je 1b
    mov rcx, [rdi + 8 * {PROCESSOR_NO}]
    cmp rcx, [rsi + 8 * {PROCESSOR_NO}] // who live on different ones can't meet
    jne 1b
    push r8                             // the kernel is asked, once for each thread
    push r14
    trap {CALL_ARM_LOCAL}
    pop r14
    pop r8
    jmp 1b

local_or_not:
    and rdi, ~{DEAD}
    cmp rdx, rsi
    je local_call
    cmp rdx, {ANY}
    je local_reply
    cmp rdx, {ANY_LOCAL}
    je local_reply
    or rdi, {DEAD}
    mov rsi, [rsi - {MY_GLOBAL_ID}]
    if_local edx, 3b
    jmp local_syscall

    // Critical sections (`runtime::section`, decision 0063): a call and its answer that bring
    // nothing but what to do, from thread RBX to the section's, RBP (their U). RAX the function, RDI what
    // it is told beside the section's value. Out: R9 tag.
    stub {SECTION_ENTER}
    .global section_enter_restart, section_enter_forward, section_enter_done, section_enter_slow
section_enter_restart:
    cmp qword ptr [rbp + 8 * {LIPC_WAIT}], {LIPC_SECTION}
    jne section_enter_slow
    cmp qword ptr [rbx + 8 * {LIPC_STATE}], {LIPC_OPEN}
    jne section_enter_slow
    unless_changed rbx, rbp, section_enter_slow
    mov [rbx + 8 * {LIPC_SP}], rsp
    mov [rbx + 8 * {LIPC_WAIT}], rbp
    mov gs:[0], rbp                     // it runs
section_enter_forward:
    mov qword ptr [rbp + 8 * {LIPC_WAIT}], {LIPC_RUNS}
    mov rsp, [rbp + 8 * {LIPC_SP}]
section_enter_done:
    jmp section_run
section_enter_slow:
    mov r9, {SECTION_BUSY}
    ret

    // As the section's thread: on its stack its return address, and the value above.
    stub {SECTION_RUN}
    .global section_run, section_leave_restart, section_leave_forward, section_leave_done
    .global section_leave_slow, section_syscall
section_run:
    mov rsi, [rsp + 8]
    call rax                            // keeps RBX and RBP
section_leave_restart:
    cmp [rbx + 8 * {LIPC_WAIT}], rbp
    jne section_leave_slow
    cmp qword ptr [rbp + 8 * {LIPC_STATE}], {LIPC_OPEN}
    jne 3f
    unless_changed rbp, {LIPC_SECTION}, section_leave_slow
    mov [rbp + 8 * {LIPC_SP}], rsp
    mov qword ptr [rbp + 8 * {LIPC_WAIT}], {LIPC_SECTION}
    mov gs:[0], rbx
section_leave_forward:
    mov qword ptr [rbx + 8 * {LIPC_WAIT}], {LIPC_RUNS}
    mov rsp, [rbx + 8 * {LIPC_SP}]
    xor r9d, r9d
section_leave_done:
    leave_path
section_leave_slow:
    mov rsi, [rbx - {MY_GLOBAL_ID}]
    lea rdi, [rbp + {DEAD}]                // vector registers are dead
    mov rdx, {ANY_LOCAL}
    xor r8d, r8d
.if !{PENDING_SEND}
    cmp qword ptr [rbp + 8 * {LIPC_STATE}], {LIPC_OPEN}
    jne 1f
    bts r8, {PUBLISH}
1:
.endif
    xor r9d, r9d
section_syscall:
    syscall
    ret
3:  mov r11, [rbp + 8 * {LIPC_STATE}]
    test r11, r11
    jns section_leave_slow              // closed
    mov rsi, rbx                        // elsewhere an end is a message like others
    mov rdi, rbp
    mov rdx, {ANY_LOCAL}
    xor r8d, r8d
    xor r9d, r9d
    jmp local_reply

    // What generated stubs take (`runtime::service::Neighbour`): nothing is given that is always the same.
    stub {LOCAL_CALL_ONE}
local_call_one:
    local_path local_call_one, r11, rsi, local_slow_call_one, , short

    stub {LOCAL_ONWARD}
local_onward:
    local_path local_onward, rdi, r11, local_slow_onward
local_slow_onward:
    mov rdx, {ANY}
    mov r8d, {REPLY_WAIT}
    jmp local_slow
local_slow_call_one:
    xor r8d, r8d
    jmp local_slow_call

    .org user_stubs + 4096, 0xCC
    .text
