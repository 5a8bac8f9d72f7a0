// What Linux takes for the same things: the only program of a small system, run as
// init in the emulator that measures Baton, with the same flags; and, unchanged, on
// Baton's Unix server. The time stamp
// counter ticks once per instruction there; every figure is the least of many
// rounds, less the reading of the counter itself. Two processes on one processor.
//
// With ONLY_CALLS the single calls alone, for the gate.
// Prints `row NAME VALUE [KEY=VALUE ...]` and `bench done`, then stops the machine.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 200, WARM_UP = 20, PAGES = 256, FEW = 12 };

static uint64_t overhead;

static inline uint64_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}

static void stop(int code)
{
    fflush(stdout);
    usleep(10000);
    ioperm(0xF4, 4, 1);
    outl((unsigned)code, 0xF4);
    for (;;)
        pause();
}

static void check(int good, const char *what)
{
    if (good)
        return;
    printf("bench FAILED: %s\n", what);
    stop(0x11);
}

static void row(const char *name, uint64_t least, const char *parameters)
{
    printf("row %s %llu%s\n", name, (unsigned long long)(least - overhead), parameters);
    fflush(stdout);
}

// The least of `rounds` measurements of STATEMENT.
#define LEAST(rounds, result, statement)          \
    do {                                          \
        (result) = UINT64_MAX;                    \
        for (int round_ = 0; round_ < (rounds); round_++) { \
            uint64_t from_ = ticks();             \
            statement;                            \
            uint64_t took_ = ticks() - from_;     \
            if (took_ < (result))                 \
                (result) = took_;                 \
        }                                         \
    } while (0)

// A loop of 1,000 rounds of two instructions: the counter has to say 2,000.
static void check_counter(void)
{
    uint64_t least;
    LEAST(ROUNDS, overhead, );
    LEAST(ROUNDS, least, {
        uint64_t rounds = 1000;
        __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(rounds));
    });
    printf("check 2001 %llu\n", (unsigned long long)(least - overhead));
}

// --- two processes, a byte there and a byte back --------------------------------

struct ends {
    int mine[2], yours[2]; // read, write
};

static void ping_pong(const char *name, struct ends ends, size_t bytes, const char *parameters)
{
    static char buffer[4096];
    pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0)
        for (;;) {
            if (read(ends.yours[0], buffer, bytes) <= 0 || write(ends.yours[1], buffer, bytes) <= 0)
                _exit(0);
        }
    uint64_t least;
    LEAST(ROUNDS, least, {
        check(write(ends.mine[1], buffer, bytes) == (ssize_t)bytes, name);
        check(read(ends.mine[0], buffer, bytes) == (ssize_t)bytes, name);
    });
    row(name, least, parameters);
    kill(child, 9);
    waitpid(child, NULL, 0);
}

static void pipes(void)
{
    int there[2], back[2];
    check(pipe(there) == 0 && pipe(back) == 0, "pipe");
    struct ends ends = { { back[0], there[1] }, { there[0], back[1] } };
    ping_pong("linux/pipe-roundtrip", ends, 1, " bytes=1");
    ping_pong("linux/pipe-roundtrip", ends, 960, " bytes=960");
    ping_pong("linux/pipe-roundtrip", ends, 4096, " bytes=4096");
}

static void sockets(const char *name, int type)
{
    int pair[2];
    check(socketpair(AF_UNIX, type, 0, pair) == 0, name);
    ping_pong(name, (struct ends){ { pair[0], pair[0] }, { pair[1], pair[1] } }, 1, " bytes=1");
}

// A connection on the loopback, which Linux has to be told to switch on.
static void internet(void)
{
    struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(7000) };
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    check(ioctl(listener, SIOCSIFFLAGS, &lo) == 0, "lo");
    check(bind(listener, (struct sockaddr *)&at, sizeof at) == 0, "bind");
    check(listen(listener, 1) == 0, "listen");
    check(connect(client, (struct sockaddr *)&at, sizeof at) == 0, "connect");
    int server = accept(listener, NULL, NULL), on = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct ends ends = { { client, client }, { server, server } };
    ping_pong("linux/tcp-roundtrip", ends, 1, " bytes=1");
    close(client), close(server), close(listener);
}

static void eventfds(void)
{
    int there = eventfd(0, 0), back = eventfd(0, 0);
    check(there >= 0 && back >= 0, "eventfd");
    pid_t child = fork();
    uint64_t value = 1, got, least;
    if (child == 0)
        for (;;) {
            check(read(there, &got, 8) == 8, "eventfd");
            check(write(back, &value, 8) == 8, "eventfd");
        }
    LEAST(ROUNDS, least, {
        check(write(there, &value, 8) == 8, "eventfd");
        check(read(back, &got, 8) == 8, "eventfd");
    });
    row("linux/eventfd-roundtrip", least, "");
    kill(child, 9);
    waitpid(child, NULL, 0);
}

