/*
 * l4/exregs.h - the convenience forms of ExchangeRegisters (part of l4/thread.h).
 *
 * They act on active threads of the caller's own space, and on threads whose
 * pager is in the caller's space.  Functions that return a thread id return
 * nilthread when the kernel refused; ErrorCode then says why.
 */
#ifndef L4_EXREGS_H
#define L4_EXREGS_H

#include <l4/thread.h>

/* Control bits. */
#define __L4_EXREGS_HALT 0x001UL
#define __L4_EXREGS_ABORT_RECEIVE 0x002UL
#define __L4_EXREGS_ABORT_SEND 0x004UL
#define __L4_EXREGS_SP 0x008UL
#define __L4_EXREGS_IP 0x010UL
#define __L4_EXREGS_FLAGS 0x020UL
#define __L4_EXREGS_HANDLE 0x040UL
#define __L4_EXREGS_PAGER 0x080UL
#define __L4_EXREGS_HALT_VALID 0x100UL
#define __L4_EXREGS_DELIVER 0x200UL

#define __L4_EXREGS_START \
    (__L4_EXREGS_HALT_VALID | __L4_EXREGS_ABORT_RECEIVE | __L4_EXREGS_ABORT_SEND)
#define __L4_EXREGS_STOP (__L4_EXREGS_DELIVER | __L4_EXREGS_HALT_VALID | __L4_EXREGS_HALT)

/* What a thread was doing when it was stopped. */
typedef struct {
    L4_Word_t raw;
} L4_ThreadState_t;

L4_INLINE L4_Bool_t L4_ThreadWasHalted(L4_ThreadState_t s)
{
    return (s.raw & 1) != 0;
}

L4_INLINE L4_Bool_t L4_ThreadWasReceiving(L4_ThreadState_t s)
{
    return (s.raw & 2) != 0;
}

L4_INLINE L4_Bool_t L4_ThreadWasSending(L4_ThreadState_t s)
{
    return (s.raw & 4) != 0;
}

L4_INLINE L4_Bool_t L4_ThreadWasIpcing(L4_ThreadState_t s)
{
    return (s.raw & 6) != 0;
}

/* Everything the kernel delivers about the target. */
typedef struct {
    L4_ThreadId_t id;
    L4_Word_t control, sp, ip, flags, handle;
    L4_ThreadId_t pager;
} __L4_Registers_t;

L4_INLINE __L4_Registers_t __L4_Exchange(L4_ThreadId_t t, L4_Word_t control, L4_Word_t sp,
                                         L4_Word_t ip, L4_Word_t flags, L4_Word_t handle,
                                         L4_ThreadId_t pager)
{
    __L4_Registers_t old;
    old.id = L4_ExchangeRegisters(t, control, sp, ip, flags, handle, pager, &old.control,
                                  &old.sp, &old.ip, &old.flags, &old.handle, &old.pager);
    return old;
}

L4_INLINE __L4_Registers_t __L4_ExchangeControl(L4_ThreadId_t t, L4_Word_t control)
{
    return __L4_Exchange(t, control, 0, 0, 0, 0, L4_nilthread);
}

/* Conversion between global and local ids. */

L4_INLINE L4_ThreadId_t L4_GlobalIdOf(L4_ThreadId_t t)
{
    return !L4_IsNilThread(t) && L4_IsLocalId(t) ? __L4_ExchangeControl(t, 0).id : t;
}

L4_INLINE L4_ThreadId_t L4_LocalIdOf(L4_ThreadId_t t)
{
    return L4_IsGlobalId(t) ? __L4_ExchangeControl(t, 0).id : t;
}

L4_INLINE L4_ThreadId_t L4_LocalId(L4_ThreadId_t t)
{
    return L4_LocalIdOf(t);
}

L4_INLINE L4_Bool_t L4_SameThreads(L4_ThreadId_t l, L4_ThreadId_t r)
{
    return L4_IsThreadEqual(L4_GlobalIdOf(l), L4_GlobalIdOf(r));
}

/* Other threads' registers. */

L4_INLINE L4_Word_t L4_UserDefinedHandleOf(L4_ThreadId_t t)
{
    return __L4_ExchangeControl(t, __L4_EXREGS_DELIVER).handle;
}

L4_INLINE L4_ThreadId_t L4_Set_UserDefinedHandleOf(L4_ThreadId_t t, L4_Word_t handle)
{
    return __L4_Exchange(t, __L4_EXREGS_HANDLE, 0, 0, 0, handle, L4_nilthread).id;
}

L4_INLINE L4_ThreadId_t L4_PagerOf(L4_ThreadId_t t)
{
    return __L4_ExchangeControl(t, __L4_EXREGS_DELIVER).pager;
}

L4_INLINE L4_ThreadId_t L4_Set_PagerOf(L4_ThreadId_t t, L4_ThreadId_t pager)
{
    return __L4_Exchange(t, __L4_EXREGS_PAGER, 0, 0, 0, 0, pager).id;
}

