/*
 * lrpc.h - procedure calls as the kernel takes them (docs/calls/lrpc.md), and where A-stacks lie in
 * a task of the root task's (lib/proto/src/layout.rs).
 */
#ifndef LRPC_H
#define LRPC_H

#include <l4/ipc.h>

#define LRPC_BIND 22L
#define LRPC_CONTROL 23L
#define LRPC_CALL 25L
#define LRPC_REVOKE 1
/* How a call ended; more than these are an A-stack or nothing. */
#define LRPC_DONE 0
#define LRPC_NO_BINDING 1
#define LRPC_IN_USE 2
#define LRPC_NO_PROCEDURE 3
#define LRPC_NO_HOST 4

#define LRPC_A_STACKS 0xBF004000UL
#define LRPC_A_STACK_PAGES 60
#define LRPC_A_STACK_BYTES 4096
/* Of these, what holds a message's words; its string lies behind them. */
#define LRPC_WORD_BYTES 512
#define LRPC_STRING_BYTES (LRPC_A_STACK_BYTES - LRPC_WORD_BYTES)
/* Words of a request, and of an answer, that travel in registers. */
#define LRPC_THERE 6
#define LRPC_BACK 7

/* The call `number` with MR0 to MR7 in `mr`, which it changes; RSI afterwards. */
static inline L4_Word_t lrpc_trap(long number, L4_Word_t rsi, L4_Word_t rdx, L4_Word_t mr[8])
{
    L4_Word_t registers = (L4_Word_t)mr;
    register L4_Word_t call __asm__("r8") = -(L4_Word_t)number;
    __asm__ __volatile__("pushq %%rbp\n\t"
                         "pushq %%rdi\n\t" __L4_LOAD_MRS
                         "xorl  %%edi, %%edi\n\t"
                         "syscall\n\t"
                         "popq  %%rdi\n\t"
                         "popq  %%rbp\n\t" __L4_STORE_MRS
                         : "+D"(registers), "+S"(rsi), "+d"(rdx), "+r"(call)
                         :
                         : "rax", "rcx", "r9", "r10", __L4_CLOBBERS
                               __L4_VECTOR_CLOBBERS __L4_MASK_CLOBBERS);
    return rsi;
}

#endif