static void wait_for(volatile int *word, int value)
{
    while (*word != value)
        syscall(SYS_futex, word, FUTEX_WAIT, !value, NULL, NULL, 0);
}

static void set(volatile int *word, int value)
{
    *word = value;
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void futexes(void)
{
    volatile int *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(word != MAP_FAILED, "mmap");
    pid_t child = fork();
    if (child == 0)
        for (;;) {
            wait_for(word, 1);
            set(word, 0);
        }
    uint64_t least;
    LEAST(ROUNDS, least, {
        set(word, 1);
        wait_for(word, 0);
    });
    row("linux/futex-roundtrip", least, "");
    kill(child, 9);
    waitpid(child, NULL, 0);
}

// --- everything else ---------------------------------------------------------------

static void calls(void)
{
    uint64_t least;
    struct timespec now;
    static char buffer[4096];
    int zero = open("/dev/zero", O_RDONLY), file = open("/tmp/file", O_RDWR | O_CREAT, 0600);
    check(zero >= 0 && file >= 0 && write(file, buffer, sizeof buffer) == sizeof buffer, "open");
    LEAST(ROUNDS, least, syscall(SYS_getppid));
    row("linux/getppid", least, "");
    // A program with a vector instruction between its calls, as compilers emit them.
    LEAST(ROUNDS, least, {
        __asm__ volatile("pcmpeqd %%xmm0, %%xmm0" ::: "xmm0");
        syscall(SYS_getppid);
    });
    row("linux/getppid-vector", least, "");
    LEAST(ROUNDS, least, syscall(1000));
    row("linux/invalid-call", least, "");
    LEAST(ROUNDS, least, clock_gettime(CLOCK_MONOTONIC, &now));
    row("linux/clock-gettime", least, "");
    LEAST(ROUNDS, least, check(pread(file, buffer, sizeof buffer, 0) == sizeof buffer, "read"));
    row("linux/read-4096", least, "");
    LEAST(ROUNDS, least, check(read(zero, buffer, sizeof buffer) == sizeof buffer, "read"));
    row("linux/read-zero-4096", least, "");
}

static void page_faults(void)
{
    char *pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(pages != MAP_FAILED && madvise(pages, PAGES * 4096, MADV_NOHUGEPAGE) == 0, "mmap");
    // The mean: a system may map more than the page that was touched.
    uint64_t from = ticks();
    for (int page = 0; page < PAGES; page++)
        *(volatile char *)(pages + page * 4096) = 1;
    row("linux/page-fault", (ticks() - from) / PAGES + overhead, " pages=256");
}

static void fork_exit_wait(const char *parameters)
{
    uint64_t least;
    LEAST(FEW, least, {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
    });
    row("linux/fork-exit-wait", least, parameters);
}

// Runs a program in a child; its status must be 0.
static void run(char *const *arguments)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        execv(arguments[0], arguments);
        _exit(1);
    }
    check(waitpid(child, &status, 0) == child && status == 0, arguments[0]);
}

static void exec(char *const *arguments, const char *parameters)
{
    uint64_t least;
    LEAST(FEW, least, run(arguments));
    row("linux/exec", least, parameters);
}

static void processes(const char *self)
{
    enum { RESIDENT = 1 << 20 };
    fork_exit_wait("");
    char *memory = mmap(NULL, RESIDENT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED && madvise(memory, RESIDENT, MADV_NOHUGEPAGE) == 0, "mmap");
    memset(memory, 1, RESIDENT);
    fork_exit_wait(" resident=1048576");
    munmap(memory, RESIDENT);
    exec((char *[]){ (char *)self, "exit", NULL }, " includes=fork,exit,wait");
    exec((char *[]){ "/bin/busybox", "true", NULL }, " program=busybox includes=fork,exit,wait");
}

static void script(void)
{
    uint64_t least;
    LEAST(2, least, run((char *[]){ "/bin/sh", "/script", NULL }));
    row("linux/script-1000-files", least, "");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "exit") == 0)
        _exit(0);
    mkdir("/dev", 0755);
    mkdir("/tmp", 0700);
    mknod("/dev/console", S_IFCHR | 0600, makedev(5, 1));
    mknod("/dev/zero", S_IFCHR | 0600, makedev(1, 5));
    mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
    int console = open("/dev/console", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(console, fd);
    struct utsname name;
    uname(&name);
    printf("system %s %s\n", name.sysname, name.release);
    check_counter();
    calls();
#ifndef ONLY_CALLS
    page_faults();
    pipes();
    sockets("linux/unix-stream-roundtrip", SOCK_STREAM);
    sockets("linux/unix-seqpacket-roundtrip", SOCK_SEQPACKET);
    internet();
    eventfds();
    futexes();
    processes("/init");
    script();
#endif
    printf("bench done\n");
    stop(0x10);
}
