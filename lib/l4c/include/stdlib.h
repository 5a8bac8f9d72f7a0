/* stdlib.h - the part of the standard header that the library has; see l4c.h. */
#ifndef L4C_STDLIB_H
#define L4C_STDLIB_H
#include <l4c.h>
#endif
