/*
 * l4/space.h - flexpages, Unmap, SpaceControl.
 */
#ifndef L4_SPACE_H
#define L4_SPACE_H

#include <l4/types.h>
#include <l4/thread.h>

#define L4_Nilpage ((L4_Fpage_t){ 0UL })
#define L4_CompleteAddressSpace ((L4_Fpage_t){ 0x10UL })

/* Access rights. */
#define L4_eXecutable 0x01UL
#define L4_Writable 0x02UL
#define L4_Readable 0x04UL
#define L4_NoAccess 0x00UL
#define L4_ReadeXecOnly (L4_Readable | L4_eXecutable)
#define L4_ReadWriteOnly (L4_Readable | L4_Writable)
#define L4_FullyAccessible (L4_Readable | L4_Writable | L4_eXecutable)

L4_INLINE L4_Bool_t L4_IsNilFpage(L4_Fpage_t f)
{
    return f.raw == 0;
}

/* The flexpage of 2^FpageSizeLog2 bytes that contains BaseAddress; no rights. */
L4_INLINE L4_Fpage_t L4_FpageLog2(L4_Word_t BaseAddress, L4_Word_t FpageSizeLog2)
{
    L4_Fpage_t f;
    L4_Word_t base = FpageSizeLog2 >= 64 ? 0 : BaseAddress >> FpageSizeLog2 << FpageSizeLog2;
    f.raw = (base & ~0x3FFUL) | (FpageSizeLog2 & 0x3F) << 4;
    return f;
}

/* As FpageLog2, with the size in bytes; rounds up to a power of two. */
L4_INLINE L4_Fpage_t L4_Fpage(L4_Word_t BaseAddress, L4_Word_t FpageSize)
{
    L4_Word_t bits = FpageSize <= 1 ? 0 : 64 - (L4_Word_t)__builtin_clzl(FpageSize - 1);
    return L4_FpageLog2(BaseAddress, bits);
}

/* Log2 of the size; 64 for the complete address space. */
L4_INLINE L4_Word_t L4_SizeLog2(L4_Fpage_t f)
{
    return (f.raw & ~0xFUL) == 0x10 ? 64 : (f.raw >> 4) & 0x3F;
}

/* Size in bytes; 0 stands for 2^64. */
L4_INLINE L4_Word_t L4_Size(L4_Fpage_t f)
{
    L4_Word_t bits = L4_SizeLog2(f);
    if (L4_IsNilFpage(f) || bits >= 64)
        return 0;
    return 1UL << bits;
}

L4_INLINE L4_Word_t L4_Address(L4_Fpage_t f)
{
    L4_Word_t bits = L4_SizeLog2(f);
    return bits >= 64 ? 0 : (f.raw & ~0x3FFUL) >> bits << bits;
}

L4_INLINE L4_Bool_t L4_IsFpageEqual(L4_Fpage_t l, L4_Fpage_t r)
{
    return l.raw == r.raw;
}

L4_INLINE L4_Bool_t L4_IsFpageNotEqual(L4_Fpage_t l, L4_Fpage_t r)
{
    return l.raw != r.raw;
}

L4_INLINE L4_Word_t L4_Rights(L4_Fpage_t f)
{
    return f.raw & 7;
}

L4_INLINE L4_Fpage_t L4_Set_Rights(L4_Fpage_t *f, L4_Word_t AccessRights)
{
    f->raw = (f->raw & ~7UL) | (AccessRights & 7);
    return *f;
}

L4_INLINE L4_Fpage_t L4_FpageAddRights(L4_Fpage_t f, L4_Word_t AccessRights)
{
    f.raw |= AccessRights & 7;
    return f;
}

L4_INLINE L4_Fpage_t L4_FpageAddRightsTo(L4_Fpage_t *f, L4_Word_t AccessRights)
{
    return *f = L4_FpageAddRights(*f, AccessRights);
}

L4_INLINE L4_Fpage_t L4_FpageRemoveRights(L4_Fpage_t f, L4_Word_t AccessRights)
{
    f.raw &= ~(AccessRights & 7);
    return f;
}

