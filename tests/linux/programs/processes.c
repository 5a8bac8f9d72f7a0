// Processes: fork, vfork, exec, wait, groups, sessions, what is inherited.
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include "probe.h"

static volatile int exited;

static void on_child(int number)
{
    exited += number == SIGCHLD;
}

static void waiting(void)
{
    section("wait");
    int status = -1;
    siginfo_t info;
    SHOW(wait(&status));
    SHOW(waitpid(99999, &status, 0));
    SHOW(waitpid(-1, &status, 0x7000));
    SHOW(waitid(P_ALL, 0, &info, 0));
    signal(SIGCHLD, on_child);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(300);
    SHOW(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
    printf("code %d status %d mine %d\n", info.si_code, info.si_status, info.si_pid == child);
    SHOW(waitpid(child, BAD, 0));
    child = fork();
    if (child == 0)
        pause();
    SHOW(waitpid(-1, &status, WNOHANG));
    SHOW(kill(child, SIGSTOP));
    SHOW(waitpid(child, &status, WUNTRACED) == child);
    printf("stopped %d by %s\n", WIFSTOPPED(status), sigabbrev_np(WSTOPSIG(status)));
    SHOW(kill(child, SIGCONT));
    SHOW(waitpid(child, &status, WCONTINUED) == child);
    printf("continued %d\n", WIFCONTINUED(status));
    SHOW(kill(child, SIGTERM));
    SHOW(waitid(P_PID, (id_t)child, &info, WEXITED));
    printf("code %d status %s\n", info.si_code, sigabbrev_np(info.si_status));
    FACT(exited >= 3);
    signal(SIGCHLD, SIG_IGN);
    child = fork();
    if (child == 0)
        _exit(0);
    SHOW(waitpid(child, &status, 0));
    signal(SIGCHLD, SIG_DFL);
    struct rusage usage;
    child = fork();
    if (child == 0)
        _exit(1);
    SHOW(wait4(child, &status, 0, &usage) == child);
    FACT(usage.ru_utime.tv_sec == 0);
}

// An orphan is adopted; a zombie's number is not there twice.
static void orphans(void)
{
    section("orphans");
    int ends[2];
    char byte;
    pipe(ends);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) {
            while (getppid() != 1)
                usleep(1000);
            write(ends[1], "o", 1);
        }
        _exit(0);
    }
    close(ends[1]);
    ended("parent", child);
    SHOW(read(ends[0], &byte, 1));
    close(ends[0]);
    SHOW(prctl(PR_SET_PDEATHSIG, 77));
    SHOW(prctl(PR_SET_NAME, "new-name-that-is-long"));
    char name[16];
    SHOW(prctl(PR_GET_NAME, name));
    puts(name);
    SHOW(prctl(7777));
}

static void copies(void)
{
    section("fork and vfork");
    static volatile int private = 1;
    volatile int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd = open("offset", O_RDWR | O_CREAT, 0600);
    write(fd, "0123456789", 10);
    lseek(fd, 0, SEEK_SET);
    CHILD("fork", private = 2; *shared = 2; lseek(fd, 4, SEEK_SET); FACT(getppid() != getpid()));
    printf("private %d shared %d offset %ld\n", private, *shared, (long)lseek(fd, 0, SEEK_CUR));
    pid_t child = vfork();
    if (child == 0) {
        private = 3;
        _exit(4);
    }
    printf("after vfork %d\n", private);
    ended("vfork", child);
    SHOW(RAW(clone, CLONE_SIGHAND, 0, 0, 0, 0));
    SHOW(RAW(clone, CLONE_THREAD, 0, 0, 0, 0));
    SHOW(RAW(clone3, BAD, 88));
    SHOW(RAW(clone3, BAD, 8));
}

static void execution(const char *self)
{
    section("exec");
    char *none[] = {NULL}, *words[] = {"name", "exec-child", NULL}, *environment[] = {"ONE=1", NULL};
    SHOW(execve("missing", words, environment));
    SHOW(execve("/tmp", words, environment));
    SHOW(execve("/etc/passwd", words, environment));
    SHOW(execve(BAD, words, environment));
    SHOW(execve(self, BAD, environment));
    int fd = open("garbage", O_WRONLY | O_CREAT, 0755);
    write(fd, "\177ELF garbage", 12);
    close(fd);
    SHOW(execve("garbage", none + 0, environment));
    fd = open("script", O_WRONLY | O_CREAT, 0755);
    write(fd, "#!/bin/sh -e\necho script $0 $1\n", 31);
    close(fd);
    CHILD("script", execl("./script", "zero", "one", NULL));
    fd = open("nothing", O_WRONLY | O_CREAT, 0755);
    write(fd, "#!/no/such/interpreter\n", 23);
    close(fd);
    SHOW(execve("nothing", words, environment));
    fd = open("empty", O_WRONLY | O_CREAT, 0755);
    SHOW(execve("empty", words, environment));
    int kept = dup2(fd, 40), closed = dup3(fd, 41, O_CLOEXEC);
    (void)kept, (void)closed;
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, on_child);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    CHILD("self", execve(self, words, environment));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    pid_t child;
    // The child prints at once: the result comes when it has ended.
    int spawned = posix_spawn(&child, self, NULL, NULL, words, environment);
    ended("spawned", child);
    printf("posix_spawn: %d\n", spawned);
    SHOW(posix_spawn(&child, "missing", NULL, NULL, words, environment));
}

// What a program finds that was executed.
static int executed(void)
{
    struct sigaction action;
    sigset_t set;
    printf("descriptors %d %d\n", fcntl(40, F_GETFD), fcntl(41, F_GETFD));
    sigaction(SIGUSR1, NULL, &action);
    printf("USR1 ignored %d, ", action.sa_handler == SIG_IGN);
    sigaction(SIGUSR2, NULL, &action);
    printf("USR2 default %d, ", action.sa_handler == SIG_DFL);
    sigprocmask(SIG_BLOCK, NULL, &set);
    printf("HUP blocked %d, %s\n", sigismember(&set, SIGHUP), getenv("ONE"));
    return 5;
}

static void groups(void)
{
    section("groups and sessions");
    FACT(getpgrp() == getpgid(0));
    SHOW(getpgid(99999));
    SHOW(getsid(99999));
    SHOW(setpgid(0, -1));
    SHOW(setpgid(99999, 0));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        FACT(getpgrp() == getpgid(getppid()));
        SHOW(setpgid(0, 0));
        FACT(getpgrp() == getpid());
        SHOW(setsid());
        SHOW(setpgid(0, 99999));
        pid_t inner = fork();
        if (inner == 0) {
            FACT(setsid() == getpid());
            FACT(getsid(0) == getpid() && getpgrp() == getpid());
            SHOW(setpgid(0, 0));
            SHOW(open("/dev/tty", O_RDWR));
            _exit(0);
        }
        ended("inner", inner);
        SHOW(kill(0, 0));
        kill(0, SIGTERM);
        pause();
    }
    ended("group", child);
    SHOW(getpriority(PRIO_PROCESS, 0));
    SHOW(nice(5));
    SHOW(getpriority(PRIO_PROCESS, 0));
    SHOW(sched_yield());
    SHOW(setresuid(1, 2, 3));
    uid_t real, effective, saved;
    SHOW(getresuid(&real, &effective, &saved));
    printf("%u %u %u\n", real, effective, saved);
    SHOW(setuid(7));
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "exec-child") == 0)
        return executed();
    waiting();
    orphans();
    copies();
    execution(argv[0]);
    CHILD("groups", groups());
    return 0;
}
