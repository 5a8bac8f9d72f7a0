/*
 * l4/kip.h - the kernel interface page: what the kernel says about itself and
 * the machine.  Functions whose first argument is a page accept the pointer that
 * L4_GetKernelInterface returns.
 */
#ifndef L4_KIP_H
#define L4_KIP_H

#include <l4/types.h>
#include <l4/time.h>
#include <l4/kip_types.h>
#include <l4/amd64/syscalls.h>

/* The page itself. */

L4_INLINE void *L4_GetKernelInterface(void)
{
    L4_Word_t version, flags, id;
    return L4_KernelInterface(&version, &flags, &id);
}

L4_INLINE const L4_KernelInterfacePage_t *__L4_Kip(const void *page)
{
    return (const L4_KernelInterfacePage_t *)page;
}

L4_INLINE const L4_Word_t *__L4_KipWords(const void *page, L4_Word_t offset)
{
    return (const L4_Word_t *)((const char *)page + offset);
}

L4_INLINE L4_Word_t L4_ApiVersion(void)
{
    L4_Word_t version, flags, id;
    (void)L4_KernelInterface(&version, &flags, &id);
    return version;
}

L4_INLINE L4_Word_t L4_ApiFlags(void)
{
    L4_Word_t version, flags, id;
    (void)L4_KernelInterface(&version, &flags, &id);
    return flags;
}

L4_INLINE L4_Word_t L4_KernelId(void)
{
    L4_Word_t version, flags, id;
    (void)L4_KernelInterface(&version, &flags, &id);
    return id;
}

/* The kernel descriptor. */

L4_INLINE const L4_Word_t *__L4_KernDesc(const void *page)
{
    return __L4_KipWords(page, __L4_Kip(page)->KernDescPtr);
}

L4_INLINE void L4_KernelGenDate(const void *page, L4_Word_t *year, L4_Word_t *month,
                                L4_Word_t *day)
{
    L4_Word_t date = __L4_KernDesc(page)[1];
    *year = ((date >> 9) & 0x7F) + 2000;
    *month = (date >> 5) & 0xF;
    *day = date & 0x1F;
}

/* 31..24 version, 23..16 subversion, 15..0 subsubversion. */
L4_INLINE L4_Word_t L4_KernelVersion(const void *page)
{
    return __L4_KernDesc(page)[2];
}

/* Four characters, the first in the lowest byte. */
L4_INLINE L4_Word_t L4_KernelSupplier(const void *page)
{
    return __L4_KernDesc(page)[3];
}

L4_INLINE char *L4_KernelVersionString(const void *page)
{
    return (char *)(L4_Word_t)(__L4_KernDesc(page) + 4);
}

L4_INLINE char *__L4_NextString(char *string)
{
    while (*string)
        string++;
    return string + 1;
}

/* The num-th feature string, from 0; a null pointer behind the last. */
L4_INLINE char *L4_Feature(const void *page, L4_Word_t num)
{
    char *feature = __L4_NextString(L4_KernelVersionString(page));
    while (*feature && num > 0) {
        feature = __L4_NextString(feature);
        num--;
    }
    return *feature ? feature : (char *)0;
}

L4_INLINE L4_Bool_t L4_HasFeature(const char *name)
{
    void *page = L4_GetKernelInterface();
    L4_Word_t num, i;
    char *feature;
    for (num = 0; (feature = L4_Feature(page, num)) != (char *)0; num++) {
        for (i = 0; feature[i] == name[i] && name[i]; i++)
            ;
        if (feature[i] == name[i])
            return 1;
    }
    return 0;
}

/* Numbers. */

L4_INLINE L4_Word_t L4_NumProcessors(const void *page)
{
    return (__L4_Kip(page)->ProcessorInfo.raw & 0xFFFF) + 1;
}

L4_INLINE L4_Word_t L4_NumMemoryDescriptors(const void *page)
{
    return __L4_Kip(page)->MemoryInfo.raw & 0xFFFFFFFFUL;
}

/* Bit k is set if there are pages of 2^k bytes. */
L4_INLINE L4_Word_t L4_PageSizeMask(const void *page)
{
    return __L4_Kip(page)->PageInfo.raw & ~0x3FFUL;
}

/* The rights that can be set independently of each other. */
L4_INLINE L4_Word_t L4_PageRights(const void *page)
{
    return __L4_Kip(page)->PageInfo.raw & 7;
}

L4_INLINE L4_Word_t L4_ThreadIdBits(const void *page)
{
    return __L4_Kip(page)->ThreadInfo.raw & 0xFF;
}

L4_INLINE L4_Word_t L4_ThreadIdSystemBase(const void *page)
{
    return (__L4_Kip(page)->ThreadInfo.raw >> 8) & 0xFFF;
}

L4_INLINE L4_Word_t L4_ThreadIdUserBase(const void *page)
{
    return (__L4_Kip(page)->ThreadInfo.raw >> 20) & 0xFFF;
}

L4_INLINE L4_Time_t L4_ReadPrecision(const void *page)
{
    L4_Time_t time;
    time.raw = (L4_Word16_t)__L4_Kip(page)->ClockInfo.raw;
    return time;
}

