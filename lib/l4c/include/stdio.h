/* stdio.h - the part of the standard header that the library has; see l4c.h. */
#ifndef L4C_STDIO_H
#define L4C_STDIO_H
#include <l4c.h>
#endif
