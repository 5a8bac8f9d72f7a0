// Two processes whose timers expire every microsecond; the others have their turn.
#include <time.h>
#include "probe.h"

enum { STORMS = 2, ROUNDS = 20 };

static volatile sig_atomic_t told;

static void tell(int signal)
{
    (void)signal;
    told = 1;
}

static void storm(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec time = {{0, 1000}, {0, 1000}};
    timer_t timer;
    signal(SIGUSR1, tell);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &time, NULL) != 0)
        _exit(1);
    for (;;)
        if (told && timer_getoverrun(timer) < 0)
            _exit(1);
}

int main(void)
{
    pid_t storms[STORMS];
    for (int i = 0; i < STORMS; i++)
        if ((storms[i] = fork()) == 0)
            storm();
    usleep(10000);
    int rounds = 0;
    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(7);
        int status;
        rounds += waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7;
    }
    printf("children that had their turn: %d\n", rounds);
    for (int i = 0; i < STORMS; i++) {
        FACT(waitpid(storms[i], NULL, WNOHANG) == 0);
        kill(storms[i], SIGKILL);
        FACT(waitpid(storms[i], NULL, 0) == storms[i]);
    }
    return 0;
}