L4_INLINE L4_Time_t L4_SchedulePrecision(const void *page)
{
    L4_Time_t time;
    time.raw = (L4_Word16_t)(__L4_Kip(page)->ClockInfo.raw >> 16);
    return time;
}

/* Bytes of the smallest UTCB area. */
L4_INLINE L4_Word_t L4_UtcbAreaSize(const void *page)
{
    return 1UL << ((__L4_Kip(page)->UtcbAreaInfo.raw >> 16) & 0x3F);
}

/* Log2 of the smallest UTCB area. */
L4_INLINE L4_Word_t L4_UtcbAreaSizeLog2(const void *page)
{
    return (__L4_Kip(page)->UtcbAreaInfo.raw >> 16) & 0x3F;
}

L4_INLINE L4_Word_t L4_UtcbAlignmentLog2(const void *page)
{
    return (__L4_Kip(page)->UtcbAreaInfo.raw >> 10) & 0x3F;
}

L4_INLINE L4_Word_t L4_UtcbSize(const void *page)
{
    return (__L4_Kip(page)->UtcbAreaInfo.raw & 0x3FF) << L4_UtcbAlignmentLog2(page);
}

/* Bytes of the smallest KIP area. */
L4_INLINE L4_Word_t L4_KipAreaSize(const void *page)
{
    return 1UL << (__L4_Kip(page)->KipAreaInfo.raw & 0x3F);
}

L4_INLINE L4_Word_t L4_KipAreaSizeLog2(const void *page)
{
    return __L4_Kip(page)->KipAreaInfo.raw & 0x3F;
}

/* Physical address of the boot information, 0 if there is none. */
L4_INLINE L4_Word_t L4_BootInfo(const void *page)
{
    return __L4_Kip(page)->BootInfo;
}

/* Descriptors; a null pointer behind the last. */

L4_INLINE L4_MemoryDesc_t *L4_MemoryDesc(const void *page, L4_Word_t num)
{
    L4_Word_t offset = (__L4_Kip(page)->MemoryInfo.raw >> 32) + num * sizeof(L4_MemoryDesc_t);
    if (num >= L4_NumMemoryDescriptors(page))
        return (L4_MemoryDesc_t *)0;
    return (L4_MemoryDesc_t *)(L4_Word_t)__L4_KipWords(page, offset);
}

L4_INLINE L4_Bool_t L4_IsMemoryDescVirtual(const L4_MemoryDesc_t *m)
{
    return (m->raw[0] >> 9) & 1;
}

/* The type, plus 16 times the subtype for loader and architecture specific memory. */
L4_INLINE L4_Word_t L4_MemoryDescType(const L4_MemoryDesc_t *m)
{
    L4_Word_t type = m->raw[0] & 0xF;
    return type >= L4_BootLoaderSpecificMemoryType ? m->raw[0] & 0xFF : type;
}

L4_INLINE L4_Word_t L4_MemoryDescLow(const L4_MemoryDesc_t *m)
{
    return m->raw[0] & ~0x3FFUL;
}

/* The last byte. */
L4_INLINE L4_Word_t L4_MemoryDescHigh(const L4_MemoryDesc_t *m)
{
    return m->raw[1] | 0x3FF;
}

L4_INLINE L4_ProcDesc_t *L4_ProcDesc(const void *page, L4_Word_t num)
{
    L4_Word_t bits = __L4_Kip(page)->ProcessorInfo.raw >> 60;
    if (num >= L4_NumProcessors(page))
        return (L4_ProcDesc_t *)0;
    return (L4_ProcDesc_t *)(L4_Word_t)__L4_KipWords(
        page, __L4_Kip(page)->ProcDescPtr + (num << bits));
}

/* Frequencies in kHz; 0 if unknown. */
L4_INLINE L4_Word_t L4_ProcDescExternalFreq(const L4_ProcDesc_t *p)
{
    return p->raw[0];
}

L4_INLINE L4_Word_t L4_ProcDescInternalFreq(const L4_ProcDesc_t *p)
{
    return p->raw[1];
}

#ifdef __cplusplus
L4_INLINE void *L4_KernelInterface(void)
{
    return L4_GetKernelInterface();
}

L4_INLINE L4_Bool_t L4_IsVirtual(const L4_MemoryDesc_t *m)
{
    return L4_IsMemoryDescVirtual(m);
}

L4_INLINE L4_Word_t L4_Type(const L4_MemoryDesc_t *m)
{
    return L4_MemoryDescType(m);
}

L4_INLINE L4_Word_t L4_Low(const L4_MemoryDesc_t *m)
{
    return L4_MemoryDescLow(m);
}

L4_INLINE L4_Word_t L4_High(const L4_MemoryDesc_t *m)
{
    return L4_MemoryDescHigh(m);
}

L4_INLINE L4_Word_t L4_ExternalFreq(const L4_ProcDesc_t *p)
{
    return L4_ProcDescExternalFreq(p);
}

L4_INLINE L4_Word_t L4_InternalFreq(const L4_ProcDesc_t *p)
{
    return L4_ProcDescInternalFreq(p);
}
#endif

#endif
