/*
 * l4/arch.h - what is particular to x86: flexpages of I/O ports.
 */
#ifndef L4_ARCH_H
#define L4_ARCH_H

#include <l4/space.h>

/* The complete I/O port space. */
#define L4_CompleteIoSpace ((L4_Fpage_t){ 0x4020UL })

/* The flexpage of 2^FpageSizeLog2 ports that contains BasePort. */
L4_INLINE L4_Fpage_t L4_IoFpageLog2(L4_Word_t BasePort, L4_Word_t FpageSizeLog2)
{
    L4_Fpage_t f;
    L4_Word_t base = (BasePort & 0xFFFF) >> FpageSizeLog2 << FpageSizeLog2;
    f.raw = base << 16 | (FpageSizeLog2 & 0x3F) << 10 | 2UL << 4;
    return f;
}

/* As IoFpageLog2, with the number of ports; rounds up to a power of two. */
L4_INLINE L4_Fpage_t L4_IoFpage(L4_Word_t BasePort, L4_Word_t FpageSize)
{
    L4_Word_t bits = FpageSize <= 1 ? 0 : 64 - (L4_Word_t)__builtin_clzl(FpageSize - 1);
    return L4_IoFpageLog2(BasePort, bits);
}

L4_INLINE L4_Bool_t L4_IsIoFpage(L4_Fpage_t f)
{
    return ((f.raw >> 4) & 0x3F) == 2;
}

L4_INLINE L4_Word_t L4_IoFpagePort(L4_Fpage_t f)
{
    return (f.raw >> 16) & 0xFFFF;
}

L4_INLINE L4_Word_t L4_IoFpageSizeLog2(L4_Fpage_t f)
{
    return (f.raw >> 10) & 0x3F;
}

L4_INLINE L4_Word_t L4_IoFpageSize(L4_Fpage_t f)
{
    return 1UL << L4_IoFpageSizeLog2(f);
}

#endif
