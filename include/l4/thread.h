/*
 * l4/thread.h - thread ids, thread control registers, ThreadControl.
 *
 * The control registers (TCRs) are plain words of the caller's UTCB; reading or
 * writing one costs a memory access, not a system call.
 */
#ifndef L4_THREAD_H
#define L4_THREAD_H

#include <l4/types.h>
#include <l4/amd64/syscalls.h>

/* ErrorCode after a failed system call other than Ipc and Lipc. */
#define L4_ErrOk 0UL
#define L4_ErrNoPrivilege 1UL
#define L4_ErrInvalidThread 2UL
#define L4_ErrInvalidSpace 3UL
#define L4_ErrInvalidScheduler 4UL
#define L4_ErrInvalidParam 5UL
#define L4_ErrUtcbArea 6UL
#define L4_ErrKipArea 7UL
#define L4_ErrNoMem 8UL

/* The caller. */

L4_INLINE L4_ThreadId_t L4_MyLocalId(void)
{
    L4_ThreadId_t id;
    id.raw = (L4_Word_t)__L4_Utcb();
    return id;
}

L4_INLINE L4_ThreadId_t L4_MyGlobalId(void)
{
    L4_ThreadId_t id;
    id.raw = __L4_Tcr(__L4_TCR_MY_GLOBAL_ID);
    return id;
}

L4_INLINE L4_ThreadId_t L4_Myself(void)
{
    return L4_MyGlobalId();
}

/* Thread control registers. */

L4_INLINE L4_Word_t L4_ProcessorNo(void)
{
    return __L4_Tcr(__L4_TCR_PROCESSOR_NO);
}

L4_INLINE L4_Word_t L4_UserDefinedHandle(void)
{
    return __L4_Tcr(__L4_TCR_USER_DEFINED_HANDLE);
}

L4_INLINE void L4_Set_UserDefinedHandle(L4_Word_t NewValue)
{
    __L4_Set_Tcr(__L4_TCR_USER_DEFINED_HANDLE, NewValue);
}

L4_INLINE L4_ThreadId_t L4_Pager(void)
{
    L4_ThreadId_t id;
    id.raw = __L4_Tcr(__L4_TCR_PAGER);
    return id;
}

/* The pager must be given by its global id. */
L4_INLINE void L4_Set_Pager(L4_ThreadId_t NewPager)
{
    __L4_Set_Tcr(__L4_TCR_PAGER, NewPager.raw);
}

L4_INLINE L4_ThreadId_t L4_ExceptionHandler(void)
{
    L4_ThreadId_t id;
    id.raw = __L4_Tcr(__L4_TCR_EXCEPTION_HANDLER);
    return id;
}

/* The handler must be given by its global id; nilthread: an exception halts. */
L4_INLINE void L4_Set_ExceptionHandler(L4_ThreadId_t NewHandler)
{
    __L4_Set_Tcr(__L4_TCR_EXCEPTION_HANDLER, NewHandler.raw);
}

L4_INLINE L4_Word_t L4_ErrorCode(void)
{
    return __L4_Tcr(__L4_TCR_ERROR_CODE);
}

/* Timeouts of page faults during string transfer: 31..16 send, 15..0 receive. */
L4_INLINE L4_Word_t L4_XferTimeouts(void)
{
    return __L4_Tcr(__L4_TCR_XFER_TIMEOUTS);
}

L4_INLINE void L4_Set_XferTimeouts(L4_Word_t NewValue)
{
    __L4_Set_Tcr(__L4_TCR_XFER_TIMEOUTS, NewValue);
}

L4_INLINE L4_ThreadId_t L4_IntendedReceiver(void)
{
    L4_ThreadId_t id;
    id.raw = __L4_Tcr(__L4_TCR_INTENDED_RECEIVER);
    return id;
}

L4_INLINE L4_ThreadId_t L4_ActualSender(void)
{
    L4_ThreadId_t id;
    id.raw = __L4_Tcr(__L4_TCR_VIRTUAL_SENDER);
    return id;
}

