/*
 * l4/tracebuffer.h - the trace buffer of some kernels. Baton has none: recording does
 * nothing, and no buffer is found.
 */
#ifndef L4_TRACEBUFFER_H
#define L4_TRACEBUFFER_H

#include <l4/types.h>

#define L4_Tbuf_GetTbuf() ((void *)0)
#define L4_Tbuf_RecordEvent(...) ((void)0)

#endif
