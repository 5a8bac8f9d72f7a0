/*
 * serial.c - characters over the first serial port (16550 at 0x3F8), polled.
 */
#include "plain.h"
#include "text.h"
#include <l4/schedule.h>

enum {
    DATA = 0x3F8,            /* divisor low while DIVISOR_ACCESS is set */
    INTERRUPT_ENABLE = 0x3F9, /* divisor high while DIVISOR_ACCESS is set */
    FIFO_CONTROL = 0x3FA,
    LINE_CONTROL = 0x3FB,
    MODEM_CONTROL = 0x3FC,
    LINE_STATUS = 0x3FD,
};

#define DIVISOR_ACCESS 0x80
#define EIGHT_DATA_BITS 0x03
#define RECEIVED 0x01
#define TRANSMITTER_EMPTY 0x20

L4_Word8_t l4c_inb(L4_Word16_t port)
{
    L4_Word8_t value;
    __asm__ __volatile__("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

void l4c_outb(L4_Word16_t port, L4_Word8_t value)
{
    __asm__ __volatile__("outb %0, %1" : : "a"(value), "Nd"(port));
}

L4_Word16_t l4c_inw(L4_Word16_t port)
{
    L4_Word16_t value;
    __asm__ __volatile__("inw %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

void l4c_outw(L4_Word16_t port, L4_Word16_t value)
{
    __asm__ __volatile__("outw %0, %1" : : "a"(value), "Nd"(port));
}

L4_Word32_t l4c_inl(L4_Word16_t port)
{
    L4_Word32_t value;
    __asm__ __volatile__("inl %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

void l4c_outl(L4_Word16_t port, L4_Word32_t value)
{
    __asm__ __volatile__("outl %0, %1" : : "a"(value), "Nd"(port));
}

/*
 * Sets 115200 baud, 8 data bits, no parity, no interrupts, once.  This also touches
 * every port in use, so that later output by other threads does not fault.
 */
static void set_up(void)
{
    static int done;
    if (done)
        return;
    done = 1;
    l4c_outb(INTERRUPT_ENABLE, 0);
    l4c_outb(LINE_CONTROL, DIVISOR_ACCESS);
    l4c_outb(DATA, 1);
    l4c_outb(INTERRUPT_ENABLE, 0);
    l4c_outb(LINE_CONTROL, EIGHT_DATA_BITS);
    l4c_outb(FIFO_CONTROL, 0x01);
    l4c_outb(MODEM_CONTROL, 0x03);
    (void)l4c_inb(LINE_STATUS);
}

static void send(char c)
{
    while (!(l4c_inb(LINE_STATUS) & TRANSMITTER_EMPTY))
        ;
    l4c_outb(DATA, (L4_Word8_t)c);
}

void serial_put(char c)
{
    set_up();
    if (c == '\n')
        send('\r');
    send(c);
}

int serial_get(void)
{
    set_up();
    while (!(l4c_inb(LINE_STATUS) & RECEIVED))
        L4_Yield();
    return l4c_inb(DATA);
}