/* The sender that a propagated message shall appear to come from; a global id. */
L4_INLINE void L4_Set_VirtualSender(L4_ThreadId_t t)
{
    __L4_Set_Tcr(__L4_TCR_VIRTUAL_SENDER, t.raw);
}

/* Two words that the kernel never touches; free for the thread itself. */
L4_INLINE L4_Word_t L4_ThreadWord(L4_Word_t n)
{
    return __L4_Tcr(n ? __L4_TCR_THREAD_WORD1 : __L4_TCR_THREAD_WORD0);
}

L4_INLINE void L4_Set_ThreadWord(L4_Word_t n, L4_Word_t NewValue)
{
    __L4_Set_Tcr(n ? __L4_TCR_THREAD_WORD1 : __L4_TCR_THREAD_WORD0, NewValue);
}

/*
 * Preemption and coprocessor flags.  The kernel may set the pending flag at any
 * instruction, so each change is one instruction on the byte concerned.
 */

L4_INLINE L4_Bool_t __L4_SetFlagBits(L4_Word8_t byte, L4_Word8_t bits)
{
    volatile L4_Word8_t *flags = (volatile L4_Word8_t *)(__L4_Utcb() + __L4_TCR_FLAGS) + byte;
    L4_Bool_t old = (*flags & bits) != 0;
    __asm__ __volatile__("orb %1, %0" : "+m"(*flags) : "qi"(bits) : "cc");
    return old;
}

L4_INLINE L4_Bool_t __L4_ClearFlagBits(L4_Word8_t byte, L4_Word8_t bits)
{
    volatile L4_Word8_t *flags = (volatile L4_Word8_t *)(__L4_Utcb() + __L4_TCR_FLAGS) + byte;
    L4_Word8_t keep = (L4_Word8_t)~bits;
    L4_Bool_t old = (*flags & bits) != 0;
    __asm__ __volatile__("andb %1, %0" : "+m"(*flags) : "qi"(keep) : "cc");
    return old;
}

/* Hint: coprocessor n is in use. */
L4_INLINE void L4_Set_CopFlag(L4_Word_t n)
{
    __L4_SetFlagBits(1, (L4_Word8_t)(1U << (n & 7)));
}

L4_INLINE void L4_Clear_CopFlag(L4_Word_t n)
{
    __L4_ClearFlagBits(1, (L4_Word8_t)(1U << (n & 7)));
}

/* The following deliver the flag's old value. */

/* Sends a preemption fault to the exception handler when a slice ends. */
L4_INLINE L4_Bool_t L4_EnablePreemptionFaultException(void)
{
    return __L4_SetFlagBits(0, __L4_PREEMPT_SIGNAL);
}

L4_INLINE L4_Bool_t L4_DisablePreemptionFaultException(void)
{
    return __L4_ClearFlagBits(0, __L4_PREEMPT_SIGNAL);
}

/* Lets preemptions happen at once again (clears the delay flag). */
L4_INLINE L4_Bool_t L4_EnablePreemption(void)
{
    return __L4_ClearFlagBits(0, __L4_PREEMPT_DELAY);
}

/* Asks the kernel to delay preemptions (sets the delay flag). */
L4_INLINE L4_Bool_t L4_DisablePreemption(void)
{
    return __L4_SetFlagBits(0, __L4_PREEMPT_DELAY);
}

/* Whether a preemption was delayed since the last call; clears the mark. */
L4_INLINE L4_Bool_t L4_PreemptionPending(void)
{
    return __L4_ClearFlagBits(0, __L4_PREEMPT_PENDING);
}

/* Interrupts: a thread id with the line as its number and version 1. */

L4_INLINE L4_Word_t L4_AssociateInterrupt(L4_ThreadId_t InterruptThread,
                                          L4_ThreadId_t HandlerThread)
{
    return L4_ThreadControl(InterruptThread, InterruptThread, L4_nilthread, HandlerThread,
                            (void *)~0UL);
}

L4_INLINE L4_Word_t L4_DeassociateInterrupt(L4_ThreadId_t InterruptThread)
{
    return L4_ThreadControl(InterruptThread, InterruptThread, L4_nilthread,
                            InterruptThread, (void *)~0UL);
}

#include <l4/exregs.h>

#endif
