// An ordinary user takes all it can get of each thing in turn, in several processes.
// What it gets differs between systems; that all of it ends, and that user 0 goes on
// working as before, does not.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include "probe.h"

enum { USER = 1000, MEMBERS = 6, ROUNDS = 40000, SECONDS = 3 };

static char bytes[1 << 16];

static int file(long n, const char *more)
{
    char name[300];
    snprintf(name, sizeof name, "greedy/%d-%ld%s", getpid(), n, more);
    return open(name, O_CREAT | O_RDWR, 0600);
}

static long open_files(long n) { (void)n; return open("/", O_RDONLY); }
static long names(long n)
{
    int fd = file(n, "-with-a-name-that-is-rather-long-so-that-it-costs-something");
    close(fd);
    return fd;
}
static long pages(long n)
{
    static int fd = -1;
    if (fd < 0)
        fd = file(0, "");
    return pwrite(fd, bytes, 100, (n % 2 ? n * 64 : n) * 4096);
}
static long pipes(long n)
{
    int ends[2];
    (void)n;
    if (pipe2(ends, O_NONBLOCK) != 0)
        return -1;
    fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
    return write(ends[1], bytes, sizeof bytes);
}
static long sockets(long n)
{
    int ends[2];
    (void)n;
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends) != 0)
        return -1;
    while (send(ends[0], bytes, 1000, 0) > 0)
        ;
    return 0;
}
static long events(long n) { return n % 2 ? eventfd(0, 0) : timerfd_create(CLOCK_MONOTONIC, 0); }
static long entries(long n)
{
    static int epoll = -1, event;
    struct epoll_event what = {.events = EPOLLIN};
    if (n % 500 == 1) {
        epoll = epoll_create1(0);
        event = eventfd(1, 0);
    }
    return epoll_ctl(epoll, EPOLL_CTL_ADD, dup(event), &what);
}
static long areas(long n)
{
    return mmap(NULL, 4096, n % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                   MAP_FAILED
               ? -1
               : 0;
}
static long touches(long n, int flags)
{
    static char *at;
    if (n % 1024 == 1)
        at = mmap(NULL, 1L << 28, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return -1;
    at[n % 1024 << 18] = 1;
    return 0;
}
static long memory(long n) { return touches(n, MAP_PRIVATE); }
static long shared(long n) { return touches(n, MAP_SHARED); }
static long timers(long n)
{
    timer_t timer;
    (void)n;
    return timer_create(CLOCK_MONOTONIC, NULL, &timer);
}
static long queued(long n)
{
    union sigval value = {.sival_int = (int)n};
    return sigqueue(getpid(), SIGRTMIN + 1 + (int)(n % 20), value);
}
static long locks(long n)
{
    static int fd = -1;
    struct flock lock = {.l_type = F_WRLCK, .l_start = 2 * n, .l_len = 1};
    if (n % 4000 == 1)
        fd = file(n, "");
    return fcntl(fd, F_SETLK, &lock);
}
static long children(long n)
{
    (void)n;
    pid_t child = fork();
    if (child == 0) {
        // Or nobody would see the end of the pipes.
        close_range(3, ~0U, 0);
        for (;;)
            pause();
    }
    return child;
}
static long unburied(long n)
{
    (void)n;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    return child;
}

static void take(long (*round)(long))
{
    struct timespec start, now;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (long n = 1, refused = 0; n < ROUNDS && refused < 3; n++) {
        refused += round(n) < 0;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - start.tv_sec > SECONDS)
            break;
    }
}

// All members keep what they have until the last one is done.
static void family(long (*round)(long))
{
    int done[2], go[2];
    char byte;
    pipe(done);
    pipe(go);
    int members = 0;
    while (members < MEMBERS) {
        pid_t child = fork();
        if (child == 0) {
            close(done[0]);
            close(go[1]);
            take(round);
            close(done[1]);
            read(go[0], &byte, 1);
            _exit(0);
        }
        if (child == -1)
            break;
        members++;
    }
    close(done[1]);
    // Killed or done: the end of the last one is the end of the pipe.
    while (read(done[0], &byte, 1) > 0)
        ;
    close(done[0]);
    kill(-1, SIGKILL);
    close(go[1]);
    close(go[0]);
}

#define TAKE(name, round)                                                                          \
    do {                                                                                           \
        pid_t head = fork();                                                                       \
        if (head == 0) {                                                                           \
            if (setgid(USER) != 0 || setuid(USER) != 0)                                            \
                _exit(1);                                                                          \
            family(round);                                                                         \
            _exit(0);                                                                              \
        }                                                                                          \
        waitpid(head, NULL, 0);                                                                    \
        system("rm -rf greedy; mkdir -m 777 greedy");                                              \
        int status = system("ls / >/dev/null && echo x >greedy/root && grep -q x greedy/root");    \
        printf("%s: user 0 %s\n", name, status == 0 ? "goes on" : "is disturbed");                 \
        fflush(stdout);                                                                            \
    } while (0)

int main(void)
{
    mkdir("greedy", 0777);
    chmod("greedy", 0777);
    TAKE("open files", open_files);
    TAKE("names", names);
    TAKE("pages of files", pages);
    TAKE("pipes", pipes);
    TAKE("sockets", sockets);
    TAKE("events", events);
    TAKE("entries of epolls", entries);
    TAKE("areas", areas);
    TAKE("memory", memory);
    TAKE("shared memory", shared);
    TAKE("timers", timers);
    TAKE("signals", queued);
    TAKE("locks", locks);
    TAKE("processes", children);
    TAKE("ended processes", unburied);
    return 0;
}
