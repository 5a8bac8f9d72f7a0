// Namespaces of clocks: what time it is there, by call and by the vDSO, and what is refused.
#include "probe.h"

#include <linux/futex.h>
#include <linux/nsfs.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>
#include <time.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

// Before anything was put forward, in seconds.
static int64_t start;

// How many thousands of seconds more than at the start a clock shows.
static long ahead(int64_t seconds)
{
    return (seconds - start + 500) / 1000;
}

static void told(const char *who)
{
    static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME,
                                       CLOCK_BOOTTIME_ALARM};
    struct timespec now;
    struct sysinfo info;
    double up = 0;
    printf("%s:", who);
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        clock_gettime(clocks[i], &now);
        printf(" %ld", ahead(now.tv_sec));
        RAW(clock_gettime, clocks[i], &now);
        printf("/%ld", ahead(now.tv_sec));
    }
    FILE *file = fopen("/proc/uptime", "r");
    if (!file || fscanf(file, "%lf", &up) != 1)
        printf(" no uptime");
    if (file)
        fclose(file);
    sysinfo(&info);
    printf(", up %ld/%ld\n", ahead((int64_t)up), ahead(info.uptime));
}

static long put(const char *text)
{
    int fd = open("/proc/self/timens_offsets", O_WRONLY);
    long wrote = write(fd, text, strlen(text));
    close(fd);
    return wrote;
}

static void file(void)
{
    char text[200] = "";
    int fd = open("/proc/self/timens_offsets", O_RDONLY);
    if (read(fd, text, sizeof text - 1) < 0)
        printf("not read\n");
    close(fd);
    printf("%s", text);
}

static void waits(void)
{
    struct timespec until;
    uint64_t times = 0;
    unsigned word = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    SHOW(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL));
    SHOW(RAW(futex, &word, FUTEX_WAIT_BITSET, 0, &until, NULL, FUTEX_BITSET_MATCH_ANY));
    struct itimerspec when = {{0, 0}, {0, 0}};
    clock_gettime(CLOCK_BOOTTIME, &when.it_value);
    when.it_value.tv_sec += 1;
    int fd = timerfd_create(CLOCK_BOOTTIME, 0);
    SHOW(timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL));
    timerfd_gettime(fd, &when);
    FACT(when.it_value.tv_sec <= 1);
    SHOW(read(fd, &times, 8));
    SHOW(times);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    SHOW(timer_create(CLOCK_MONOTONIC, &event, &timer));
    clock_gettime(CLOCK_MONOTONIC, &when.it_value);
    when.it_value.tv_sec += 100;
    SHOW(timer_settime(timer, TIMER_ABSTIME, &when, NULL));
    timer_gettime(timer, &when);
    FACT(when.it_value.tv_sec > 50 && when.it_value.tv_sec <= 100);
}

static void *idle(void *unused)
{
    pause();
    return unused;
}

static void enters(int first)
{
    told("child");
    waits();
    SHOW(put("1 5 0"));
    CHILD("heir", told("heir"));
    FACT(ioctl(first, NS_GET_NSTYPE) == CLONE_NEWTIME);
    SHOW(ioctl(first, NS_GET_PARENT));
    SHOW(setns(first, CLONE_NEWUTS));
    SHOW(setns(first, CLONE_NEWTIME));
    told("back again");
    pthread_t thread;
    pthread_create(&thread, NULL, idle, NULL);
    SHOW(setns(first, CLONE_NEWTIME));
}

static void refusals(void)
{
    file();
    SHOW(put("1 1 0"));
    SHOW(unshare(CLONE_NEWTIME));
    static const char *const wrong[] = {"", "1", "1 5", "1 5 -1", "1 5 1000000000", "2 5 0", "monotonics 5 0", "1 x 0",
                                        "1 5 0\n\n", "1 -99999999 0", "7 4611686019 0", "7 9223372037 0"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        SHOW(put(wrong[i]));
    file();
    SHOW(put(" monotonic5\t6 and so on"));
    SHOW(put("1 7 8\nboottime -1 1\n1 1 1\n"));
    file();
    SHOW(unshare(CLONE_NEWTIME));
    file();
    int fd = open("/proc/self/timens_offsets", O_WRONLY);
    WORKS(fd);
    if (setresuid(1000, 1000, 1000))
        return;
    SHOW(write(fd, "1 5 0", 5));
    SHOW(write(fd, "1 5 0", 5));
    SHOW(unshare(CLONE_NEWTIME));
}

static void programs(char *self)
{
    fflush(stdout);
    // Linux refuses vfork here before 6.3.
    pid_t child = fork();
    if (child == 0) {
        char seconds[32];
        snprintf(seconds, sizeof seconds, "%ld", (long)start);
        execl(self, self, seconds, NULL);
        _exit(1);
    }
    ended("program", child);
    // struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack, its size, tls.
    uint64_t arguments[8] = {CLONE_NEWTIME, 0, 0, 0, SIGCHLD};
    child = RAW(clone3, arguments, sizeof arguments);
    if (child == 0) {
        told("by clone3");
        SHOW(put("1 5 0"));
        _exit(0);
    }
    ended("by clone3", child);
}

int main(int count, char **arguments)
{
    struct timespec now;
    if (count > 1) {
        start = atoll(arguments[1]);
        told("program");
        return 0;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    start = now.tv_sec;
    int first = open("/proc/self/ns/time_for_children", O_RDONLY);
    CHILD("refused", refusals());
    SHOW(unshare(CLONE_NEWTIME));
    SHOW(put("monotonic 10000 0\nboottime 20000 0\n"));
    told("maker");
    section("a child");
    CHILD("child", enters(first));
    section("programs");
    programs("/proc/self/exe");
    told("maker");
    return 0;
}
