// How long interrupts are off, how late handlers run, and where the time goes.
//
// Off: from the first kernel instruction after one in user mode (SYSCALL and
// interrupt gates clear the flag), from CLI, or from an interrupt's entry; on again
// with the next user instruction, STI, or an IRET in the kernel.
// Late: from an interrupt's entry, which may only note it, until the kernel is left,
// for its handler or for somebody who is more urgent, or goes on for the latter with
// an operation that it had put off, or has nothing to do (HLT).
// Nothing is watched before the kernel has returned to user mode for the first time:
// that is booting.
#ifndef BATON_BENCH_STRETCH_H
#define BATON_BENCH_STRETCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Instructions so far; the emulator counts them itself, inline.
extern uint64_t executed;

enum watch { OFF, LATE, WATCHES };

// A block of code, as long as the stretch of each kind may last that it is part of.
struct block {
    uint64_t address;
    struct {
        uint64_t stretch, instructions; // in stretch number `stretch`
    } in[WATCHES];
};

// What is entered when a block begins.
enum entry { NO_ENTRY, EXCEPTION, INTERRUPT };

// The first instruction of `block` is about to run.
void stretch_block(struct block *block, bool user, enum entry entry);
// A cli, sti, iret or sysret at `address` in the kernel is about to run.
void stretch_off(uint64_t address);
void stretch_on(uint64_t address);
// At `address` somebody has been chosen to run, in the kernel: to go on with what had been
// put off, or nobody (hlt).
void stretch_chosen(uint64_t address);
void stretch_watch(void);
// The longest with interrupts off since the last call.
uint64_t stretch_sample(void);
// The stretches at hand are the kernel's checking itself on demand: they are judged apart.
void stretch_excuse(void);
// Lines `excused N`, `longest ...` and `late ...`, the latter two with the blocks of
// the longest stretch behind them: `place ADDRESS INSTRUCTIONS`. The kernel is `moved` higher than
// it was linked, and named as linked.
void stretch_report(FILE *out, uint64_t moved);

#endif
