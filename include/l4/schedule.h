/*
 * l4/schedule.h - time, SystemClock, ThreadSwitch and Schedule.
 */
#ifndef L4_SCHEDULE_H
#define L4_SCHEDULE_H

#include <l4/time.h>
#include <l4/thread.h>

/* Results of Schedule: the thread's state before the call. */
#define L4_SCHEDRESULT_ERROR 0UL
#define L4_SCHEDRESULT_DEAD 1UL
#define L4_SCHEDRESULT_INACTIVE 2UL
#define L4_SCHEDRESULT_RUNNING 3UL
#define L4_SCHEDRESULT_PENDING_SEND 4UL
#define L4_SCHEDRESULT_SENDING 5UL
#define L4_SCHEDRESULT_WAITING 6UL
#define L4_SCHEDRESULT_RECEIVING 7UL

L4_INLINE void L4_Yield(void)
{
    L4_ThreadSwitch(L4_nilthread);
}

/* 255 is the highest priority. */
L4_INLINE L4_Word_t L4_Set_Priority(L4_ThreadId_t dest, L4_Word_t priority)
{
    L4_Word_t old;
    return L4_Schedule(dest, ~0UL, ~0UL, priority, ~0UL, &old);
}

L4_INLINE L4_Word_t L4_Set_ProcessorNo(L4_ThreadId_t dest, L4_Word_t ProcessorNo)
{
    L4_Word_t old;
    return L4_Schedule(dest, ~0UL, ProcessorNo, ~0UL, ~0UL, &old);
}

/* What is left of the time slice and of the total quantum. */
L4_INLINE L4_Word_t L4_Timeslice(L4_ThreadId_t dest, L4_Time_t *ts, L4_Time_t *tq)
{
    L4_Word_t old, result = L4_Schedule(dest, ~0UL, ~0UL, ~0UL, ~0UL, &old);
    ts->raw = (L4_Word16_t)(old >> 16);
    tq->raw = (L4_Word16_t)old;
    return result;
}

L4_INLINE L4_Word_t L4_Set_Timeslice(L4_ThreadId_t dest, L4_Time_t ts, L4_Time_t tq)
{
    L4_Word_t old;
    return L4_Schedule(dest, (L4_Word_t)ts.raw << 16 | tq.raw, ~0UL, ~0UL, ~0UL, &old);
}

/* A thread may delay preemption by up to `maxDelay` us and threads up to `sensitivePrio`. */
L4_INLINE L4_Word_t L4_Set_PreemptionDelay(L4_ThreadId_t dest, L4_Word_t sensitivePrio,
                                           L4_Word_t maxDelay)
{
    L4_Word_t old, control = (sensitivePrio & 0xFF) << 16 | (maxDelay & 0xFFFF);
    return L4_Schedule(dest, ~0UL, ~0UL, ~0UL, control, &old);
}

#endif
