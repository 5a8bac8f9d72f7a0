/*
 * stub.h - the stub that stands in for every system call (stub.S), as the tests see it: with which
 * registers it was called, with which it answers.
 */
#ifndef CHECK_STUB_H
#define CHECK_STUB_H

#include <l4/baton.h>
#include <l4/ipc.h>
#include <l4/misc.h>
#include <l4/schedule.h>
#include <l4/space.h>
#include "../../../tests/c-api/test.h"

enum { RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R11, R12, R13, R14, R15, RSP };

#ifdef __cplusplus
extern "C" {
#endif
extern L4_Word_t check_in[16], check_out[16], check_calls;
extern L4_Word_t check_utcb[128];

/* Nothing was called yet; each register's answer tells which it is. */
void prepare(void);
/* The manual's names, one by one. */
void run_name_tests(void);
#ifdef __cplusplus
}
#endif

/* The UTCB, which %gs:0 leads to. */
#define U (check_utcb + 64)
#define OUT(r) (0xABCD000000000000UL + (r))

L4_INLINE L4_ThreadId_t id(L4_Word_t raw)
{
    L4_ThreadId_t t;
    t.raw = raw;
    return t;
}

L4_INLINE L4_Fpage_t fpage(L4_Word_t raw)
{
    L4_Fpage_t f;
    f.raw = raw;
    return f;
}

#endif
