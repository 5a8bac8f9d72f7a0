// How long interrupts are off, how late handlers run, and where the time goes.
//
// Off: from the first kernel instruction after one in user mode (SYSCALL and
// interrupt gates clear the flag), from CLI, or from an interrupt's entry; on again
// with the next user instruction, STI, or an IRET in the kernel.
// Late: from an interrupt's entry, which may only note it, until the kernel is left,
// for its handler or for somebody who is more urgent, or goes on for the latter with
// an operation that it had put off, or has nothing to do (HLT). One that is kept until the handler
// has acknowledged the one before keeps nobody waiting.
// Nothing is watched before the kernel has returned to user mode for the first time, on another processor
// from an interrupt: that is booting.
//
// Each processor has stretches of its own. What it executes in a loop that waits for another one, from a PAUSE to
// the same PAUSE again, is none of its own work and no part of them. A visitor's processor that stands still is such a
// loop: it waits until the first processor leaves the kernel or an operation that goes on later, so its wait is counted
// in what that one executes: from the first PAUSE until the first processor is in user mode, halts, or goes on with
// what it had put off, or the other one goes on; of several from the first one's until none stands still.
#ifndef BATON_BENCH_STRETCH_H
#define BATON_BENCH_STRETCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "shared.h"

// Instructions so far, of each processor; of the only one the emulator counts them itself, inline.
extern uint64_t executed[PROCESSORS];

enum watch { OFF, LATE, STOOD, WATCHES };

// A block of code, as long as the stretch of each kind may last that it is part of, on each processor.
struct block {
    uint64_t address;
    struct {
        uint64_t stretch, instructions; // in stretch number `stretch`
    } in[PROCESSORS][WATCHES];
};

// What is entered when a block begins.
enum entry { NO_ENTRY, EXCEPTION, INTERRUPT };

// The first instruction of `block` is about to run, on processor `vcpu`, as all below.
void stretch_block(unsigned vcpu, struct block *block, bool user, enum entry entry);
// A cli, sti, iret or sysret at `address` in the kernel is about to run.
void stretch_off(unsigned vcpu, uint64_t address);
void stretch_on(unsigned vcpu, uint64_t address);
// At `address` somebody has been chosen to run, in the kernel: to go on with what had been
// put off, or nobody (hlt).
void stretch_chosen(unsigned vcpu, uint64_t address);
// The interrupt that entered last is kept.
void stretch_kept(unsigned vcpu);
void stretch_halt(unsigned vcpu, uint64_t address);
void stretch_watch(unsigned vcpu);
// A PAUSE at `address` in the kernel is about to run, where a visitor's processor stands still or not.
void stretch_pause(unsigned vcpu, uint64_t address, bool stands);
// The longest with interrupts off since the last call.
uint64_t stretch_sample(unsigned vcpu);
// The stretches at hand are the kernel's checking itself on demand: they are judged apart.
void stretch_excuse(unsigned vcpu);
// Lines `excused N`, `longest ...` and `late ...`, the latter two with the blocks of
// the longest stretch behind them: `place ADDRESS INSTRUCTIONS`, with what was waiting. Before those of another processor than the first
// `processor N`, and behind them all, if there are several, `stands ...`, like the others, with what the first one did meanwhile.
// The kernel is `moved` higher than it was linked, and named as linked.
void stretch_report(FILE *out, unsigned processors, uint64_t moved);

#endif
