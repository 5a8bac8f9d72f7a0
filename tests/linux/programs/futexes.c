// Futexes by themselves: wait, wake, requeue, time limits, robust lists.
#include <linux/futex.h>
#include <pthread.h>
#include <time.h>
#include "probe.h"

static _Atomic uint32_t word, other, arrived;

static long futex(void *address, int what, uint32_t value, void *timeout, void *second, uint32_t third)
{
    return RAW(futex, address, what, value, timeout, second, third);
}

static void *sleeper(void *result)
{
    arrived++;
    *(long *)result = futex(&word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    return NULL;
}

static void until_asleep(uint32_t count)
{
    while (arrived != count)
        usleep(1000);
    usleep(50000);
}

static void mistakes(void)
{
    section("mistakes");
    struct timespec wrong = {0, 1000000000}, soon = {0, 1000000}, past = {1, 0};
    word = 5;
    SHOW(futex(&word, FUTEX_WAIT, 4, NULL, NULL, 0));
    SHOW(futex(&word, FUTEX_WAIT, 5, &wrong, NULL, 0));
    SHOW(futex(&word, FUTEX_WAIT, 5, &soon, NULL, 0));
    SHOW(futex(&word, FUTEX_WAIT_BITSET, 5, &past, NULL, FUTEX_BITSET_MATCH_ANY));
    SHOW(futex(&word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 5, &past, NULL, FUTEX_BITSET_MATCH_ANY));
    SHOW(futex(&word, FUTEX_WAIT_BITSET, 5, &past, NULL, 0));
    SHOW(futex((char *)&word + 1, FUTEX_WAIT, 5, NULL, NULL, 0));
    SHOW(futex(BAD, FUTEX_WAIT, 5, NULL, NULL, 0));
    SHOW(futex(FAR, FUTEX_WAKE, 1, NULL, NULL, 0));
    SHOW(futex(&word, FUTEX_WAIT, 5, BAD, NULL, 0));
    SHOW(futex(&word, 77, 5, NULL, NULL, 0));
    SHOW(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0));
    SHOW(futex(&word, FUTEX_CMP_REQUEUE, 1, (void *)1, &other, 4));
}

static void waking(void)
{
    section("wake and requeue");
    pthread_t threads[4];
    long results[4];
    word = 0;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, sleeper, &results[i]);
    until_asleep(4);
    SHOW(futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
    SHOW(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)1, &other, 7));
    SHOW(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)1, &other, 0));
    SHOW(futex(&word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0));
    SHOW(futex(&other, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("results %ld %ld %ld %ld\n", results[0], results[1], results[2], results[3]);
}

static void shared(void)
{
    section("between processes");
    _Atomic uint32_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        page[1] = 1;
        long result = futex((void *)page, FUTEX_WAIT, 0, NULL, NULL, 0);
        _exit(result == 0 && page[2] == 9 ? 0 : 1);
    }
    while (page[1] == 0)
        usleep(1000);
    usleep(50000);
    page[2] = 9;
    SHOW(futex((void *)page, FUTEX_WAKE, 1, NULL, NULL, 0));
    ended("sleeper", child);
}

// A thread that dies holding a robust mutex.
static pthread_mutex_t mutex;

static void *holder(void *nothing)
{
    pthread_mutex_lock(&mutex);
    return nothing;
}

static void robust(void)
{
    section("robust");
    pthread_mutexattr_t attributes;
    pthread_t thread;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    pthread_create(&thread, NULL, holder, NULL);
    pthread_join(thread, NULL);
    FACT(pthread_mutex_lock(&mutex) == EOWNERDEAD);
    FACT(pthread_mutex_consistent(&mutex) == 0);
    FACT(pthread_mutex_unlock(&mutex) == 0);
    FACT(pthread_mutex_lock(&mutex) == 0);
    void *head = NULL;
    size_t length = 0;
    SHOW(RAW(get_robust_list, 0, &head, &length));
    printf("head %d, length %zu\n", head != NULL, length);
    SHOW(RAW(set_robust_list, head, 7));
}

int main(void)
{
    mistakes();
    waking();
    shared();
    robust();
    return 0;
}
