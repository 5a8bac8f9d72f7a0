/*
 * crt0.S - where a C program starts.
 *
 * A new thread finds nothing but an instruction pointer; an initial server not
 * even a stack.  This code loads a stack pointer of its own, finds the kernel
 * interface page with `lock nop`, copies the system-call links to the variables
 * that the inline calls go through, and calls main(0, {NULL}).
 * The loader has zeroed .bss.
 */

#define STACK_SIZE 65536

/* Offsets in the kernel interface page. */
#define KIP_BATON_DESC_PTR 0x0A0
#define KIP_SPACE_CONTROL 0x1A0
#define KIP_THREAD_CONTROL 0x1A8
#define KIP_PROCESSOR_CONTROL 0x1B0
#define KIP_MEMORY_CONTROL 0x1B8
#define KIP_IPC 0x1C0
#define KIP_LIPC 0x1C8
#define KIP_UNMAP 0x1D0
#define KIP_EXCHANGE_REGISTERS 0x1D8
#define KIP_SYSTEM_CLOCK 0x1E0
#define KIP_THREAD_SWITCH 0x1E8
#define KIP_SCHEDULE 0x1F0

/* Baton's extension descriptor: magic, version, links. */
#define BATON_MAGIC 0x0000004E4F544142
#define BATON_QUOTA_CONTROL 16
#define BATON_VERSION 8
#define BATON_INSPECT 24
#define BATON_TASK_CONTROL 48
#define BATON_CREATE_THREAD 56
#define BATON_LOCAL_CALL 64
#define BATON_LOCAL_REPLY_WAIT 72
#define BATON_LAST_OFFSET (4096 - 40) /* of version 1; later ones are longer */

        .section .text.start, "ax", @progbits
        .globl  _start
        .type   _start, @function
_start:
        leaq    l4c_stack_top(%rip), %rsp
        xorl    %ebp, %ebp
        cld
        .byte   0xf0, 0x90              /* lock nop: RAX = the interface page */
        movq    %rax, %rbx
        call    l4c_fill_links
        xorl    %edi, %edi
        leaq    l4c_no_arguments(%rip), %rsi
        call    main
        movl    %eax, %edi
        call    exit
1:      pause                           /* exit does not return */
        jmp     1b
        .size   _start, . - _start

/* RBX = the interface page.  Fills the link variables; changes RAX, RCX, RDX. */
        .type   l4c_fill_links, @function
l4c_fill_links:
        .macro  link variable, offset
        movq    \offset(%rbx), %rax
        movq    %rax, \variable(%rip)
        .endm
        link    __L4_SpaceControl, KIP_SPACE_CONTROL
        link    __L4_ThreadControl, KIP_THREAD_CONTROL
        link    __L4_ProcessorControl, KIP_PROCESSOR_CONTROL
        link    __L4_MemoryControl, KIP_MEMORY_CONTROL
        link    __L4_Ipc, KIP_IPC
        link    __L4_Lipc, KIP_LIPC
        link    __L4_LocalCall, KIP_LIPC
        link    __L4_LocalReplyWait, KIP_LIPC
        link    __L4_Unmap, KIP_UNMAP
        link    __L4_ExchangeRegisters, KIP_EXCHANGE_REGISTERS
        link    __L4_SystemClock, KIP_SYSTEM_CLOCK
        link    __L4_ThreadSwitch, KIP_THREAD_SWITCH
        link    __L4_Schedule, KIP_SCHEDULE

        /* The extensions exist only where the descriptor says so. */
        movq    KIP_BATON_DESC_PTR(%rbx), %rcx
        leaq    -1(%rcx), %rdx
        cmpq    $BATON_LAST_OFFSET, %rdx
        jae     1f
        testb   $7, %cl
        jnz     1f
        addq    %rbx, %rcx
        movabsq $BATON_MAGIC, %rax
        cmpq    %rax, (%rcx)
        jne     1f
        movq    BATON_QUOTA_CONTROL(%rcx), %rax
        movq    %rax, __L4_QuotaControl(%rip)
        movq    BATON_INSPECT(%rcx), %rax
        movq    %rax, __L4_Inspect(%rip)
        cmpq    $3, BATON_VERSION(%rcx)
        jb      1f
        movq    BATON_TASK_CONTROL(%rcx), %rax
        movq    %rax, __L4_TaskControl(%rip)
        movq    BATON_CREATE_THREAD(%rcx), %rax
        movq    %rax, __L4_CreateThread(%rip)
        cmpq    $4, BATON_VERSION(%rcx)
        jb      1f
        movq    BATON_LOCAL_CALL(%rcx), %rax
        movq    %rax, __L4_LocalCall(%rip)
        movq    BATON_LOCAL_REPLY_WAIT(%rcx), %rax
        movq    %rax, __L4_LocalReplyWait(%rip)
1:      ret
        .size   l4c_fill_links, . - l4c_fill_links

/* What the links of absent system calls lead to: result 0. */
        .type   l4c_absent_call, @function
l4c_absent_call:
        xorl    %eax, %eax
        ret
        .size   l4c_absent_call, . - l4c_absent_call

        .macro  variable name, value=0
        .globl  \name
        .type   \name, @object
        .size   \name, 8
\name:  .quad   \value
        .endm

        .data
        .balign 64
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
        variable __L4_QuotaControl, l4c_absent_call
        variable __L4_Inspect, l4c_absent_call
        variable __L4_TaskControl, l4c_absent_call
        variable __L4_CreateThread, l4c_absent_call
l4c_no_arguments:
        .quad   0

        .bss
        .balign 4096
        .skip   STACK_SIZE
l4c_stack_top:

        .section .note.GNU-stack, "", @progbits
