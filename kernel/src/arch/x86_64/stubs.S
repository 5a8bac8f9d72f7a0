// The user page: one stub per system call, at {STUB_SIZE} bytes from each other,
// mapped at the same address in every space, user r-x (X.2 2.7, 5.1, 5.2).
//
// A stub turns the X.2 binding of the user side into Baton's trap: local ids
// become global ones by loading MyGlobalId from the UTCB they name (id - 120), and
// every call but Ipc says its number, negated, in R8. All of it runs at CPL 3: a
// bogus local id faults at user level. SYSCALL destroys RCX and R11.

    .section .user_stubs, "ax"
    .balign 4096
    .global user_stubs
user_stubs:

// Starts stub `number`; the gaps are filled with int3.
.macro stub number
    .org user_stubs + \number * {STUB_SIZE}, 0xCC
.endm
// Jumps aside if the id whose low half is `low` is local or nil.
.macro if_local low, aside
    test \low, {VERSION_BITS}
    jz \aside
.endm
// Off the main line: replaces a local id by the global one; nil and anylocalthread stay.
.macro globalise id, back
    test \id, \id
    jz \back
    cmp \id, {ANY_LOCAL}
    je \back
    mov \id, [\id - {MY_GLOBAL_ID}]
    jmp \back
.endm
// The trap: call number in R8, RDI's argument in R14 (the kernel's entry needs RDI).
.macro trap call
    mov r14, rdi
    mov r8, -\call
    syscall
.endm

// In Ipc and Lipc, to a local id RSI or to nil: if vector registers are dead and the caller then
// waits without a limit for its partner, for anybody, or for anybody of its space, it is an IPC
// for user mode. Else on to label 5.
.macro in_user_mode
    test dil, {DEAD}
    jz 5f
    test r8w, r8w
    jnz 5f
    cmp rsi, {ANY_LOCAL}
    je 5f
    test rsi, rsi
    jnz local_or_not
.endm

    stub {IPC}                          // RSI to, RDX from, R8 timeouts, RDI U, MR0..7
    if_local esi, 3f
1:  if_local edx, 4f
    .global ipc_syscall
2:
ipc_syscall:
    syscall
    ret
3:  in_user_mode
5:  globalise rsi, 1b
4:  globalise rdx, 2b

    stub {LIPC}                         // as Ipc
    if_local esi, 3f
1:  if_local edx, 4f
    .global lipc_syscall
2:
lipc_syscall:
    syscall
    ret
3:  in_user_mode
5:  globalise rsi, 1b
4:  globalise rdx, 2b

    stub {EXCHANGE_REGISTERS}           // RAX dest, RSI control, RDX SP, R8 IP, R9, R10, RDI
    // A local dest stays local: the result is the thread's other name (X.2 5.4).
    mov r12, r8
    trap {CALL_EXCHANGE_REGISTERS}      // out: old IP in R8
    ret

    stub {THREAD_CONTROL}               // RDI dest, RSI pager, RDX scheduler, R8 space, R9 UTCB
    if_local esi, 4f
1:  if_local edx, 5f
2:  if_local r8d, 6f
3:  mov r12, r8
    trap {CALL_THREAD_CONTROL}
    ret
4:  globalise rsi, 1b
5:  globalise rdx, 2b
6:  globalise r8, 3b

    stub {SYSTEM_CLOCK}                 // RAX = microseconds; never enters the kernel
    rdtsc
    shl rdx, {CLOCK_HIGH}
    or rax, rdx
    mul qword ptr [rip + user_stubs + {CLOCK_MULTIPLIER}]
    mov rax, rdx
    add rax, [rip + user_stubs + {CLOCK_OFFSET}]
    ret

    stub {THREAD_SWITCH}                // RDI dest
    if_local edi, 2f
1:  trap {CALL_THREAD_SWITCH}
    ret
2:  globalise rdi, 1b

    stub {SCHEDULE}                     // RDI dest, RSI prio, RDX time, R8 processor, R9 preemption
    if_local edi, 2f
1:  mov r12, r8
    trap {CALL_SCHEDULE}
    ret
2:  globalise rdi, 1b

    stub {UNMAP}                        // RDX control, RDI U, MR0..7 as in Ipc
    mov r8, -{CALL_UNMAP}               // message registers up to R15: RDI is not moved
    syscall
    ret

    stub {SPACE_CONTROL}                // RDI space, RSI control, RDX KIP, R8 UTCB area, R9 redirector
    if_local r9d, 2f
1:  mov r12, r8
    trap {CALL_SPACE_CONTROL}
    ret
2:  globalise r9, 1b

    stub {PROCESSOR_CONTROL}            // RDI number, RSI internal kHz, RDX external kHz, R8 mV
    mov r12, r8
    trap {CALL_PROCESSOR_CONTROL}
    ret

    // RDX control, RDI U, RCX RSI R8 R11 attributes, MR0..7. The user's inline code
    // takes the result from RDX and stores RAX to MR1 and RCX to MR0.
    stub {MEMORY_CONTROL}
    message_words store, rdi
    mov rbp, rcx
    mov r12, r8
    mov r13, r11
    trap {CALL_MEMORY_CONTROL}          // out: result in RAX, RDI kept
    mov rdx, rax
    mov rcx, [rdi + 8 * 0]
    mov rax, [rdi + 8 * 1]
    ret

    stub {QUOTA_CONTROL}                // RDI space, RSI pages
    if_local edi, 2f
1:  trap {CALL_QUOTA_CONTROL}
    ret
2:  globalise rdi, 1b

    stub {INSPECT}                      // RDI what, RSI index, RDX argument
    trap {CALL_INSPECT}
    ret

    stub {THREAD_STATE}                 // RDI thread, RSI control, RDX vector state
    if_local edi, 2f
1:  trap {CALL_THREAD_STATE}
    ret
2:  globalise rdi, 1b

    stub {TASK_CONTROL}                 // RDI space, RSI numbers, RDX ceilings
    if_local edi, 2f
1:  trap {CALL_TASK_CONTROL}
    ret
2:  globalise rdi, 1b

    stub {CREATE_THREAD}                // as ThreadControl
    if_local esi, 4f
1:  if_local edx, 5f
2:  if_local r8d, 6f
3:  mov r12, r8
    trap {CALL_CREATE_THREAD}
    ret
4:  globalise rsi, 1b
5:  globalise rdx, 2b
6:  globalise r8, 3b
