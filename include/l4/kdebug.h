/*
 * l4/kdebug.h - printing and stopping by way of the kernel debugger.
 *
 * A kernel with a debugger understands `int3` followed by a mark.  One without
 * (the KIP's Kdebug.entry is 0; Baton is such a kernel) would make an exception
 * of it; there these functions write to the serial port and go on.
 */
#ifndef L4_KDEBUG_H
#define L4_KDEBUG_H

#include <l4/kip.h>

L4_INLINE L4_Bool_t L4_KDB_Present(void)
{
    return __L4_Kip(L4_GetKernelInterface())->KdebugEntry != 0;
}

L4_INLINE L4_Word8_t __L4_InByte(L4_Word16_t port)
{
    L4_Word8_t value;
    __asm__ __volatile__("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

L4_INLINE void __L4_OutByte(L4_Word16_t port, L4_Word8_t value)
{
    __asm__ __volatile__("outb %0, %1" : : "a"(value), "Nd"(port));
}

/* The serial port at 0x3F8: waits for the transmitter (bit 5 of the line status). */
L4_INLINE void __L4_SerialPut(char c)
{
    while (!(__L4_InByte(0x3FD) & 0x20))
        ;
    __L4_OutByte(0x3F8, (L4_Word8_t)c);
}

L4_INLINE void L4_KDB_PrintChar(char c)
{
    if (L4_KDB_Present())
        __asm__ __volatile__("int3; .byte 0x3c, 0x00" : : "a"((L4_Word_t)c) : "cc", "memory");
    else
        __L4_SerialPut(c);
}

L4_INLINE void L4_KDB_PrintString(const char *s)
{
    if (L4_KDB_Present()) {
        __asm__ __volatile__("int3; .byte 0x3c, 0x01" : : "a"(s) : "cc", "memory");
        return;
    }
    while (*s)
        __L4_SerialPut(*s++);
}

/* Reads a character if there is one; all ones if not. */
L4_INLINE L4_Word_t L4_KDB_ReadChar(void)
{
    L4_Word_t c = ~0UL;
    if (L4_KDB_Present())
        __asm__ __volatile__("int3; .byte 0x3c, 0x08" : "+a"(c) : : "cc", "memory");
    else if (__L4_InByte(0x3FD) & 1)
        c = __L4_InByte(0x3F8);
    return c;
}

/* Reads a character, waiting for it. */
L4_INLINE L4_Word_t L4_KDB_ReadChar_Blocked(void)
{
    L4_Word_t c = ~0UL;
    if (L4_KDB_Present())
        __asm__ __volatile__("int3; .byte 0x3c, 0x0d" : "+a"(c) : : "cc", "memory");
    else
        while ((c = L4_KDB_ReadChar()) == ~0UL)
            ;
    return c;
}

/* Enters the debugger with a message (a string literal). */
#define L4_KDB_Enter(message)                                                       \
    do {                                                                            \
        if (L4_KDB_Present())                                                       \
            __asm__ __volatile__("int3\n\tjmp 1f\n\tmovq $2f, %%rax\n1:\n"          \
                                 "\t.section .rodata\n2:\t.asciz " #message "\n"    \
                                 "\t.previous"                                      \
                                 : : : "rax", "cc", "memory");                      \
        else                                                                        \
            L4_KDB_PrintString("debugger wanted: " message "\n");                   \
    } while (0)

/* The name of the trap in older programs. */
#define enter_kdebug L4_KDB_Enter

#endif
