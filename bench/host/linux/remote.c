// What calls of a Linux program take that runs on the second processor, while Baton's Unix server runs on the
// first: the only program of a small system, run as init under the instrument, which counts between marks on
// both. Each call has a phase of its own; the first phase is a loop of known length.
//
// Prints `call NAME` as it begins a phase and `bench done`, then stops the machine.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/io.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 64 };

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

// Measures STATEMENT in a phase of its own.
#define CALL(name, statement)                         \
    do {                                              \
        printf("call %s\n", name);                    \
        fflush(stdout);                               \
        statement;                                    \
        MARK(3);                                      \
        for (int round_ = 0; round_ < ROUNDS; round_++) { \
            MARK(1);                                  \
            statement;                                \
            MARK(2);                                  \
        }                                             \
    } while (0)

int main(void)
{
    mkdir("/dev", 0755);
    mknod("/dev/console", S_IFCHR | 0600, makedev(5, 1));
    int console = open("/dev/console", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(console, fd);
    cpu_set_t second;
    CPU_ZERO(&second);
    CPU_SET(1, &second);
    unsigned number = 0;
    if (sched_setaffinity(0, sizeof second, &second) != 0 || syscall(SYS_getcpu, &number, NULL, NULL) != 0 || number != 1) {
        printf("this does not run on the second processor\n");
        stop(0x11);
    }
    struct timespec now;
    struct timeval day;
    char word[4] = { 0 };
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int ends[2];
    if (pipe(ends) != 0)
        stop(0x11);
    CALL("loop", {
        uint64_t rounds = 1000;
        __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(rounds));
    });
    CALL("getppid", syscall(SYS_getppid));
    CALL("getpid", syscall(SYS_getpid));
    CALL("clock_gettime", clock_gettime(CLOCK_MONOTONIC, &now));
    CALL("gettimeofday", gettimeofday(&day, NULL));
    CALL("time", time(NULL));
    CALL("getcpu", getcpu(&number, NULL));
    CALL("mutex", pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex));
    CALL("sched_yield", sched_yield());
    CALL("pipe-byte", if (write(ends[1], word, 1) != 1 || read(ends[0], word, 1) != 1) stop(0x11));
    printf("bench done\n");
    stop(0x10);
}
