/*
 * l4/kip.h - the kernel interface page: what the kernel says about itself and
 * the machine.  Functions whose first argument is a page accept the pointer that
 * L4_GetKernelInterface returns.
 */
#ifndef L4_KIP_H
#define L4_KIP_H

#include <l4/types.h>
#include <l4/time.h>
#include <l4/amd64/syscalls.h>

/* Where an initial server lies and starts; high is exclusive. */
typedef struct {
    L4_Word_t sp, ip, low, high;
} L4_KipServer_t;

typedef struct {
    L4_Word_t MagicNumber, ApiVersion, ApiFlags, KernDescPtr;
    L4_Word_t KdebugInit, KdebugEntry, KdebugLow, KdebugHigh;
    L4_KipServer_t Sigma0, Sigma1, RootServer;
    L4_Word_t BatonDescPtr; /* reserved in X.2 */
    L4_Word_t MemoryInfo, KdebugConfig0, KdebugConfig1;
    L4_Word_t OldMemory[16];
    L4_Word_t reserved0[2];
    L4_Word_t UtcbAreaInfo, KipAreaInfo, reserved1[2];
    L4_Word_t BootInfo, ProcDescPtr, ClockInfo, ThreadInfo, PageInfo, ProcessorInfo;
    L4_Word_t SpaceControl, ThreadControl, ProcessorControl, MemoryControl;
    L4_Word_t Ipc, Lipc, Unmap, ExchangeRegisters;
    L4_Word_t SystemClock, ThreadSwitch, Schedule;
} L4_KernelInterfacePage_t;

#define L4_MAGIC 0x4BE6344CUL

/* Fields that the layout above must not have shifted. */
#define __L4_KIP_CHECK(field, offset)                                                  \
    typedef char __L4_KipCheck_##field                                                 \
        [__builtin_offsetof(L4_KernelInterfacePage_t, field) == (offset) ? 1 : -1]     \
        __attribute__((unused))
__L4_KIP_CHECK(RootServer, 0x80);
__L4_KIP_CHECK(MemoryInfo, 0xA8);
__L4_KIP_CHECK(UtcbAreaInfo, 0x150);
__L4_KIP_CHECK(BootInfo, 0x170);
__L4_KIP_CHECK(ThreadInfo, 0x188);
__L4_KIP_CHECK(SpaceControl, 0x1A0);
__L4_KIP_CHECK(Ipc, 0x1C0);
__L4_KIP_CHECK(Schedule, 0x1F0);

/* Memory descriptors. */
#define L4_UndefinedMemoryType 0x0UL
#define L4_ConventionalMemoryType 0x1UL
#define L4_ReservedMemoryType 0x2UL
#define L4_DedicatedMemoryType 0x3UL
#define L4_SharedMemoryType 0x4UL
#define L4_BootLoaderSpecificMemoryType 0xEUL
#define L4_ArchitectureSpecificMemoryType 0xFUL

typedef union {
    L4_Word_t raw[2];
    struct {
        L4_Word_t type : 4;
        L4_Word_t t : 4;
        L4_Word_t zero0 : 1;
        L4_Word_t v : 1;
        L4_Word_t low : 54;
        L4_Word_t zero1 : 10;
        L4_Word_t high : 54;
    } x;
} L4_MemoryDesc_t;

typedef struct {
    L4_Word_t raw[4];
} L4_ProcDesc_t;

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
    return (__L4_Kip(page)->ProcessorInfo & 0xFFFF) + 1;
}

L4_INLINE L4_Word_t L4_NumMemoryDescriptors(const void *page)
{
    return __L4_Kip(page)->MemoryInfo & 0xFFFFFFFFUL;
}

/* Bit k is set if there are pages of 2^k bytes. */
L4_INLINE L4_Word_t L4_PageSizeMask(const void *page)
{
    return __L4_Kip(page)->PageInfo & ~0x3FFUL;
}

/* The rights that can be set independently of each other. */
L4_INLINE L4_Word_t L4_PageRights(const void *page)
{
    return __L4_Kip(page)->PageInfo & 7;
}

L4_INLINE L4_Word_t L4_ThreadIdBits(const void *page)
{
    return __L4_Kip(page)->ThreadInfo & 0xFF;
}

L4_INLINE L4_Word_t L4_ThreadIdSystemBase(const void *page)
{
    return (__L4_Kip(page)->ThreadInfo >> 8) & 0xFFF;
}

L4_INLINE L4_Word_t L4_ThreadIdUserBase(const void *page)
{
    return (__L4_Kip(page)->ThreadInfo >> 20) & 0xFFF;
}

L4_INLINE L4_Time_t L4_ReadPrecision(const void *page)
{
    L4_Time_t time;
    time.raw = (L4_Word16_t)__L4_Kip(page)->ClockInfo;
    return time;
}

L4_INLINE L4_Time_t L4_SchedulePrecision(const void *page)
{
    L4_Time_t time;
    time.raw = (L4_Word16_t)(__L4_Kip(page)->ClockInfo >> 16);
    return time;
}

/* Log2 of the smallest UTCB area. */
L4_INLINE L4_Word_t L4_UtcbAreaSizeLog2(const void *page)
{
    return (__L4_Kip(page)->UtcbAreaInfo >> 16) & 0x3F;
}

L4_INLINE L4_Word_t L4_UtcbAlignmentLog2(const void *page)
{
    return (__L4_Kip(page)->UtcbAreaInfo >> 10) & 0x3F;
}

L4_INLINE L4_Word_t L4_UtcbSize(const void *page)
{
    return (__L4_Kip(page)->UtcbAreaInfo & 0x3FF) << L4_UtcbAlignmentLog2(page);
}

L4_INLINE L4_Word_t L4_KipAreaSizeLog2(const void *page)
{
    return __L4_Kip(page)->KipAreaInfo & 0x3F;
}

/* Physical address of the boot information, 0 if there is none. */
L4_INLINE L4_Word_t L4_BootInfo(const void *page)
{
    return __L4_Kip(page)->BootInfo;
}

/* Descriptors; a null pointer behind the last. */

L4_INLINE L4_MemoryDesc_t *L4_MemoryDesc(const void *page, L4_Word_t num)
{
    L4_Word_t offset = (__L4_Kip(page)->MemoryInfo >> 32) + num * sizeof(L4_MemoryDesc_t);
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
    L4_Word_t bits = __L4_Kip(page)->ProcessorInfo >> 60;
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

#endif
