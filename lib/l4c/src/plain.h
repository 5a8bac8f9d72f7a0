/*
 * plain.h - first of all in each file of the library: general registers only.
 *
 * X.2 says nothing of a thread's first stack pointer, and many programs give one that
 * is not 8 bytes off a multiple of 16, as the processor's calling convention wants it.
 * Vector instructions would fault on such a stack (printf saves vector registers to it),
 * and would make every message of the program dearer.
 */
#pragma GCC target("general-regs-only")
