// Four processors at once: what a program is told of them, where its threads are, futexes that all of them want,
// and signals from one to another.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/sysinfo.h>
#include <time.h>
#include "probe.h"

enum { CPUS = 4, ROUNDS = 20000, SIGNALS = 200 };

static int where(void)
{
    unsigned cpu = 99;
    return RAW(getcpu, &cpu, NULL, NULL) == 0 ? (int)cpu : -1;
}

static int only(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

static void spin_ms(long ms)
{
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

// --- what is told ---------------------------------------------------------------

static void told(void)
{
    section("told");
    cpu_set_t set;
    CPU_ZERO(&set);
    SHOW(get_nprocs());
    SHOW(sysconf(_SC_NPROCESSORS_ONLN));
    SHOW(sysconf(_SC_NPROCESSORS_CONF));
    SHOW(sched_getaffinity(0, sizeof set, &set));
    SHOW(CPU_COUNT(&set));
    unsigned long word = 0;
    SHOW(RAW(sched_getaffinity, 0, sizeof word, &word));
    FACT(word == 15);
    SHOW(RAW(sched_getaffinity, 0, 3, &word));
    SHOW(RAW(sched_getaffinity, 0, 0, &word));
    SHOW(RAW(sched_getaffinity, 0, sizeof word, BAD));
    SHOW(RAW(sched_getaffinity, 999999, sizeof word, &word));
}

static void affinity(void)
{
    section("affinity");
    unsigned long word = 0;
    for (int cpu = 0; cpu < CPUS; cpu++) {
        SHOW(only(cpu));
        SHOW(where());
        SHOW(sched_getcpu());
        spin_ms(2);
        SHOW(where());
    }
    SHOW(only(CPUS));
    SHOW(only(70));
    SHOW(RAW(sched_setaffinity, 0, sizeof word, &word));
    SHOW(RAW(sched_setaffinity, 0, sizeof word, BAD));
    SHOW(RAW(sched_setaffinity, 999999, sizeof word, &word));
    // What is not there does not count.
    word = 1UL << 40 | 4;
    SHOW(RAW(sched_setaffinity, 0, sizeof word, &word));
    SHOW(where());
    RAW(sched_getaffinity, 0, sizeof word, &word);
    FACT(word == 4);
    // Shorter than a word.
    unsigned char byte = 2;
    SHOW(RAW(sched_setaffinity, 0, 1, &byte));
    SHOW(where());
    // A child has it from its parent, and a program from whoever started it.
    CHILD("child", {
        SHOW(where());
        RAW(sched_getaffinity, 0, sizeof word, &word);
        FACT(word == 2);
        SHOW(only(3));
    });
    SHOW(where());
    word = 15;
    SHOW(RAW(sched_setaffinity, 0, sizeof word, &word));
}

// Another process is moved while it computes, and while it waits.
static void of_others(void)
{
    section("of others");
    _Atomic int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0)
        for (;;) {
            shared[0] = where();
            shared[1]++;
            if (shared[2])
                pause();
        }
    cpu_set_t set;
    int wrong = 0;
    for (int round = 0; round < 40; round++) {
        CPU_ZERO(&set);
        CPU_SET(round % CPUS, &set);
        wrong += sched_setaffinity(child, sizeof set, &set) != 0;
        // Looked at and told in between: two rounds of its own later it is there.
        for (int seen = shared[1]; shared[1] < seen + 3;)
            sched_yield();
        wrong += shared[0] != round % CPUS;
    }
    SHOW(wrong);
    shared[2] = 1;
    usleep(20000);
    CPU_ZERO(&set);
    CPU_SET(3, &set);
    SHOW(sched_setaffinity(child, sizeof set, &set));
    kill(child, SIGKILL);
    ended("moved", child);
    SHOW(sched_setaffinity(child, sizeof set, &set));
}

// --- threads --------------------------------------------------------------------

static _Atomic int together, most, misplaced;

static void *computes(void *number)
{
    int mine = (int)(long)number;
    only(mine);
    // All four have to be at it at the same time for this to end.
    together++;
    while (together < CPUS)
        ;
    for (int i = 0; i < 2000; i++)
        misplaced += sched_getcpu() != mine;
    most = together;
    return NULL;
}

static void run(void *(*body)(void *))
{
    pthread_t threads[CPUS];
    for (long i = 0; i < CPUS; i++)
        pthread_create(&threads[i], NULL, body, (void *)i);
    for (int i = 0; i < CPUS; i++)
        pthread_join(threads[i], NULL);
}

static void threads(void)
{
    section("threads");
    run(computes);
    SHOW(most);
    SHOW(misplaced);
}

// --- futexes --------------------------------------------------------------------

static _Atomic int word, inside, overlaps;
static long guarded, plain_sum;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn;

static void lock(void)
{
    int free = 0;
    if (atomic_compare_exchange_strong(&word, &free, 1))
        return;
    while (atomic_exchange(&word, 2) != 0)
        RAW(futex, &word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static void unlock(void)
{
    if (atomic_exchange(&word, 0) == 2)
        RAW(futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *contends(void *number)
{
    only((int)(long)number);
    for (int i = 0; i < ROUNDS; i++) {
        lock();
        overlaps += ++inside != 1;
        guarded++;
        inside--;
        unlock();
    }
    return NULL;
}

static void *takes_turns(void *number)
{
    int mine = (int)(long)number;
    only(mine);
    for (int i = 0; i < 500; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != mine)
            pthread_cond_wait(&turned, &mutex);
        plain_sum += turn;
        turn = (turn + 1) % CPUS;
        pthread_cond_broadcast(&turned);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void futexes(void)
{
    section("futexes");
    run(contends);
    SHOW(guarded);
    SHOW(overlaps);
    SHOW(word);
    run(takes_turns);
    SHOW(plain_sum);
    SHOW(turn);
}

// --- signals between processors ---------------------------------------------------

static _Atomic int caught, started;

static void on_signal(int number)
{
    (void)number;
    caught++;
}

static void *is_hit(void *number)
{
    only((int)(long)number);
    started = 1;
    // Computes without a call: the signal has to come to it.
    while (caught < SIGNALS)
        ;
    return NULL;
}

static void signals(void)
{
    section("signals");
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGUSR1, &action, NULL);
    SHOW(only(0));
    pthread_t thread;
    pthread_create(&thread, NULL, is_hit, (void *)3L);
    while (!started)
        sched_yield();
    for (int i = 1; i <= SIGNALS; i++) {
        pthread_kill(thread, SIGUSR1);
        while (caught < i)
            ;
    }
    pthread_join(thread, NULL);
    SHOW(caught);
    // Stop, go on and death of a process that computes elsewhere.
    _Atomic long *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        only(2);
        for (;;)
            (*shared)++;
    }
    while (*shared < 1000)
        sched_yield();
    int status = 0;
    kill(child, SIGSTOP);
    FACT(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    long at = *shared;
    spin_ms(5);
    FACT(*shared == at);
    kill(child, SIGCONT);
    FACT(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
    while (*shared == at)
        ;
    kill(child, SIGTERM);
    ended("elsewhere", child);
}

int main(void)
{
    told();
    affinity();
    of_others();
    threads();
    futexes();
    signals();
    return 0;
}
