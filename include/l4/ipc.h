/*
 * l4/ipc.h - the convenience forms of Ipc and Lipc.
 *
 * Load the message registers first (l4/message.h).  Each function is one system
 * call; where it both sends and receives nothing happens in between.  The returned
 * tag is that of the received message; test it with L4_IpcFailed.
 */
#ifndef L4_IPC_H
#define L4_IPC_H

#include <l4/message.h>
#include <l4/thread.h>
#include <l4/time.h>

/* Flags of a returned tag. */

L4_INLINE L4_Bool_t L4_IpcFailed(L4_MsgTag_t t)
{
    return (t.raw & __L4_TAG_ERROR) != 0;
}

L4_INLINE L4_Bool_t L4_IpcSucceeded(L4_MsgTag_t t)
{
    return (t.raw & __L4_TAG_ERROR) == 0;
}

L4_INLINE L4_Bool_t L4_IpcXcpu(L4_MsgTag_t t)
{
    return (t.raw & __L4_TAG_XCPU) != 0;
}

L4_INLINE L4_Bool_t L4_IpcRedirected(L4_MsgTag_t t)
{
    return (t.raw & __L4_TAG_REDIRECTED) != 0;
}

L4_INLINE L4_Bool_t L4_IpcPropagated(L4_MsgTag_t t)
{
    return (t.raw & __L4_TAG_PROPAGATED) != 0;
}

/* Parts of ErrorCode after a failed IPC (names of this implementation). */

#define L4_IpcErrTimeout 1UL
#define L4_IpcErrNonExisting 2UL
#define L4_IpcErrCancelled 3UL
#define L4_IpcErrOverflow 4UL
#define L4_IpcErrXferTimeoutOwn 5UL
#define L4_IpcErrXferTimeoutPartner 6UL
#define L4_IpcErrAborted 7UL

L4_INLINE L4_Word_t L4_IpcErrorKind(L4_Word_t ErrorCode)
{
    return (ErrorCode >> 1) & 7;
}

L4_INLINE L4_Bool_t L4_IpcErrorInReceive(L4_Word_t ErrorCode)
{
    return ErrorCode & 1;
}

/* Bytes of string data transferred before the failure. */
L4_INLINE L4_Word_t L4_IpcErrorOffset(L4_Word_t ErrorCode)
{
    return ErrorCode >> 4;
}

/* Sending only. */

L4_INLINE L4_MsgTag_t L4_Send_Timeout(L4_ThreadId_t to, L4_Time_t SndTimeout)
{
    L4_ThreadId_t nobody;
    return L4_Ipc(to, L4_nilthread, L4_Timeouts(SndTimeout, L4_Never), &nobody);
}

L4_INLINE L4_MsgTag_t L4_Send(L4_ThreadId_t to)
{
    return L4_Send_Timeout(to, L4_Never);
}

/* Sends if the partner waits already, else fails. */
L4_INLINE L4_MsgTag_t L4_Reply(L4_ThreadId_t to)
{
    return L4_Send_Timeout(to, L4_ZeroTime);
}

/* Receiving only. */

L4_INLINE L4_MsgTag_t L4_Receive_Timeout(L4_ThreadId_t from, L4_Time_t RcvTimeout)
{
    L4_ThreadId_t sender;
    return L4_Ipc(L4_nilthread, from, L4_Timeouts(L4_Never, RcvTimeout), &sender);
}

L4_INLINE L4_MsgTag_t L4_Receive(L4_ThreadId_t from)
{
    return L4_Receive_Timeout(from, L4_Never);
}

L4_INLINE L4_MsgTag_t L4_Wait_Timeout(L4_Time_t RcvTimeout, L4_ThreadId_t *from)
{
    return L4_Ipc(L4_nilthread, L4_anythread, L4_Timeouts(L4_Never, RcvTimeout), from);
}

L4_INLINE L4_MsgTag_t L4_Wait(L4_ThreadId_t *from)
{
    return L4_Wait_Timeout(L4_Never, from);
}

/* Both. */

L4_INLINE L4_MsgTag_t L4_Call_Timeouts(L4_ThreadId_t to, L4_Time_t SndTimeout,
                                       L4_Time_t RcvTimeout)
{
    L4_ThreadId_t sender;
    return L4_Ipc(to, to, L4_Timeouts(SndTimeout, RcvTimeout), &sender);
}

L4_INLINE L4_MsgTag_t L4_Call(L4_ThreadId_t to)
{
    return L4_Call_Timeouts(to, L4_Never, L4_Never);
}

L4_INLINE L4_MsgTag_t L4_ReplyWait_Timeout(L4_ThreadId_t to, L4_Time_t RcvTimeout,
                                           L4_ThreadId_t *from)
{
    return L4_Ipc(to, L4_anythread, L4_Timeouts(L4_ZeroTime, RcvTimeout), from);
}

L4_INLINE L4_MsgTag_t L4_ReplyWait(L4_ThreadId_t to, L4_ThreadId_t *from)
{
    return L4_ReplyWait_Timeout(to, L4_Never, from);
}

/* Within one space. */

/* Whether `to` is the local id of a thread: neither nilthread nor anylocalthread. */
L4_INLINE L4_Bool_t __L4_IsInside(L4_ThreadId_t to)
{
    return (to.raw & 0x3FUL) == 0 && to.raw + 64 > 64;
}

L4_INLINE L4_MsgTag_t L4_Lcall(L4_ThreadId_t to)
{
    L4_ThreadId_t sender;
    if (!__L4_IsInside(to))
        return L4_Lipc(to, to, L4_Timeouts(L4_Never, L4_Never), &sender);
    return __L4_CallInside(to, to, L4_Timeouts(L4_Never, L4_Never), &sender);
}

L4_INLINE L4_MsgTag_t L4_LreplyWait(L4_ThreadId_t to, L4_ThreadId_t *from)
{
    L4_Word_t limits = L4_Timeouts(L4_ZeroTime, L4_Never);
    if (!__L4_IsInside(to))
        return L4_Lipc(to, L4_anylocalthread, limits, from);
    return __L4_ReplyWaitInside(to, L4_anylocalthread, limits, from);
}

/* Sleeps: a message from oneself never comes. */
L4_INLINE void L4_Sleep(L4_Time_t t)
{
    L4_Set_MsgTag(L4_Receive_Timeout(L4_MyGlobalId(), t));
}

#ifdef __cplusplus
L4_INLINE L4_MsgTag_t L4_Send(L4_ThreadId_t to, L4_Time_t SndTimeout)
{
    return L4_Send_Timeout(to, SndTimeout);
}

L4_INLINE L4_MsgTag_t L4_Receive(L4_ThreadId_t from, L4_Time_t RcvTimeout)
{
    return L4_Receive_Timeout(from, RcvTimeout);
}

L4_INLINE L4_MsgTag_t L4_Wait(L4_Time_t RcvTimeout, L4_ThreadId_t *from)
{
    return L4_Wait_Timeout(RcvTimeout, from);
}

L4_INLINE L4_MsgTag_t L4_Call(L4_ThreadId_t to, L4_Time_t SndTimeout, L4_Time_t RcvTimeout)
{
    return L4_Call_Timeouts(to, SndTimeout, RcvTimeout);
}

L4_INLINE L4_MsgTag_t L4_ReplyWait(L4_ThreadId_t to, L4_Time_t RcvTimeout, L4_ThreadId_t *from)
{
    return L4_ReplyWait_Timeout(to, RcvTimeout, from);
}
#endif

#endif
