/*
 * l4/misc.h - ProcessorControl (see the system calls) and memory attributes.
 */
#ifndef L4_MISC_H
#define L4_MISC_H

#include <l4/space.h>

/* Memory attributes; 0 is the architecture's default. */
#define L4_DefaultMemory 0UL
#define L4_UncacheableMemory 1UL
#define L4_WriteCombiningMemory 2UL
#define L4_WriteThroughMemory 5UL
#define L4_WriteProtectedMemory 6UL
#define L4_WriteBackMemory 7UL

/* Gives the pages of one flexpage an attribute.  1 done, 0 see ErrorCode. */
L4_INLINE L4_Word_t L4_Set_PageAttribute(L4_Fpage_t f, L4_Word_t attribute)
{
    L4_Word_t attributes[4] = { attribute, 0, 0, 0 };
    L4_Set_Rights(&f, 0);
    __L4_Utcb()[0] = f.raw;
    return L4_MemoryControl(0, attributes);
}

/* n <= 64 flexpages, the rights field (0..3) of each selecting one of four attributes. */
L4_INLINE L4_Word_t L4_Set_PagesAttributes(L4_Word_t n, const L4_Fpage_t *fpages,
                                           const L4_Word_t *attributes)
{
    L4_Word_t i;
    for (i = 0; i < n && i < L4_NUM_MRS; i++)
        __L4_Utcb()[i] = fpages[i].raw;
    return i == 0 ? 1 : L4_MemoryControl(i - 1, attributes);
}

#endif
