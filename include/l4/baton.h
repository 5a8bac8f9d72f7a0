/*
 * l4/baton.h - system calls that Baton adds to X.2.
 *
 * They are announced by a descriptor of Baton's own; on a kernel without it the
 * calls do nothing and return 0, and L4_HasBaton is false.
 */
#ifndef L4_BATON_H
#define L4_BATON_H

#include <l4/kip.h>

#ifdef __cplusplus
extern "C" {
#endif
extern L4_Word_t __L4_QuotaControl, __L4_Inspect, __L4_TaskControl, __L4_CreateThread;
#ifdef __cplusplus
}
#endif

/* The bytes "BATON\0\0\0". */
#define __L4_BATON_MAGIC 0x0000004E4F544142UL

/* The extension descriptor, a null pointer on other kernels. */
L4_INLINE const L4_Word_t *L4_BatonDesc(const void *page)
{
    L4_Word_t offset = __L4_Kip(page)->BatonDescPtr;
    const L4_Word_t *desc = __L4_KipWords(page, offset);
    if (offset == 0 || offset > 4096 - 5 * sizeof(L4_Word_t) || offset % sizeof(L4_Word_t)
        || desc[0] != __L4_BATON_MAGIC)
        return (const L4_Word_t *)0;
    return desc;
}

L4_INLINE L4_Bool_t L4_HasBaton(void)
{
    return L4_BatonDesc(L4_GetKernelInterface()) != (const L4_Word_t *)0;
}

/*
 * What a device writes, and to which physical address, to signal interrupt `line`: 1 if that is a line
 * without a wire (MSI, MSI-X).
 */
L4_INLINE L4_Bool_t L4_LineMessage(L4_Word_t line, L4_Word_t *address, L4_Word_t *data)
{
    const L4_Word_t *desc = L4_BatonDesc(L4_GetKernelInterface());
    if (!desc || desc[1] < 5 || line < 32 || line > 63 || desc[10] == 0)
        return 0;
    *address = desc[10];
    *data = desc[11] + (line - 32);
    return 1;
}

/*
 * QuotaControl: moves `pages` pages of kernel-memory quota from the caller's task
 * to the space of `SpaceSpecifier` (negative: back).  1 done, 0 see ErrorCode.
 */
L4_INLINE L4_Word_t L4_QuotaControl(L4_ThreadId_t SpaceSpecifier, long pages,
                                    L4_Word_t *limit, L4_Word_t *used)
{
    L4_Word_t result = 0, space = SpaceSpecifier.raw, moved = (L4_Word_t)pages, total = 0;
    __asm__ __volatile__(__L4_CALL("__L4_QuotaControl")
                         : "+a"(result), "+D"(space), "+S"(moved), "+d"(total)
                         :
                         : "rcx", "r8", "r9", "r10", __L4_CLOBBERS);
    *limit = total;
    *used = moved;
    return result;
}

/*
 * TaskControl: the thread numbers and the ceilings of the task of `SpaceSpecifier`, in and
 * out; L4_Unchanged changes nothing.  1 done, 0 see ErrorCode.
 */
#define L4_Unchanged (~0UL)

/* `count` thread numbers from `first`. */
L4_INLINE L4_Word_t L4_Numbers(L4_Word_t first, L4_Word_t count)
{
    return count << 32 | first;
}

/* Ceilings; L4_Never is no ceiling for a time, 65535 none for a delay. */
L4_INLINE L4_Word_t L4_Ceilings(L4_Word_t priority, L4_Time_t slice, L4_Time_t quantum,
                                L4_Word_t delay_us)
{
    return (delay_us & 0xFFFF) << 48 | (L4_Word_t)slice.raw << 32
        | (L4_Word_t)quantum.raw << 16 | (priority & 0xFF);
}

L4_INLINE L4_Word_t L4_TaskControl(L4_ThreadId_t SpaceSpecifier, L4_Word_t *numbers,
                                   L4_Word_t *ceilings)
{
    L4_Word_t result = 0, space = SpaceSpecifier.raw, first = *numbers, second = *ceilings;
    __asm__ __volatile__(__L4_CALL("__L4_TaskControl")
                         : "+a"(result), "+D"(space), "+S"(first), "+d"(second)
                         :
                         : "rcx", "r8", "r9", "r10", __L4_CLOBBERS);
    *numbers = first;
    *ceilings = second;
    return result;
}

/* CreateThread: L4_ThreadControl that fails where somebody has the number of `dest`. */
L4_INLINE L4_Word_t L4_CreateThread(L4_ThreadId_t dest, L4_ThreadId_t SpaceSpecifier,
                                    L4_ThreadId_t Scheduler, L4_ThreadId_t Pager,
                                    void *UtcbLocation)
{
    L4_Word_t result = 0, to = dest.raw, pager = Pager.raw, scheduler = Scheduler.raw;
    register L4_Word_t space __asm__("r8") = SpaceSpecifier.raw;
    register L4_Word_t utcb __asm__("r9") = (L4_Word_t)UtcbLocation;
    __asm__ __volatile__(__L4_CALL("__L4_CreateThread")
                         : "+a"(result), "+D"(to), "+S"(pager), "+d"(scheduler), "+r"(space),
                           "+r"(utcb)
                         :
                         : "rcx", "r10", __L4_CLOBBERS);
    return result;
}

/* What to inspect, and the record's words (see docs/calls/inspect.md). */
#define L4_InspectThread 0UL
#define L4_InspectSpace 1UL
#define L4_InspectMapping 2UL
#define L4_InspectKernel 3UL
#define L4_InspectCheck 4UL
#define L4_InspectTime 5UL
#define L4_InspectNumber 6UL
#define L4_InspectVisits 7UL
#define L4_InspectWords 8

/* Inspect: 1 and a record of eight words, or 0 if there is none or it is not allowed. */
L4_INLINE L4_Word_t L4_Inspect(L4_Word_t what, L4_Word_t index, L4_Word_t argument,
                               L4_Word_t record[L4_InspectWords])
{
    L4_Word_t result = 0, scratch = (L4_Word_t)record;
    __asm__ __volatile__("leaq  -128(%%rsp), %%rsp\n\t"
                         "pushq %%rbp\n\t"
                         "pushq %%rcx\n\t"
                         "call  *__L4_Inspect(%%rip)\n\t"
                         "popq  %%rdi\n\t"
                         "popq  %%rbp\n\t"
                         "leaq  128(%%rsp), %%rsp\n\t"
                         "movq  %%rdx, 0(%%rdi)\n\t"
                         "movq  %%rsi, 8(%%rdi)\n\t"
                         "movq  %%r9, 16(%%rdi)\n\t"
                         "movq  %%r10, 24(%%rdi)\n\t"
                         "movq  %%r12, 32(%%rdi)\n\t"
                         "movq  %%r13, 40(%%rdi)\n\t"
                         "movq  %%r14, 48(%%rdi)\n\t"
                         "movq  %%r15, 56(%%rdi)\n\t"
                         : "+a"(result), "+D"(what), "+S"(index), "+d"(argument),
                           "+c"(scratch)
                         :
                         : "r8", "r9", "r10", __L4_CLOBBERS);
    return result;
}

#endif
