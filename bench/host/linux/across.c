// What is measured of Linux programs on several processors in long or waiting work: the only program of a small system,
// run as init under the tally, on Linux and, unchanged, on Baton's Unix server. The first sample is a loop of known length.
//
// With PIPE: a byte to a process on the second processor and back, through pipes. Without: eight processes that compute, from
// the first fork to the last wait. Prints `load NAME` before the samples and `bench done`, then stops the machine.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/io.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXCHANGES = 64, ROUNDS = 3, CHILDREN = 8, LOOPS = 15000000 };

#define MARK(which) __asm__ volatile(".byte 0x0F, 0x1F, 0x84, 0, 0x42, 0x54, 0x4E, " #which ::: "memory")

static void stop(int code)
{
    fflush(stdout);
    usleep(10000);
    ioperm(0xF4, 4, 1);
    outl((unsigned)code, 0xF4);
    for (;;)
        pause();
}

static void must(int good, const char *what)
{
    if (good)
        return;
    printf("bench FAILED: %s\n", what);
    stop(0x11);
}

static inline void spin(uint64_t rounds)
{
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(rounds));
}

#ifdef PIPE
static void be_on(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    must(sched_setaffinity(0, sizeof set, &set) == 0 && sched_getcpu() == processor, "sched_setaffinity");
}

static void measure(void)
{
    int there[2], back[2];
    char byte = 0;
    must(pipe(there) == 0 && pipe(back) == 0, "pipe");
    printf("load pipe-roundtrip\n");
    fflush(stdout);
    if (fork() == 0) {
        be_on(1);
        while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
            ;
        _exit(0);
    }
    be_on(0);
    for (int round = 0; round < EXCHANGES; round++) {
        MARK(1);
        int good = write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1;
        MARK(2);
        must(good, "pipe");
    }
}
#else
static void measure(void)
{
    printf("load computing\n");
    fflush(stdout);
    for (int round = 0; round < ROUNDS; round++) {
        int good = 1, status = 0;
        unsigned long seen = 0;
        MARK(1);
        for (int child = 0; child < CHILDREN; child++)
            if (fork() == 0) {
                spin(LOOPS);
                _exit(sched_getcpu());
            }
        for (int child = 0; child < CHILDREN; child++) {
            good &= wait(&status) > 0 && WIFEXITED(status);
            seen |= 1ul << WEXITSTATUS(status);
        }
        MARK(2);
        must(good, "wait");
        must(__builtin_popcountl(seen) == sysconf(_SC_NPROCESSORS_ONLN), "not all processors compute");
    }
}
#endif

int main(void)
{
    mkdir("/dev", 0755);
    mknod("/dev/console", S_IFCHR | 0600, makedev(5, 1));
    int console = open("/dev/console", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(console, fd);
    MARK(1);
    spin(1000);
    MARK(2);
    measure();
    printf("bench done\n");
    stop(0x10);
}
