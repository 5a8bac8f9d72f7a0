/*
 * l4/time.h - times and the clock (part of l4/schedule.h).
 *
 * A Time is 16 bits: a period m * 2^e microseconds, or a point of the clock.
 * Periods round down to 10 significant bits; never and zero are special periods.
 */
#ifndef L4_TIME_H
#define L4_TIME_H

#include <l4/types.h>
#include <l4/amd64/syscalls.h>

#define L4_Never ((L4_Time_t){ 0 })
#define L4_ZeroTime ((L4_Time_t){ 0x0400 })

/* The period of the given microseconds; never if it is beyond 1023 * 2^31. */
L4_INLINE L4_Time_t L4_TimePeriod(L4_Word64_t microseconds)
{
    L4_Time_t time = L4_ZeroTime;
    L4_Word_t e = 0;
    if (microseconds == 0)
        return time;
    while (e <= 31 && microseconds >> e >= 1024)
        e++;
    time.raw = e > 31 ? 0 : (L4_Word16_t)(e << 10 | microseconds >> e);
    return time;
}

/*
 * The point `at`, seen from `now`: the nearest that can be expressed, not later
 * than `at`.  Zero if `at` has passed, never if it is too far away (2^25 us and more).
 */
L4_INLINE L4_Time_t L4_TimePointFrom(L4_Clock_t now, L4_Clock_t at)
{
    L4_Time_t time = L4_ZeroTime;
    L4_Word_t e;
    if (at.raw <= now.raw)
        return time;
    for (e = 0; e < 16; e++) {
        L4_Word64_t distance = (at.raw >> (e + 10)) - (now.raw >> (e + 10));
        if (distance <= 1) {
            time.raw = (L4_Word16_t)(0x8000 | e << 11 | distance << 10
                                     | ((at.raw >> e) & 0x3FF));
            return time;
        }
    }
    return L4_Never;
}

L4_INLINE L4_Time_t L4_TimePoint(L4_Clock_t at)
{
    return L4_TimePointFrom(L4_SystemClock(), at);
}

/* Length of a period in microseconds; all ones for never. */
L4_INLINE L4_Word64_t L4_TimeMicroseconds(L4_Time_t period)
{
    if (period.raw == 0)
        return ~0UL;
    return (L4_Word64_t)(period.raw & 0x3FF) << ((period.raw >> 10) & 0x1F);
}

/* Arithmetic on periods; never absorbs, and a difference is at least zero. */

L4_INLINE L4_Time_t L4_TimeAddUsec(L4_Time_t l, L4_Word_t us)
{
    if (l.raw == 0)
        return l;
    return L4_TimePeriod(L4_TimeMicroseconds(l) + us);
}

L4_INLINE L4_Time_t L4_TimeSubUsec(L4_Time_t l, L4_Word_t us)
{
    L4_Word64_t length = L4_TimeMicroseconds(l);
    if (l.raw == 0)
        return l;
    return L4_TimePeriod(length > us ? length - us : 0);
}

L4_INLINE L4_Time_t L4_TimeAdd(L4_Time_t l, L4_Time_t r)
{
    return r.raw == 0 ? r : L4_TimeAddUsec(l, L4_TimeMicroseconds(r));
}

L4_INLINE L4_Time_t L4_TimeSub(L4_Time_t l, L4_Time_t r)
{
    return L4_TimeSubUsec(l, L4_TimeMicroseconds(r));
}

L4_INLINE L4_Time_t L4_TimeAddUsecTo(L4_Time_t *l, L4_Word_t us)
{
    return *l = L4_TimeAddUsec(*l, us);
}

L4_INLINE L4_Time_t L4_TimeSubUsecFrom(L4_Time_t *l, L4_Word_t us)
{
    return *l = L4_TimeSubUsec(*l, us);
}

L4_INLINE L4_Time_t L4_TimeAddTo(L4_Time_t *l, L4_Time_t r)
{
    return *l = L4_TimeAdd(*l, r);
}

L4_INLINE L4_Time_t L4_TimeSubFrom(L4_Time_t *l, L4_Time_t r)
{
    return *l = L4_TimeSub(*l, r);
}

/* Comparison of periods. */

L4_INLINE L4_Bool_t L4_IsTimeLonger(L4_Time_t l, L4_Time_t r)
{
    return L4_TimeMicroseconds(l) > L4_TimeMicroseconds(r);
}

L4_INLINE L4_Bool_t L4_IsTimeShorter(L4_Time_t l, L4_Time_t r)
{
    return L4_TimeMicroseconds(l) < L4_TimeMicroseconds(r);
}

L4_INLINE L4_Bool_t L4_IsTimeEqual(L4_Time_t l, L4_Time_t r)
{
    return L4_TimeMicroseconds(l) == L4_TimeMicroseconds(r);
}

L4_INLINE L4_Bool_t L4_IsTimeNotEqual(L4_Time_t l, L4_Time_t r)
{
    return !L4_IsTimeEqual(l, r);
}

#ifdef __cplusplus
L4_INLINE L4_Time_t operator+(const L4_Time_t &l, L4_Word_t us)
{
    return L4_TimeAddUsec(l, us);
}

L4_INLINE L4_Time_t operator+(const L4_Time_t &l, const L4_Time_t &r)
{
    return L4_TimeAdd(l, r);
}

L4_INLINE L4_Time_t operator+=(L4_Time_t &l, L4_Word_t us)
{
    return L4_TimeAddUsecTo(&l, us);
}

L4_INLINE L4_Time_t operator+=(L4_Time_t &l, const L4_Time_t &r)
{
    return L4_TimeAddTo(&l, r);
}

L4_INLINE L4_Time_t operator-(const L4_Time_t &l, L4_Word_t us)
{
    return L4_TimeSubUsec(l, us);
}

L4_INLINE L4_Time_t operator-(const L4_Time_t &l, const L4_Time_t &r)
{
    return L4_TimeSub(l, r);
}

L4_INLINE L4_Time_t operator-=(L4_Time_t &l, L4_Word_t us)
{
    return L4_TimeSubUsecFrom(&l, us);
}

L4_INLINE L4_Time_t operator-=(L4_Time_t &l, const L4_Time_t &r)
{
    return L4_TimeSubFrom(&l, r);
}

L4_INLINE bool operator>(const L4_Time_t &l, const L4_Time_t &r)
{
    return L4_IsTimeLonger(l, r) != 0;
}

L4_INLINE bool operator>=(const L4_Time_t &l, const L4_Time_t &r)
{
    return L4_IsTimeShorter(l, r) == 0;
}

L4_INLINE bool operator<(const L4_Time_t &l, const L4_Time_t &r)
{
    return L4_IsTimeShorter(l, r) != 0;
}

L4_INLINE bool operator<=(const L4_Time_t &l, const L4_Time_t &r)
{
    return L4_IsTimeLonger(l, r) == 0;
}

L4_INLINE bool operator==(const L4_Time_t &l, const L4_Time_t &r)
{
    return L4_IsTimeEqual(l, r) != 0;
}

L4_INLINE bool operator!=(const L4_Time_t &l, const L4_Time_t &r)
{
    return L4_IsTimeNotEqual(l, r) != 0;
}
#endif

/* The two timeouts of an IPC in one word: 31..16 send, 15..0 receive. */
L4_INLINE L4_Word_t L4_Timeouts(L4_Time_t SndTimeout, L4_Time_t RcvTimeout)
{
    return (L4_Word_t)SndTimeout.raw << 16 | RcvTimeout.raw;
}

#endif
