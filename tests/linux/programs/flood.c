// Beside a program whose every call is dear, and beside one that gives its turn away all the time: who computes
// gets on, and who sleeps wakes.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>
#include "probe.h"

enum { FILTERS = 7, LENGTH = 4096, SLEEPS = 40, TRIES = 5 };

static void dear(void)
{
    static struct sock_filter code[LENGTH];
    for (int i = 0; i < LENGTH - 1; i++)
        code[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 1);
    code[LENGTH - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {LENGTH, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        _exit(1);
    for (int i = 0; i < FILTERS; i++)
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            _exit(1);
    for (;;)
        syscall(SYS_getppid);
}

static void yields(void)
{
    for (;;)
        sched_yield();
}

static void computes(volatile unsigned long *count)
{
    for (;;)
        ++*count;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

// How long so many sleeps of 5 ms take, and how far the computing program counts meanwhile.
static double sleeps(volatile unsigned long *count, unsigned long *counted)
{
    unsigned long before = *count;
    double start = now();
    for (int i = 0; i < SLEEPS; i++)
        usleep(5000);
    double took = now() - start;
    *counted = (unsigned long)((*count - before) / took);
    return took;
}

// The host may have other work, and then either measure is too low: a few tries are granted.
static void beside(const char *what, void (*flood)(void), volatile unsigned long *count)
{
    int fast = 0, soon = 0;
    for (int i = 0; i < TRIES && !(fast && soon); i++) {
        unsigned long alone, counted;
        sleeps(count, &alone);
        pid_t child = fork();
        if (child == 0)
            flood();
        usleep(50000);
        soon |= sleeps(count, &counted) < 3;
        fast |= counted > alone / 4;
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    printf("beside one that %s: computes %s, sleeps %s\n", what,
           fast ? "at a quarter of its speed or more" : "too slowly", soon ? "well" : "too long");
}

int main(void)
{
    volatile unsigned long *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t computing = fork();
    if (computing == 0)
        computes(count);
    beside("makes dear calls", dear, count);
    beside("yields", yields, count);
    kill(computing, SIGKILL);
    FACT(waitpid(computing, NULL, 0) == computing);
    return 0;
}
