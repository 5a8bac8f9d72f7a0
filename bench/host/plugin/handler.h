// What is executed between a device's interrupt and its handler.
#ifndef BATON_BENCH_HANDLER_H
#define BATON_BENCH_HANDLER_H

#include <stdint.h>
#include <stdio.h>

// A device's interrupt enters on processor `vcpu`, which has executed `clock` instructions: its handler waits from now on,
// or already.
void handler_waits(unsigned vcpu, uint64_t clock);
// A handler runs there: a sample of `phase`, with what has been executed since it has waited, if it has.
void handler_runs(unsigned vcpu, uint64_t clock, uint64_t phase, int64_t *samples, FILE *out);

#endif
