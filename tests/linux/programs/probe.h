// What the test programs share: every check prints one line that is the same on
// every run, so that the outputs of two systems can be compared byte for byte.
#ifndef PROBE_H
#define PROBE_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

// An address that no process has, and one in the kernel's half; the compiler need
// not know.
static void *volatile BAD __attribute__((unused)) = (void *)8;
static void *volatile FAR __attribute__((unused)) = (void *)0xffff800000001000;

// Prints `WHAT: RESULT`, with the name of the error for -1.
static inline long shown(const char *what, long result)
{
    int error = errno;
    if (result == -1)
        printf("%s: %s\n", what, strerrorname_np(error) ? strerrorname_np(error) : "error");
    else
        printf("%s: %ld\n", what, result);
    errno = error;
    return result;
}

// The call, its text, and its result.
#define SHOW(call) (errno = 0, shown(#call, (long)(call)))

// Only whether it worked: for descriptors, addresses and process numbers.
static inline long worked(const char *what, long result)
{
    int error = errno;
    if (result == -1)
        printf("%s: %s\n", what, strerrorname_np(error) ? strerrorname_np(error) : "error");
    else
        printf("%s: ok\n", what);
    errno = error;
    return result;
}

#define WORKS(call) (errno = 0, worked(#call, (long)(call)))

// A fact: printed as `TEXT: yes` or `TEXT: no`.
#define FACT(condition) printf("%s: %s\n", #condition, (condition) ? "yes" : "no")

// The raw call, without the C library's opinion; -1 and errno as usual.
#define RAW(name, ...) syscall(SYS_##name, ##__VA_ARGS__)

static inline void section(const char *name)
{
    printf("== %s\n", name);
}

// Waits for a child and prints how it ended.
static inline void ended(const char *who, pid_t child)
{
    int status = 0;
    pid_t got;
    do
        got = waitpid(child, &status, 0);
    while (got == -1 && errno == EINTR);
    if (got != child)
        printf("%s: waitpid failed: %s\n", who, strerrorname_np(errno));
    else if (WIFEXITED(status))
        printf("%s: exit %d\n", who, WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        printf("%s: signal %s\n", who, sigabbrev_np(WTERMSIG(status)));
    else
        printf("%s: status %#x\n", who, (unsigned)status);
}

// Runs BODY in a child, so that it may die; prints how it ended.
#define CHILD(who, body)        \
    do {                        \
        fflush(stdout);         \
        pid_t child_ = fork();  \
        if (child_ == 0) {      \
            body;               \
            fflush(stdout);     \
            _exit(0);           \
        }                       \
        ended(who, child_);     \
    } while (0)

// Line by line, so that nothing is lost or doubled by fork and death.
static inline __attribute__((constructor)) void probe_start(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
}

#endif
