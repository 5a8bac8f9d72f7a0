/* string.h - the part of the standard header that the library has; see l4c.h. */
#ifndef L4C_STRING_H
#define L4C_STRING_H
#include <l4c.h>
#endif
