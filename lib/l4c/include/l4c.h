/*
 * l4c.h - a small C library for programs on an L4 X.2 kernel.
 *
 * Standard names have their standard meaning.  Output of a task goes to the console's
 * driver, by messages; what one call prints stays together.  Output of the root task goes to
 * the serial port at 0x3F8, by port instructions: the first one faults, and its pager
 * (sigma0) answers with the ports.  So let the first output come from a thread whose pager
 * knows I/O faults; afterwards every thread of the space may print.
 */
#ifndef L4C_H
#define L4C_H

#include <stdarg.h>
#include <stddef.h>
#include <l4/thread.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory and strings. */
void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
int memcmp(const void *left, const void *right, size_t n);
void *memchr(const void *where, int byte, size_t n);
size_t strlen(const char *s);
size_t strnlen(const char *s, size_t limit);
int strcmp(const char *left, const char *right);
int strncmp(const char *left, const char *right, size_t n);
char *strcpy(char *to, const char *from);
char *strncpy(char *to, const char *from, size_t n);
char *strcat(char *to, const char *from);
char *strchr(const char *s, int c);
char *strrchr(const char *s, int c);

/*
 * Formatted output: %d %i %u %x %X %o %c %s %p %%, with flags 0 - + space #,
 * width and precision (also *), lengths hh h l ll z t j.
 */
int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int vprintf(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));
int snprintf(char *to, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int vsnprintf(char *to, size_t size, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));
int putchar(int c);
int puts(const char *s);
/* Waits for a character that is typed; -1 in a task to which the console does not belong. */
int getchar(void);

/*
 * Ends the program.  The root task writes to the emulator's exit port 0xF4 (0x10
 * for status 0, else 0x11) and, on a machine without it, sleeps; a task tells the root
 * task, which ends it.
 */
void exit(int status) __attribute__((noreturn));
void abort(void) __attribute__((noreturn));

/* I/O ports of 8, 16 and 32 bits. */
L4_Word8_t l4c_inb(L4_Word16_t port);
void l4c_outb(L4_Word16_t port, L4_Word8_t value);
L4_Word16_t l4c_inw(L4_Word16_t port);
void l4c_outw(L4_Word16_t port, L4_Word16_t value);
L4_Word32_t l4c_inl(L4_Word16_t port);
void l4c_outl(L4_Word16_t port, L4_Word32_t value);

/* UTCB location of slot `slot` in the caller's area; the first thread has slot 0. */
void *l4c_utcb_location(L4_Word_t slot);

/* The stack pointer to give a thread that starts in a C function: 16 n + 8. */
L4_Word_t l4c_stack_top(void *stack, size_t size);

/*
 * Creates thread `id` in the caller's space, in UTCB slot `slot`, with the caller's
 * pager, and starts it in `entry`, which must not return.  1 done, 0 see ErrorCode.
 * Needs the right to use ThreadControl.  The first call, and the first call of
 * l4c_utcb_location, must come from the program's first thread.
 */
L4_Word_t l4c_create_thread(L4_ThreadId_t id, L4_Word_t slot, void *stack, size_t size,
                            void (*entry)(void));

/*
 * Creates a space with thread `id` in UTCB slot 0 and the layout of the caller's:
 * interface page and UTCB area at the same addresses.  The thread waits for its
 * start message from `pager`.  1 done, 0 see ErrorCode.
 */
L4_Word_t l4c_create_space(L4_ThreadId_t id, L4_ThreadId_t pager);

/* Prints "WHAT failed: error N" with the caller's ErrorCode and ends with failure. */
void l4c_fail(const char *what) __attribute__((noreturn));

/* Deletes a thread.  1 done, 0 see ErrorCode. */
L4_Word_t l4c_delete_thread(L4_ThreadId_t id);

/* The time-stamp counter. */
static inline L4_Word64_t l4c_ticks(void)
{
    L4_Word64_t low, high;
    __asm__ __volatile__("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return high << 32 | low;
}

#ifdef __cplusplus
}
#endif

#endif