/* Start: aborts an ongoing IPC (the wait for a start message, too) and runs the thread. */

L4_INLINE L4_ThreadId_t L4_Start(L4_ThreadId_t t)
{
    return __L4_ExchangeControl(t, __L4_EXREGS_START).id;
}

L4_INLINE L4_ThreadId_t L4_Start_SpIp(L4_ThreadId_t t, L4_Word_t sp, L4_Word_t ip)
{
    L4_Word_t control = __L4_EXREGS_START | __L4_EXREGS_SP | __L4_EXREGS_IP;
    return __L4_Exchange(t, control, sp, ip, 0, 0, L4_nilthread).id;
}

L4_INLINE L4_ThreadId_t L4_Start_SpIpFlags(L4_ThreadId_t t, L4_Word_t sp, L4_Word_t ip,
                                           L4_Word_t flags)
{
    L4_Word_t control =
        __L4_EXREGS_START | __L4_EXREGS_SP | __L4_EXREGS_IP | __L4_EXREGS_FLAGS;
    return __L4_Exchange(t, control, sp, ip, flags, 0, L4_nilthread).id;
}

/* Stop: halts the thread, with or without aborting what it does; delivers its state. */

L4_INLINE L4_ThreadState_t __L4_StopWith(L4_ThreadId_t t, L4_Word_t abort, L4_Word_t *sp,
                                         L4_Word_t *ip, L4_Word_t *flags)
{
    __L4_Registers_t old = __L4_ExchangeControl(t, __L4_EXREGS_STOP | abort);
    L4_ThreadState_t state;
    state.raw = old.control;
    *sp = old.sp;
    *ip = old.ip;
    *flags = old.flags;
    return state;
}

#define __L4_DEFINE_STOP(name, abort)                                                   \
    L4_INLINE L4_ThreadState_t name##_SpIpFlags(L4_ThreadId_t t, L4_Word_t *sp,         \
                                                L4_Word_t *ip, L4_Word_t *flags)        \
    {                                                                                   \
        return __L4_StopWith(t, abort, sp, ip, flags);                                  \
    }                                                                                   \
    L4_INLINE L4_ThreadState_t name(L4_ThreadId_t t)                                    \
    {                                                                                   \
        L4_Word_t sp, ip, flags;                                                        \
        return __L4_StopWith(t, abort, &sp, &ip, &flags);                               \
    }

__L4_DEFINE_STOP(L4_Stop, 0)
__L4_DEFINE_STOP(L4_AbortReceive_and_stop, __L4_EXREGS_ABORT_RECEIVE)
__L4_DEFINE_STOP(L4_AbortSend_and_stop, __L4_EXREGS_ABORT_SEND)
__L4_DEFINE_STOP(L4_AbortIpc_and_stop, __L4_EXREGS_ABORT_RECEIVE | __L4_EXREGS_ABORT_SEND)

#ifdef __cplusplus
L4_INLINE L4_ThreadId_t L4_GlobalId(L4_ThreadId_t t)
{
    return L4_GlobalIdOf(t);
}

L4_INLINE L4_Word_t L4_UserDefinedHandle(L4_ThreadId_t t)
{
    return L4_UserDefinedHandleOf(t);
}

L4_INLINE void L4_Set_UserDefinedHandle(L4_ThreadId_t t, L4_Word_t handle)
{
    (void)L4_Set_UserDefinedHandleOf(t, handle);
}

L4_INLINE L4_ThreadId_t L4_Pager(L4_ThreadId_t t)
{
    return L4_PagerOf(t);
}

L4_INLINE void L4_Set_Pager(L4_ThreadId_t t, L4_ThreadId_t pager)
{
    (void)L4_Set_PagerOf(t, pager);
}

L4_INLINE L4_ThreadId_t L4_Start(L4_ThreadId_t t, L4_Word_t sp, L4_Word_t ip)
{
    return L4_Start_SpIp(t, sp, ip);
}

L4_INLINE L4_ThreadId_t L4_Start(L4_ThreadId_t t, L4_Word_t sp, L4_Word_t ip, L4_Word_t flags)
{
    return L4_Start_SpIpFlags(t, sp, ip, flags);
}

#define __L4_OVERLOAD_STOP(name)                                                        \
    L4_INLINE L4_ThreadState_t name(L4_ThreadId_t t, L4_Word_t *sp, L4_Word_t *ip,      \
                                    L4_Word_t *flags)                                   \
    {                                                                                   \
        return name##_SpIpFlags(t, sp, ip, flags);                                      \
    }

__L4_OVERLOAD_STOP(L4_Stop)
__L4_OVERLOAD_STOP(L4_AbortReceive_and_stop)
__L4_OVERLOAD_STOP(L4_AbortSend_and_stop)
__L4_OVERLOAD_STOP(L4_AbortIpc_and_stop)
#endif

#endif
