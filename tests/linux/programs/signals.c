// Signals: handlers, masks, information, alternate stacks, restart, waiting.
#include <setjmp.h>
#include <sys/time.h>
#include <time.h>
#include "probe.h"

static volatile sig_atomic_t seen[65], order[32], count;
static volatile int code, value, mine, on_alternate;
static char alternate[65536];

static void plain(int number)
{
    seen[number]++;
    if (count < 32)
        order[count++] = number;
}

static void informed(int number, siginfo_t *info, void *context)
{
    char here;
    plain(number);
    code = info->si_code;
    value = info->si_value.sival_int;
    mine = info->si_pid == getpid();
    on_alternate = &here >= alternate && &here < alternate + sizeof alternate && context != NULL;
}

static void install(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static void basics(void)
{
    section("handlers");
    struct sigaction action = {.sa_handler = plain}, old;
    SHOW(sigaction(SIGUSR1, &action, NULL));
    SHOW(raise(SIGUSR1));
    SHOW(kill(getpid(), SIGUSR1));
    printf("seen %d\n", seen[SIGUSR1]);
    SHOW(sigaction(SIGUSR1, NULL, &old));
    FACT(old.sa_handler == plain);
    SHOW(RAW(rt_sigaction, SIGKILL, &action, NULL, 8));
    SHOW(RAW(rt_sigaction, 0, NULL, NULL, 8));
    SHOW(RAW(rt_sigaction, 65, NULL, NULL, 8));
    SHOW(RAW(rt_sigaction, SIGUSR1, BAD, NULL, 8));
    SHOW(RAW(rt_sigaction, SIGUSR1, NULL, BAD, 8));
    SHOW(RAW(rt_sigaction, SIGUSR1, NULL, NULL, 4));
    SHOW(kill(getpid(), 0));
    SHOW(kill(getpid(), 65));
    SHOW(kill(99999, 0));
    SHOW(kill(-99999, SIGTERM));
    SHOW(RAW(tgkill, getpid(), getpid(), SIGUSR1));
    SHOW(RAW(tgkill, getpid(), 99999, SIGUSR1));
    SHOW(RAW(tgkill, -1, 1, SIGUSR1));
    SHOW(RAW(tkill, getpid(), SIGUSR1));
    printf("seen %d\n", seen[SIGUSR1]);
    action.sa_flags = SA_RESETHAND;
    sigaction(SIGUSR2, &action, NULL);
    raise(SIGUSR2);
    sigaction(SIGUSR2, NULL, &old);
    FACT(old.sa_handler == SIG_DFL);
    CHILD("default", raise(SIGUSR2));
    CHILD("ignored", signal(SIGTERM, SIG_IGN); raise(SIGTERM));
    CHILD("SIGCHLD by default", raise(SIGCHLD));
    CHILD("abort", signal(SIGABRT, SIG_IGN); abort());
}

static void masks(void)
{
    section("masks");
    sigset_t set, old, pending;
    sigfillset(&set);
    SHOW(sigprocmask(SIG_BLOCK, &set, &old));
    count = 0;
    signal(SIGHUP, plain), signal(SIGTERM, plain), signal(SIGUSR1, plain);
    raise(SIGUSR1), raise(SIGTERM), raise(SIGHUP), raise(SIGTERM);
    install(SIGRTMIN, informed, 0);
    union sigval number = {.sival_int = 41};
    SHOW(sigqueue(getpid(), SIGRTMIN, number));
    number.sival_int = 42;
    SHOW(sigqueue(getpid(), SIGRTMIN, number));
    SHOW(sigpending(&pending));
    printf("pending %d %d %d %d\n", sigismember(&pending, SIGHUP), sigismember(&pending, SIGTERM),
           sigismember(&pending, SIGINT), sigismember(&pending, SIGRTMIN));
    SHOW(sigprocmask(SIG_SETMASK, &old, NULL));
    printf("HUP %d TERM %d USR1 %d RTMIN %d\n", seen[SIGHUP], seen[SIGTERM], seen[SIGUSR1], seen[SIGRTMIN]);
    printf("value %d code %d mine %d\n", value, code, mine);
    SHOW(RAW(rt_sigprocmask, 77, &set, NULL, 8));
    SHOW(RAW(rt_sigprocmask, SIG_BLOCK, BAD, NULL, 8));
    SHOW(RAW(rt_sigprocmask, SIG_BLOCK, &set, NULL, 7));
    sigemptyset(&set);
    sigaddset(&set, SIGKILL);
    sigaddset(&set, SIGSTOP);
    SHOW(sigprocmask(SIG_BLOCK, &set, NULL));
    sigprocmask(SIG_BLOCK, NULL, &old);
    printf("KILL blocked %d\n", sigismember(&old, SIGKILL));
}

static void waiting(void)
{
    section("waiting");
    sigset_t set, none;
    siginfo_t info;
    struct timespec soon = {0, 10000000}, wrong = {0, -1};
    sigemptyset(&none);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    SHOW(sigtimedwait(&set, &info, &soon));
    SHOW(sigtimedwait(&set, &info, &wrong));
    raise(SIGUSR1);
    SHOW(sigtimedwait(&set, &info, &soon));
    printf("code %d\n", info.si_code);
    int before = seen[SIGUSR1];
    raise(SIGUSR1);
    SHOW(sigsuspend(&none));
    printf("handled %d\n", seen[SIGUSR1] - before);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void alternates(void)
{
    section("alternate stack");
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate}, old;
    SHOW(sigaltstack(&stack, NULL));
    SHOW(sigaltstack(NULL, &old));
    FACT(old.ss_sp == alternate);
    install(SIGUSR2, informed, SA_ONSTACK);
    raise(SIGUSR2);
    printf("on it %d\n", on_alternate);
    install(SIGUSR2, informed, 0);
    raise(SIGUSR2);
    printf("on it %d\n", on_alternate);
    stack.ss_size = 10;
    SHOW(sigaltstack(&stack, NULL));
    stack.ss_flags = 77;
    SHOW(sigaltstack(&stack, NULL));
    SHOW(sigaltstack(BAD, NULL));
    stack.ss_flags = SS_DISABLE;
    SHOW(sigaltstack(&stack, NULL));
    sigaltstack(NULL, &old);
    printf("flags %d\n", old.ss_flags);
}

static void alarm_in(long microseconds)
{
    struct itimerval set = {{0, 0}, {0, microseconds}};
    setitimer(ITIMER_REAL, &set, NULL);
}

static void restarting(void)
{
    section("restart");
    int ends[2];
    char byte;
    pipe(ends);
    install(SIGALRM, informed, 0);
    alarm_in(20000);
    SHOW(read(ends[0], &byte, 1));
    alarm_in(20000);
    struct timespec second = {5, 0}, left = {0, 0};
    SHOW(nanosleep(&second, &left));
    printf("left %ld\n", (long)left.tv_sec);
    alarm_in(20000);
    SHOW(pause());
    install(SIGALRM, informed, SA_RESTART);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        usleep(100000);
        write(ends[1], "x", 1);
        _exit(0);
    }
    int before = seen[SIGALRM];
    alarm_in(20000);
    SHOW(read(ends[0], &byte, 1));
    printf("alarms %d\n", seen[SIGALRM] - before);
    ended("writer", child);
    alarm_in(20000);
    SHOW(nanosleep(&second, &left));
    alarm_in(20000);
    struct timeval limit = {5, 0};
    errno = 0;
    SHOW(RAW(select, 0, NULL, NULL, NULL, &limit));
    SHOW(alarm(100));
    SHOW(alarm(0));
    SHOW(alarm(0));
}

static sigjmp_buf away;

static void jumping(int number)
{
    siglongjmp(away, number);
}

static void jumps(void)
{
    section("jump out of a handler");
    sigset_t now;
    signal(SIGUSR1, jumping);
    int from = sigsetjmp(away, 1);
    if (from == 0)
        raise(SIGUSR1);
    sigprocmask(SIG_BLOCK, NULL, &now);
    printf("from %d, blocked %d\n", from, sigismember(&now, SIGUSR1));
}

int main(void)
{
    basics();
    masks();
    waiting();
    alternates();
    restarting();
    jumps();
    return 0;
}
