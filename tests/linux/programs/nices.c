// How much of the processor two that compute get beside each other, by nice values and policies, in coarse terms.
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include "probe.h"

enum { MOST = 40, PAUSE_S = 3 };

static volatile unsigned long *counts;

static void computes(volatile unsigned long *count)
{
    for (;;)
        ++*count;
}

static pid_t begin(int index, int nice_value, int policy)
{
    pid_t child = fork();
    if (child == 0) {
        struct sched_param none = {0};
        if (sched_setscheduler(0, policy, &none) != 0 || setpriority(PRIO_PROCESS, 0, nice_value) != 0)
            _exit(1);
        computes(&counts[index]);
    }
    return child;
}

// What the first gets for each that the others get, together.
static double ratio(int others, int nice_value, int policy)
{
    pid_t children[MOST];
    for (int i = 0; i <= others; i++)
        children[i] = i == 0 ? begin(0, 0, SCHED_OTHER) : begin(i, nice_value, policy);
    sleep(1);
    unsigned long first = counts[0], rest = 0;
    for (int i = 1; i <= others; i++)
        rest += counts[i];
    sleep(PAUSE_S);
    unsigned long all = 0;
    for (int i = 1; i <= others; i++)
        all += counts[i];
    double got = (double)(counts[0] - first) / (double)(all - rest + 1);
    for (int i = 0; i <= others; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    return got;
}

static void beside(const char *what, double got, double least, double most)
{
    printf("beside %s: %s\n", what, got < least ? "too little" : got > most ? "too much" : "as much as it should");
}

static void *nicer(void *tid)
{
    setpriority(PRIO_PROCESS, 0, 7);
    *(int *)tid = gettid();
    printf("a thread: %d\n", getpriority(PRIO_PROCESS, 0));
    return NULL;
}

static void told(void)
{
    int tid;
    pthread_t thread;
    pthread_create(&thread, NULL, nicer, &tid);
    pthread_join(thread, NULL);
    printf("its process: %d\n", getpriority(PRIO_PROCESS, 0));
    struct sched_param some = {.sched_priority = 7};
    SHOW(sched_setscheduler(0, SCHED_RR, &some));
    long priority = 0, nice_value = 0;
    FILE *stat = fopen("/proc/self/stat", "r");
    SHOW(fscanf(stat, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %ld %ld", &priority, &nice_value));
    printf("priority %ld, nice %ld\n", priority, nice_value);
    fclose(stat);
}

int main(void)
{
    counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    beside("one as nice", ratio(1, 0, SCHED_OTHER), 0.5, 2);
    beside("one of a batch", ratio(1, 0, SCHED_BATCH), 0.5, 2);
    beside("one at nice 5", ratio(1, 5, SCHED_OTHER), 1.5, 7);
    beside("one at nice 10", ratio(1, 10, SCHED_OTHER), 3, 30);
    beside("one at nice 19", ratio(1, 19, SCHED_OTHER), 10, 1000);
    beside("one that is idle", ratio(1, 0, SCHED_IDLE), 30, 1e9);
    beside("twenty at nice 19", ratio(20, 19, SCHED_OTHER), 1.5, 1000);
    told();
    return 0;
}
