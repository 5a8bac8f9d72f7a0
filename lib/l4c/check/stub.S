/*
 * stub.S - a stub that stands in for every system call: it notes the registers it
 * was called with and answers with those of `check_out`, all of them, RBP included.
 */
        .macro  each, op
        \op rax, 0
        \op rbx, 8
        \op rcx, 16
        \op rdx, 24
        \op rsi, 32
        \op rdi, 40
        \op rbp, 48
        \op r8, 56
        \op r9, 64
        \op r10, 72
        \op r11, 80
        \op r12, 88
        \op r13, 96
        \op r14, 104
        \op r15, 112
        .endm
        .macro  note, register, offset
        movq    %\register, check_in+\offset(%rip)
        .endm
        .macro  answer, register, offset
        movq    check_out+\offset(%rip), %\register
        .endm

        .text
        .globl  check_stub
check_stub:
        each    note
        movq    %rsp, check_in+120(%rip)
        pushq   (%rsp)                  /* uses stack, as a real stub may */
        addq    $8, %rsp
        incq    check_calls(%rip)
        each    answer
        ret

        .macro  variable name
        .globl  \name
\name:  .quad   check_stub
        .endm
        .data
        variable __L4_Ipc
        variable __L4_Lipc
        variable __L4_LocalCall
        variable __L4_LocalReplyWait
        variable __L4_Unmap
        variable __L4_ExchangeRegisters
        variable __L4_ThreadControl
        variable __L4_SpaceControl
        variable __L4_Schedule
        variable __L4_ThreadSwitch
        variable __L4_SystemClock
        variable __L4_ProcessorControl
        variable __L4_MemoryControl
        variable __L4_QuotaControl
        variable __L4_Inspect
        variable __L4_TaskControl
        variable __L4_CreateThread

        .bss
        .balign 8
        .globl  check_in, check_out, check_calls
check_in:    .skip 128
check_out:   .skip 128
check_calls: .skip 8
        .section .note.GNU-stack, "", @progbits
