// membarrier: what it asks for, and that the other side of an asymmetric fence needs no barrier of its own.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include "probe.h"

enum {
    GLOBAL = 1, GLOBAL_EXPEDITED = 2, REGISTER_GLOBAL = 4,
    PRIVATE = 8, REGISTER_PRIVATE = 16,
    SYNC_CORE = 32, REGISTER_SYNC_CORE = 64,
    CPUS = 4, ROUNDS = 500,
};

static int barrier(int command)
{
    return (int)RAW(membarrier, command, 0, 0);
}

// --- what is asked for ----------------------------------------------------------

static void asked(void)
{
    section("asked");
    int query = barrier(0);
    FACT((query & 127) == 127);
    SHOW(RAW(membarrier, 0, 1, 0));
    SHOW(RAW(membarrier, PRIVATE, 4, 0));
    SHOW(barrier(3));
    SHOW(barrier(1 << 20));
    SHOW(barrier(-1));
    SHOW(barrier(GLOBAL));
    SHOW(barrier(GLOBAL_EXPEDITED));
    SHOW(barrier(PRIVATE));
    SHOW(barrier(SYNC_CORE));
    SHOW(barrier(REGISTER_SYNC_CORE));
    SHOW(barrier(PRIVATE));
    SHOW(barrier(SYNC_CORE));
    SHOW(barrier(REGISTER_PRIVATE));
    SHOW(barrier(PRIVATE));
    SHOW(barrier(REGISTER_GLOBAL));
    SHOW(barrier(GLOBAL_EXPEDITED));
    CHILD("child", {
        SHOW(barrier(PRIVATE));
        SHOW(barrier(SYNC_CORE));
    });
}

static void new_program(void)
{
    section("new program");
    SHOW(barrier(PRIVATE));
    SHOW(barrier(SYNC_CORE));
}

// --- store buffering -------------------------------------------------------------

// Each side writes its own word and reads the other's: not both may read what was there before. The quick side
// has nothing that keeps its read from coming before its write but the slow side's call.
static struct {
    _Alignas(128) volatile long word;
} quick, slow;
static _Alignas(128) atomic_int stop, placed;
// What the quick side saw when it wrote its word.
static _Alignas(128) atomic_long seen[ROUNDS + 2];

static void only(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        printf("processor %d: no\n", cpu);
}

static void *quick_side(void *cpu)
{
    only((int)(long)cpu);
    placed = 1;
    while (!stop) {
        // The number of the round, as long as the slow side has not written its word.
        long round = slow.word + 1;
        quick.word = round;
        atomic_signal_fence(memory_order_seq_cst);
        long there = slow.word;
        atomic_signal_fence(memory_order_seq_cst);
        // It has entered the round that it read as not begun.
        if (there < round)
            atomic_store_explicit(&seen[round], 1, memory_order_relaxed);
    }
    return NULL;
}

static void asymmetric(int command, int quick_cpu, int slow_cpu)
{
    pthread_t thread;
    quick.word = slow.word = 0;
    stop = placed = 0;
    memset((void *)seen, 0, sizeof seen);
    only(slow_cpu);
    pthread_create(&thread, NULL, quick_side, (void *)(long)quick_cpu);
    while (!placed)
        sched_yield();
    long not_seen[ROUNDS + 2] = { 0 };
    int refused = 0;
    for (long round = 1; round <= ROUNDS; round++) {
        slow.word = round;
        refused += barrier(command) != 0;
        not_seen[round] = quick.word < round;
    }
    stop = 1;
    pthread_join(thread, NULL);
    int both = 0;
    for (long round = 1; round <= ROUNDS; round++)
        both += not_seen[round] && seen[round];
    printf("command %d from %d to %d: %d refused, %d times both came first\n", command, slow_cpu, quick_cpu,
           refused, both);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        new_program();
        return 0;
    }
    asked();
    fflush(stdout);
    CHILD("exec", execl("/proc/self/exe", argv[0], "again", (char *)NULL));
    section("asymmetric");
    static const int commands[] = { PRIVATE, SYNC_CORE, GLOBAL_EXPEDITED };
    for (int i = 0; i < 3; i++)
        for (int cpu = 0; cpu < CPUS; cpu++) {
            asymmetric(commands[i], cpu, (cpu + 1) % CPUS);
            asymmetric(commands[i], cpu, (cpu + 2) % CPUS);
        }
    return 0;
}
