// Clocks, sleeping, timers of a process, and what they refuse.
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/times.h>
#include <time.h>
#include "probe.h"

static volatile int alarms;

static void on_alarm(int number)
{
    alarms += number == SIGALRM || number == SIGVTALRM || number == SIGUSR1;
}

static int64_t nanoseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void clocks(void)
{
    section("clocks");
    struct timespec now, resolution;
    int64_t before = nanoseconds(CLOCK_MONOTONIC), bad = 0;
    for (int i = 0; i < 10000; i++) {
        int64_t after = nanoseconds(CLOCK_MONOTONIC);
        bad += after < before;
        before = after;
    }
    printf("backwards %ld\n", (long)bad);
    FACT(nanoseconds(CLOCK_REALTIME) > 0);
    SHOW(clock_gettime(77, &now));
    SHOW(RAW(clock_gettime, CLOCK_MONOTONIC, BAD));
    SHOW(RAW(clock_gettime, 77, &now));
    SHOW(clock_getres(CLOCK_MONOTONIC, &resolution));
    printf("resolution %ld.%09ld\n", resolution.tv_sec, resolution.tv_nsec);
    SHOW(clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) == 0 && resolution.tv_nsec >= 1000000);
    int64_t raw;
    struct timespec direct;
    RAW(clock_gettime, CLOCK_MONOTONIC, &direct);
    raw = direct.tv_sec * INT64_C(1000000000) + direct.tv_nsec;
    int64_t page = nanoseconds(CLOCK_MONOTONIC);
    FACT(page >= raw && page - raw < 1000000000);
    struct timeval day;
    SHOW(gettimeofday(&day, NULL));
    // time() is of the last tick: right behind a second's begin it is still in the one before.
    time_t second = time(NULL);
    FACT(second - day.tv_sec >= -1 && second - day.tv_sec <= 1);
    SHOW(RAW(time, BAD));
    SHOW(RAW(gettimeofday, BAD, NULL));
    int64_t cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    for (volatile int i = 0; i < 10000000; i++)
        ;
    FACT(nanoseconds(CLOCK_PROCESS_CPUTIME_ID) > cpu);
    FACT(nanoseconds(CLOCK_THREAD_CPUTIME_ID) > 0);
    FACT(nanoseconds(CLOCK_BOOTTIME) >= page);
    FACT(times(NULL) > 0);
    FACT(clock() > 0);
}

static void sleeping(void)
{
    section("sleeping");
    int64_t before = nanoseconds(CLOCK_MONOTONIC);
    struct timespec wait = {0, 20000000}, wrong = {0, 1000000000}, negative = {-1, 0};
    SHOW(nanosleep(&wait, NULL));
    FACT(nanoseconds(CLOCK_MONOTONIC) - before >= 20000000);
    SHOW(nanosleep(&wrong, NULL));
    SHOW(nanosleep(&negative, NULL));
    SHOW(nanosleep(BAD, NULL));
    clock_gettime(CLOCK_MONOTONIC, &wait);
    wait.tv_nsec += 10000000;
    if (wait.tv_nsec >= 1000000000)
        wait.tv_sec++, wait.tv_nsec -= 1000000000;
    SHOW(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wait, NULL));
    SHOW(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wait, NULL));
    SHOW(clock_nanosleep(77, 0, &wait, NULL));
}

static void timers(void)
{
    section("timers");
    struct itimerval every = {{0, 10000}, {0, 10000}}, old;
    signal(SIGALRM, on_alarm), signal(SIGVTALRM, on_alarm), signal(SIGUSR1, on_alarm);
    SHOW(setitimer(ITIMER_REAL, &every, NULL));
    while (alarms < 3)
        pause();
    every = (struct itimerval){{0, 0}, {0, 0}};
    SHOW(setitimer(ITIMER_REAL, &every, &old));
    printf("interval %ld\n", (long)old.it_interval.tv_usec);
    SHOW(getitimer(ITIMER_REAL, &old));
    printf("left %ld\n", (long)old.it_value.tv_usec);
    alarms = 0;
    every.it_value.tv_usec = 20000;
    SHOW(setitimer(ITIMER_VIRTUAL, &every, NULL));
    while (alarms == 0)
        ;
    printf("virtual %d\n", alarms);
    every.it_value.tv_usec = 1000000;
    SHOW(setitimer(ITIMER_REAL, &every, NULL));
    SHOW(setitimer(77, &old, NULL));
    SHOW(getitimer(ITIMER_REAL, BAD));
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec once = {{0, 0}, {0, 10000000}};
    alarms = 0;
    SHOW(timer_create(CLOCK_MONOTONIC, &event, &timer));
    SHOW(timer_settime(timer, 0, &once, NULL));
    while (alarms == 0)
        usleep(1000);
    SHOW(timer_getoverrun(timer));
    SHOW(timer_gettime(timer, &once));
    printf("left %ld\n", once.it_value.tv_nsec);
    SHOW(timer_delete(timer));
    SHOW(RAW(timer_delete, 77));
}

int main(void)
{
    clocks();
    sleeping();
    timers();
    return 0;
}
