// What the instrument wants to know about an instruction from its bytes.
#ifndef BATON_BENCH_DECODE_H
#define BATON_BENCH_DECODE_H

#include <stddef.h>
#include <stdint.h>

// The costly instructions, each a column of the report. NAMES has the same order.
enum cost {
    COST_NONE,
    COST_SYSCALL,
    COST_SYSRET,
    COST_IRET,
    COST_MOV_CR,
    COST_WRMSR,
    COST_GSBASE, // wrgsbase, wrfsbase, swapgs
    COST_INVLPG,
    COST_INVPCID,
    COST_LOCKED, // lock prefix, xchg with memory
    COST_XSAVE,  // xsave and xrstor in all their forms, fxsave, fxrstor
    COST_SERIAL, // cpuid, lgdt, lidt, ltr, wbinvd, mov dr
    COST_IO,
    COST_HALT,
    COSTS
};
#define COST_NAMES                                                                        \
    { "", "syscall", "sysret", "iret", "mov_cr", "wrmsr", "gsbase", "invlpg", "invpcid", \
      "locked", "xsave", "serialising", "io", "hlt" }

// What else matters: marks in the measured program, changes of the interrupt flag, rounds of a loop that waits.
enum role { ROLE_PLAIN, ROLE_BEGIN, ROLE_END, ROLE_PHASE, ROLE_HANDLER, ROLE_STI, ROLE_CLI, ROLE_RETURN, ROLE_PAUSE };

enum cost decode_cost(const uint8_t *bytes, size_t size);
enum role decode_role(const uint8_t *bytes, size_t size);

#endif