L4_INLINE L4_Fpage_t L4_FpageRemoveRightsFrom(L4_Fpage_t *f, L4_Word_t AccessRights)
{
    return *f = L4_FpageRemoveRights(*f, AccessRights);
}

/*
 * Unmap and Flush.  The rights of each flexpage are those to take away; in the
 * result they are replaced by what was done to the page since the last time.
 * These functions use message registers MR0.. and leave them changed.
 */

#define __L4_UNMAP_FLUSH 0x40UL
/* The most flexpages one call takes. */
#define __L4_UNMAP_MAX 64UL

L4_INLINE void __L4_UnmapAll(L4_Word_t n, L4_Fpage_t *fpages, L4_Word_t flush)
{
    while (n > 0) {
        L4_Word_t i, count = n < __L4_UNMAP_MAX ? n : __L4_UNMAP_MAX;
        for (i = 0; i < count; i++)
            __L4_Utcb()[i] = fpages[i].raw;
        L4_Unmap(flush | (count - 1));
        for (i = 0; i < count; i++)
            fpages[i].raw = __L4_Utcb()[i];
        fpages += count;
        n -= count;
    }
}

L4_INLINE L4_Fpage_t L4_UnmapFpage(L4_Fpage_t f)
{
    __L4_UnmapAll(1, &f, 0);
    return f;
}

L4_INLINE void L4_UnmapFpages(L4_Word_t n, L4_Fpage_t *fpages)
{
    __L4_UnmapAll(n, fpages, 0);
}

L4_INLINE L4_Fpage_t L4_Flush(L4_Fpage_t f)
{
    __L4_UnmapAll(1, &f, __L4_UNMAP_FLUSH);
    return f;
}

L4_INLINE void L4_FlushFpages(L4_Word_t n, L4_Fpage_t *fpages)
{
    __L4_UnmapAll(n, fpages, __L4_UNMAP_FLUSH);
}

/* Reads and resets the status bits without taking anything away. */
L4_INLINE L4_Fpage_t L4_GetStatus(L4_Fpage_t f)
{
    f.raw &= ~7UL;
    __L4_UnmapAll(1, &f, 0);
    return f;
}

L4_INLINE L4_Bool_t L4_WasReferenced(L4_Fpage_t f)
{
    return (f.raw & L4_Readable) != 0;
}

L4_INLINE L4_Bool_t L4_WasWritten(L4_Fpage_t f)
{
    return (f.raw & L4_Writable) != 0;
}

L4_INLINE L4_Bool_t L4_WaseXecuted(L4_Fpage_t f)
{
    return (f.raw & L4_eXecutable) != 0;
}

#ifdef __cplusplus
L4_INLINE L4_Fpage_t operator+(const L4_Fpage_t &f, L4_Word_t AccessRights)
{
    return L4_FpageAddRights(f, AccessRights);
}

L4_INLINE L4_Fpage_t operator-(const L4_Fpage_t &f, L4_Word_t AccessRights)
{
    return L4_FpageRemoveRights(f, AccessRights);
}

L4_INLINE L4_Fpage_t operator+=(L4_Fpage_t &f, L4_Word_t AccessRights)
{
    return f = L4_FpageAddRights(f, AccessRights);
}

L4_INLINE L4_Fpage_t operator-=(L4_Fpage_t &f, L4_Word_t AccessRights)
{
    return f = L4_FpageRemoveRights(f, AccessRights);
}

L4_INLINE L4_Fpage_t L4_Unmap(L4_Fpage_t f)
{
    return L4_UnmapFpage(f);
}

L4_INLINE void L4_Unmap(L4_Word_t n, L4_Fpage_t *fpages)
{
    L4_UnmapFpages(n, fpages);
}

L4_INLINE void L4_Flush(L4_Word_t n, L4_Fpage_t *fpages)
{
    L4_FlushFpages(n, fpages);
}
#endif

#endif
