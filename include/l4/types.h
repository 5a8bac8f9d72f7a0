/*
 * l4/types.h - the words of the L4 X.2 interface, 64-bit AMD64 binding.
 *
 * Every type is one machine word (or a few) with a plain `raw` view and, where
 * the interface defines fields, a bit-field view `X`.  Bit 0 is the least
 * significant bit; bit-fields are allocated from bit 0 upwards.
 */
#ifndef L4_TYPES_H
#define L4_TYPES_H

#if !defined(__x86_64__) || !defined(__LP64__)
# error "these headers bind L4 X.2 to 64-bit AMD64; compile with a 64-bit x86 compiler"
#endif

#define L4_INLINE static inline

typedef unsigned char L4_Word8_t;
typedef unsigned short L4_Word16_t;
typedef unsigned int L4_Word32_t;
typedef unsigned long L4_Word64_t;
typedef unsigned long L4_Word_t;

typedef unsigned long L4_Size_t;

/* 0 is false, anything else is true. */
typedef L4_Word_t L4_Bool_t;

/* The processor that these headers bind to, for programs for several. */
#define L4_ARCH_AMD64
#define L4_BITS_PER_WORD 64
#define L4_64BIT
#define L4_LITTLE_ENDIAN
#define __L4_INC_ARCH(file) <l4/amd64/file>

/* Number of message registers and of buffer registers in a UTCB. */
#define __L4_NUM_MRS 64
#define __L4_NUM_BRS 33
/* The names without underscores are additions of this implementation. */
#define L4_NUM_MRS __L4_NUM_MRS
#define L4_NUM_BRS __L4_NUM_BRS

/* Global thread id: version bits 5..0 are not all zero. */
typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t version : 32;
        L4_Word_t thread_no : 32;
    } X;
} L4_GthreadId_t;

/* Local thread id: the UTCB pointer of a thread in the same space. */
typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t zeros : 6;
        L4_Word_t local_id : 58;
    } X;
} L4_LthreadId_t;

typedef union {
    L4_Word_t raw;
    L4_GthreadId_t global;
    L4_LthreadId_t local;
} L4_ThreadId_t;

/* Flexpage: a naturally aligned region of 2^s bytes with rights r=4 w=2 x=1. */
typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t rwx : 3;
        L4_Word_t extended : 1;
        L4_Word_t s : 6;
        L4_Word_t b : 54;
    } X;
} L4_Fpage_t;

/* Message tag, MR0.  flags: 8 error, 4 xcpu, 2 redirected, 1 propagated. */
typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t u : 6;
        L4_Word_t t : 6;
        L4_Word_t flags : 4;
        L4_Word_t label : 48;
    } X;
} L4_MsgTag_t;

/* Clock: microseconds. */
typedef union {
    L4_Word64_t raw;
    struct {
        L4_Word32_t low;
        L4_Word32_t high;
    } X;
} L4_Clock_t;

/* Time: a period m * 2^e microseconds (a = 0) or a point (a = 1). */
typedef union {
    L4_Word16_t raw;
    struct {
        L4_Word16_t m : 10;
        L4_Word16_t e : 5;
        L4_Word16_t a : 1;
    } period;
    struct {
        L4_Word16_t m : 10;
        L4_Word16_t c : 1;
        L4_Word16_t e : 4;
        L4_Word16_t a : 1;
    } point;
} L4_Time_t;

/* Clock arithmetic; the interface defines these as operators for C++. */

L4_INLINE L4_Clock_t L4_ClockAddUsec(L4_Clock_t clock, L4_Word64_t usec)
{
    clock.raw += usec;
    return clock;
}

L4_INLINE L4_Clock_t L4_ClockSubUsec(L4_Clock_t clock, L4_Word64_t usec)
{
    clock.raw -= usec;
    return clock;
}

L4_INLINE L4_Bool_t L4_IsClockEarlier(L4_Clock_t left, L4_Clock_t right)
{
    return left.raw < right.raw;
}

L4_INLINE L4_Bool_t L4_IsClockLater(L4_Clock_t left, L4_Clock_t right)
{
    return left.raw > right.raw;
}

L4_INLINE L4_Bool_t L4_IsClockEqual(L4_Clock_t left, L4_Clock_t right)
{
    return left.raw == right.raw;
}

L4_INLINE L4_Bool_t L4_IsClockNotEqual(L4_Clock_t left, L4_Clock_t right)
{
    return left.raw != right.raw;
}

#ifdef __cplusplus
L4_INLINE L4_Clock_t operator+(const L4_Clock_t &l, int usec)
{
    return L4_ClockAddUsec(l, (L4_Word64_t)usec);
}

L4_INLINE L4_Clock_t operator+(const L4_Clock_t &l, L4_Word64_t usec)
{
    return L4_ClockAddUsec(l, usec);
}

L4_INLINE L4_Clock_t operator+(const L4_Clock_t &l, const L4_Clock_t &r)
{
    return L4_ClockAddUsec(l, r.raw);
}

L4_INLINE L4_Clock_t operator-(const L4_Clock_t &l, int usec)
{
    return L4_ClockSubUsec(l, (L4_Word64_t)usec);
}

L4_INLINE L4_Clock_t operator-(const L4_Clock_t &l, L4_Word64_t usec)
{
    return L4_ClockSubUsec(l, usec);
}

L4_INLINE L4_Clock_t operator-(const L4_Clock_t &l, const L4_Clock_t &r)
{
    return L4_ClockSubUsec(l, r.raw);
}

L4_INLINE bool operator<(const L4_Clock_t &l, const L4_Clock_t &r)
{
    return L4_IsClockEarlier(l, r) != 0;
}

L4_INLINE bool operator>(const L4_Clock_t &l, const L4_Clock_t &r)
{
    return L4_IsClockLater(l, r) != 0;
}

L4_INLINE bool operator<=(const L4_Clock_t &l, const L4_Clock_t &r)
{
    return L4_IsClockLater(l, r) == 0;
}

L4_INLINE bool operator>=(const L4_Clock_t &l, const L4_Clock_t &r)
{
    return L4_IsClockEarlier(l, r) == 0;
}

L4_INLINE bool operator==(const L4_Clock_t &l, const L4_Clock_t &r)
{
    return L4_IsClockEqual(l, r) != 0;
}

L4_INLINE bool operator!=(const L4_Clock_t &l, const L4_Clock_t &r)
{
    return L4_IsClockNotEqual(l, r) != 0;
}
#endif

#include <l4/ids.h>

#endif
