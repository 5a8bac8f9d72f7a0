// Lines of memory that one processor writes and another one touches, each in samples of its own.
#ifndef BATON_BENCH_SHARED_H
#define BATON_BENCH_SHARED_H

#include <stdbool.h>
#include <stdint.h>

enum { PROCESSORS = 8 };

// A sample of processor `vcpu` begins.
void shared_begin(unsigned vcpu);
// In it, `line`, a place in the machine's memory, is touched in `mode`.
void shared_touch(unsigned vcpu, int mode, uint64_t line, bool writes);
// It has ended, and counts.
void shared_keep(unsigned vcpu);
// How many lines are shared by the samples that count, of what was touched in `mode`.
uint64_t shared_count(int mode);
// Touched by processor `vcpu` while anybody has a sample: whatever it was for.
void shared_any_touch(unsigned vcpu, int mode, uint64_t line, bool writes);
// How many lines are shared by processors while anybody had a sample, of what was touched in `mode`.
uint64_t shared_any_count(int mode);
// From now on.
void shared_clear(void);

#endif
