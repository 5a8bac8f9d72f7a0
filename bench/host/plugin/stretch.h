// How long interrupts are off, and where the time goes.
//
// Off: from the first kernel instruction after one in user mode (SYSCALL and
// interrupt gates clear the flag), from CLI, or from an interrupt's entry; on again
// with the next user instruction, STI, or an IRET in the kernel. Nothing is watched
// before the kernel has returned to user mode for the first time: that is booting.
#ifndef BATON_BENCH_STRETCH_H
#define BATON_BENCH_STRETCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Instructions so far; the emulator counts them itself, inline.
extern uint64_t executed;

// A block of code, as long as the stretch may last that it is part of.
struct block {
    uint64_t address;
    uint64_t stretch, instructions; // in stretch number `stretch`
};

// The first instruction of `block` is about to run. `entry`: it is an interrupt's entry.
void stretch_block(struct block *block, bool user, bool entry);
// A cli, sti, iret or sysret at `address` in the kernel is about to run.
void stretch_off(uint64_t address);
void stretch_on(uint64_t address);
void stretch_watch(void);
// The longest since the last call.
uint64_t stretch_sample(void);
// The stretch at hand is the kernel's checking itself on demand: it is judged apart.
void stretch_excuse(void);
// Lines `excused N` and `longest ...`, then the blocks of the longest stretch: `place ADDRESS INSTRUCTIONS`.
void stretch_report(FILE *out);

#endif
