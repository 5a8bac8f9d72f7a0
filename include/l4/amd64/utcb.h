/*
 * l4/amd64/utcb.h - where a thread's registers lie in its UTCB.
 *
 * The word at %gs:0 is the UTCB pointer U: the address of MR0 and the thread's
 * local id.  Message registers lie upwards from U, control registers and buffer
 * registers below it.  The accesses are volatile: the kernel writes these words
 * behind the compiler's back, and no loop over them must become a call of memcpy.
 */
#ifndef L4_AMD64_UTCB_H
#define L4_AMD64_UTCB_H

#include <l4/types.h>

/* Size of a UTCB in bytes, and U's distance from its start. */
#define __L4_UTCB_SIZE 1024
#define __L4_UTCB_POINTER_OFFSET 512

/* Word indices from U. */
#define __L4_TCR_BR0 (-16)
#define __L4_TCR_MY_GLOBAL_ID (-15)
#define __L4_TCR_PROCESSOR_NO (-14)
#define __L4_TCR_USER_DEFINED_HANDLE (-13)
#define __L4_TCR_PAGER (-12)
#define __L4_TCR_EXCEPTION_HANDLER (-11)
#define __L4_TCR_FLAGS (-10)
#define __L4_TCR_ERROR_CODE (-9)
#define __L4_TCR_XFER_TIMEOUTS (-8)
#define __L4_TCR_INTENDED_RECEIVER (-7)
#define __L4_TCR_VIRTUAL_SENDER (-6)
#define __L4_TCR_THREAD_WORD1 (-5)
#define __L4_TCR_THREAD_WORD0 (-4)

/* Bits of the flags word: preempt flags in byte 0, coprocessor flags in byte 1. */
#define __L4_PREEMPT_SIGNAL 0x20UL
#define __L4_PREEMPT_DELAY 0x40UL
#define __L4_PREEMPT_PENDING 0x80UL
#define __L4_COP_FLAG(n) (0x100UL << (n))

typedef volatile L4_Word_t *__L4_Utcb_t;

/* The calling thread's UTCB pointer; it never changes, so it may be cached. */
L4_INLINE __L4_Utcb_t __L4_Utcb(void)
{
    __L4_Utcb_t utcb;
    __asm__("movq %%gs:0, %0" : "=r"(utcb));
    return utcb;
}

L4_INLINE L4_Word_t __L4_Tcr(int index)
{
    return __L4_Utcb()[index];
}

L4_INLINE void __L4_Set_Tcr(int index, L4_Word_t value)
{
    __L4_Utcb()[index] = value;
}

#endif
