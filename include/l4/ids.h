/*
 * l4/ids.h - thread ids and what needs no system call of them (part of l4/types.h).
 */
#ifndef L4_IDS_H
#define L4_IDS_H

#include <l4/types.h>

#define L4_nilthread ((L4_ThreadId_t){ 0UL })
#define L4_anythread ((L4_ThreadId_t){ ~0UL })
#define L4_anylocalthread ((L4_ThreadId_t){ ~0UL << 6 })

L4_INLINE L4_ThreadId_t L4_GlobalId(L4_Word_t threadno, L4_Word_t version)
{
    L4_ThreadId_t id;
    id.raw = threadno << 32 | (version & 0xFFFFFFFFUL);
    return id;
}

L4_INLINE L4_Word_t L4_Version(L4_ThreadId_t t)
{
    return t.raw & 0xFFFFFFFFUL;
}

L4_INLINE L4_Word_t L4_ThreadNo(L4_ThreadId_t t)
{
    return t.raw >> 32;
}

L4_INLINE L4_Bool_t L4_IsThreadEqual(L4_ThreadId_t l, L4_ThreadId_t r)
{
    return l.raw == r.raw;
}

L4_INLINE L4_Bool_t L4_IsThreadNotEqual(L4_ThreadId_t l, L4_ThreadId_t r)
{
    return l.raw != r.raw;
}

L4_INLINE L4_Bool_t L4_IsNilThread(L4_ThreadId_t t)
{
    return t.raw == 0;
}

/* Local iff bits 5..0 are zero; nilthread passes too, so test for it first. */
L4_INLINE L4_Bool_t L4_IsLocalId(L4_ThreadId_t t)
{
    return (t.raw & 0x3FUL) == 0;
}

L4_INLINE L4_Bool_t L4_IsGlobalId(L4_ThreadId_t t)
{
    return (t.raw & 0x3FUL) != 0;
}

#ifdef __cplusplus
L4_INLINE bool operator==(const L4_ThreadId_t &l, const L4_ThreadId_t &r)
{
    return l.raw == r.raw;
}

L4_INLINE bool operator!=(const L4_ThreadId_t &l, const L4_ThreadId_t &r)
{
    return l.raw != r.raw;
}
#endif

#endif
