/*
 * l4/kip_types.h - the layout of the kernel interface page (part of l4/kip.h).
 */
#ifndef L4_KIP_TYPES_H
#define L4_KIP_TYPES_H

#include <l4/types.h>

/* Where an initial server lies and starts; high is exclusive. */
typedef struct {
    L4_Word_t sp, ip, low, high;
} L4_KipServer_t;

/* Fields of one word: `raw`, and a view of their parts. */

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t zero : 16;
        L4_Word_t subversion : 8;
        L4_Word_t version : 8;
    } x;
} L4_ApiVersion_t;

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t ee : 2;
        L4_Word_t ww : 2;
    } x;
} L4_ApiFlags_t;

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t subid : 16;
        L4_Word_t zero : 8;
        L4_Word_t id : 8;
    } x;
} L4_KernelId_t;

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t n : 32;
        L4_Word_t MemDescPtr : 32;
    };
} L4_MemoryInfo_t;

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t m : 10;
        L4_Word_t a : 6;
        L4_Word_t s : 6;
    } X;
} L4_UtcbAreaInfo_t;

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t s : 6;
    } X;
} L4_KipAreaInfo_t;

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t ReadPrecision : 16;
        L4_Word_t SchedulePrecision : 16;
    } X;
} L4_ClockInfo_t;

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t t : 8;
        L4_Word_t SystemBase : 12;
        L4_Word_t UserBase : 12;
    } X;
} L4_ThreadInfo_t;

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t rwx : 3;
        L4_Word_t zero : 7;
        L4_Word_t page_size_mask : 54;
    } X;
} L4_PageInfo_t;

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t processors : 16;
        L4_Word_t zero : 44;
        L4_Word_t s : 4;
    } X;
} L4_ProcessorInfo_t;

/* Where a field has two names, both are in use among X.2 programs. */
typedef struct {
    union {
        L4_Word_t MagicNumber, magic;
    };
    L4_ApiVersion_t ApiVersion;
    L4_ApiFlags_t ApiFlags;
    union {
        L4_Word_t KernDescPtr, KernelVerPtr;
    };
    L4_Word_t KdebugInit, KdebugEntry, KdebugLow, KdebugHigh;
    L4_KipServer_t Sigma0, Sigma1, RootServer;
    L4_Word_t BatonDescPtr; /* reserved in X.2 */
    L4_MemoryInfo_t MemoryInfo;
    L4_Word_t KdebugConfig0, KdebugConfig1;
    L4_Word_t OldMemory[16];
    L4_Word_t reserved0[2];
    L4_UtcbAreaInfo_t UtcbAreaInfo;
    L4_KipAreaInfo_t KipAreaInfo;
    L4_Word_t reserved1[2];
    L4_Word_t BootInfo, ProcDescPtr;
    L4_ClockInfo_t ClockInfo;
    L4_ThreadInfo_t ThreadInfo;
    L4_PageInfo_t PageInfo;
    L4_ProcessorInfo_t ProcessorInfo;
    L4_Word_t SpaceControl, ThreadControl, ProcessorControl, MemoryControl;
    L4_Word_t Ipc, Lipc, Unmap, ExchangeRegisters;
    L4_Word_t SystemClock, ThreadSwitch, Schedule;
} L4_KernelInterfacePage_t;

/* What KernDescPtr leads to; strings follow: the version, then the features. */
typedef struct {
    L4_KernelId_t KernelId;
    union {
        L4_Word_t raw;
        struct {
            L4_Word_t day : 5;
            L4_Word_t month : 4;
            L4_Word_t year : 7;
        } X;
    } KernelGenDate;
    union {
        L4_Word_t raw;
        struct {
            L4_Word_t subsubver : 16;
            L4_Word_t subver : 8;
            L4_Word_t ver : 8;
        } X;
    } KernelVer;
    L4_Word_t Supplier;
    char VersionString[8]; /* the first of its characters */
} L4_KernelDesc_t;

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

/* Versions of the interface (31..24 of ApiVersion), subversions of the experimental ones. */
#define L4_APIVERSION_2 0x02UL
#define L4_APIVERSION_4 0x04UL
#define L4_APIVERSION_X0 0x83UL
#define L4_APIVERSION_X1 0x83UL
#define L4_APIVERSION_X2 0x84UL
#define L4_APIVERSION_L4SEC 0x85UL
#define L4_APIVERSION_N1 0x86UL
#define L4_APIVERSION_OKL 0xA0UL
#define L4_APISUBVERSION_X0 0x80UL
#define L4_APISUBVERSION_X1 0x81UL

/* Bits of ApiFlags. */
#define L4_APIFLAG_LE 0x0UL
#define L4_APIFLAG_BE 0x1UL
#define L4_APIFLAG_32BIT 0x0UL
#define L4_APIFLAG_64BIT 0x1UL

/* Kernels: 15..8 of the id (at 24 in KernelId), 7..0 of the subid (at 16). */
#define L4_KID_L4_486 0x0001UL
#define L4_KID_L4_PENTIUM 0x0002UL
#define L4_KID_L4_X86 0x0003UL
#define L4_KID_L4_MIPS 0x0101UL
#define L4_KID_L4_ALPHA 0x0201UL
#define L4_KID_FIASCO 0x0301UL
#define L4_KID_L4KA_HAZELNUT 0x0401UL
#define L4_KID_L4KA_PISTACHIO 0x0402UL
#define L4_KID_L4KA_STRAWBERRY 0x0403UL
#define L4_KID_NICTA_PISTACHIO 0x0501UL

/* Suppliers: four characters, the first in the lowest byte. */
#define __L4_SUPPLIER(a, b, c, d) \
    ((L4_Word_t)(a) | (L4_Word_t)(b) << 8 | (L4_Word_t)(c) << 16 | (L4_Word_t)(d) << 24)
#define L4_SUPL_GMD __L4_SUPPLIER('G', 'M', 'D', ' ')
#define L4_SUPL_IBM __L4_SUPPLIER('I', 'B', 'M', ' ')
#define L4_SUPL_UNSW __L4_SUPPLIER('U', 'N', 'S', 'W')
#define L4_SUPL_UKA __L4_SUPPLIER('U', 'K', 'a', ' ')
#define L4_SUPL_NICTA __L4_SUPPLIER('N', 'I', 'C', 'T')

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

/* Frequencies in kHz. */
typedef union {
    L4_Word_t raw[4];
    struct {
        L4_Word_t ExternalFreq, InternalFreq, reserved[2];
    } X;
} L4_ProcDesc_t;

#endif
