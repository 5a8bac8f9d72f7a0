// Eight threads: mutexes, condition variables, barriers, signals to threads, keys,
// cancellation, and what a process with threads does at its end.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>
#include "probe.h"

enum { THREADS = 8, ROUNDS = 20000, ITEMS = 4000, QUEUE = 16 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, drained = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_key_t key;
static sem_t semaphore;
static long total, queue[QUEUE], head, tail, sum, destroyed;
static _Atomic int signalled, leaders;
static __thread long own;

static void run(void *(*body)(void *), const char *name)
{
    pthread_t threads[THREADS];
    void *result;
    long results = 0;
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, body, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &result);
        results += (long)result;
    }
    printf("%s: results %ld\n", name, results);
}

static void *counter(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        total++;
        own++;
        pthread_mutex_unlock(&mutex);
        if (i % 1000 == 0)
            sched_yield();
    }
    return (void *)(own == ROUNDS ? (long)number : -1000);
}

// Even threads produce, odd ones consume.
static void *queued(void *number)
{
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&mutex);
        if ((long)number % 2 == 0) {
            while (tail - head == QUEUE)
                pthread_cond_wait(&drained, &mutex);
            queue[tail++ % QUEUE] = i;
            pthread_cond_signal(&filled);
        } else {
            while (tail == head)
                pthread_cond_wait(&filled, &mutex);
            sum += queue[head++ % QUEUE];
            pthread_cond_broadcast(&drained);
        }
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void *meeting(void *number)
{
    for (int i = 0; i < 100; i++)
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            leaders++;
    return number;
}

static void on_signal(int number)
{
    (void)number;
    signalled++;
    sem_post(&semaphore);
}

static void *target(void *number)
{
    struct timespec long_time = {20, 0};
    pthread_barrier_wait(&barrier);
    long interrupted = nanosleep(&long_time, NULL) == -1 && errno == EINTR;
    return (void *)(interrupted ? (long)number : -1000);
}

static void signals(void)
{
    pthread_t threads[THREADS - 1];
    long results = 0;
    void *result;
    signal(SIGUSR1, on_signal);
    for (long i = 0; i < THREADS - 1; i++)
        pthread_create(&threads[i], NULL, target, (void *)i);
    pthread_barrier_wait(&barrier);
    usleep(50000);
    for (int i = 0; i < THREADS - 1; i++)
        pthread_kill(threads[i], SIGUSR1);
    for (int i = 0; i < THREADS - 1; i++)
        sem_wait(&semaphore);
    for (int i = 0; i < THREADS - 1; i++) {
        pthread_join(threads[i], &result);
        results += (long)result;
    }
    printf("signals %d, results %ld\n", signalled, results);
}

static void at_end(void *value)
{
    destroyed += (long)value;
}

static void *keyed(void *number)
{
    pthread_setspecific(key, (void *)((long)number + 1));
    return (void *)(long)(RAW(gettid) != getpid());
}

static void *endless(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}

static void *ends_process(void *nothing)
{
    usleep(20000);
    exit(9);
    return nothing;
}

static void endings(void)
{
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, endless, NULL);
    FACT(pthread_cancel(thread) == 0);
    FACT(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    CHILD("exit by a thread", pthread_create(&thread, NULL, ends_process, NULL); endless(NULL));
    CHILD("fork with threads", pthread_create(&thread, NULL, endless, NULL);
          CHILD("fork in it", FACT(getpid() == RAW(gettid))));
    CHILD("signal kills all", pthread_create(&thread, NULL, endless, NULL); raise(SIGKILL));
    CHILD("exec from a thread's process", pthread_create(&thread, NULL, endless, NULL);
          execl("/bin/echo", "echo", "executed", NULL));
    CHILD("main thread ends first", pthread_create(&thread, NULL, ends_process, NULL); pthread_exit(NULL));
}

static void timeouts(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 10000000;
    if (until.tv_nsec >= 1000000000)
        until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_mutex_lock(&mutex);
    FACT(pthread_cond_timedwait(&filled, &mutex, &until) == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    FACT(sem_timedwait(&semaphore, &until) == -1 && errno == ETIMEDOUT);
}

static void *standing_by(void *barrier)
{
    pthread_barrier_wait(barrier);
    return barrier;
}

// More threads at once than a small system has room for by default.
static void crowd(void)
{
    enum { CROWD = 150 };
    section("a crowd");
    pthread_t threads[CROWD];
    pthread_barrier_t all;
    int started = 0, ended = 0;
    pthread_barrier_init(&all, NULL, CROWD + 1);
    while (started < CROWD && pthread_create(&threads[started], NULL, standing_by, &all) == 0)
        started++;
    printf("started %d\n", started);
    if (started < CROWD)
        exit(1);
    pthread_barrier_wait(&all);
    for (void *got; ended < CROWD && pthread_join(threads[ended], &got) == 0 && got == &all;)
        ended++;
    printf("ended %d\n", ended);
}

int main(void)
{
    pthread_barrier_init(&barrier, NULL, THREADS);
    sem_init(&semaphore, 0, 0);
    run(counter, "mutex");
    printf("total %ld, own %ld\n", total, own);
    run(queued, "condition variables");
    printf("sum %ld, left %ld\n", sum, tail - head);
    run(meeting, "barrier");
    printf("leaders %d\n", leaders);
    signals();
    pthread_key_create(&key, at_end);
    run(keyed, "keys");
    printf("destroyed %ld\n", destroyed);
    timeouts();
    crowd();
    endings();
    return 0;
}
