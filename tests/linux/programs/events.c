// Waiting for events: eventfd, timerfd, signalfd, poll, select, epoll.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include "probe.h"

static long elapsed_ms(struct timespec since)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - since.tv_sec) * 1000 + (now.tv_nsec - since.tv_nsec) / 1000000;
}

static void counters(void)
{
    section("eventfd");
    uint64_t value = 0;
    int fd = eventfd(3, EFD_NONBLOCK);
    SHOW(read(fd, &value, 8));
    printf("value %lu\n", value);
    SHOW(read(fd, &value, 8));
    SHOW(read(fd, &value, 7));
    value = 5;
    SHOW(write(fd, &value, 8));
    SHOW(write(fd, &value, 8));
    SHOW(read(fd, &value, 8));
    printf("value %lu\n", value);
    value = UINT64_MAX;
    SHOW(write(fd, &value, 8));
    value = UINT64_MAX - 1;
    SHOW(write(fd, &value, 8));
    value = 1;
    SHOW(write(fd, &value, 8));
    SHOW(write(fd, &value, 4));
    SHOW(write(fd, BAD, 8));
    close(fd);
    fd = eventfd(2, EFD_SEMAPHORE);
    read(fd, &value, 8);
    printf("semaphore %lu\n", value);
    read(fd, &value, 8);
    printf("semaphore %lu\n", value);
    SHOW(eventfd(0, 0x1234));
    struct pollfd ready = {fd, POLLIN | POLLOUT, 0};
    SHOW(poll(&ready, 1, 0));
    printf("%#x\n", ready.revents);
    close(fd);
}

static void timers(void)
{
    section("timerfd");
    uint64_t count = 0;
    struct itimerspec set = {{0, 0}, {0, 20000000}}, old;
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    SHOW(read(fd, &count, 8));
    struct pollfd ready = {fd, POLLIN, 0};
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    SHOW(timerfd_settime(fd, 0, &set, NULL));
    SHOW(poll(&ready, 1, 5000));
    FACT(elapsed_ms(start) >= 19);
    SHOW(read(fd, &count, 8));
    printf("count %lu\n", count);
    SHOW(timerfd_gettime(fd, &old));
    printf("left %ld.%09ld\n", old.it_value.tv_sec, old.it_value.tv_nsec);
    set = (struct itimerspec){{0, 5000000}, {0, 5000000}};
    SHOW(timerfd_settime(fd, 0, &set, &old));
    usleep(40000);
    SHOW(read(fd, &count, 8));
    FACT(count >= 7);
    set = (struct itimerspec){{0, 0}, {0, 0}};
    SHOW(timerfd_settime(fd, 0, &set, NULL));
    SHOW(read(fd, &count, 8));
    set.it_value.tv_nsec = 1000000000;
    SHOW(timerfd_settime(fd, 0, &set, NULL));
    SHOW(timerfd_settime(fd, 0, BAD, NULL));
    SHOW(timerfd_settime(0, 0, &set, NULL));
    SHOW(timerfd_create(77, 0));
    SHOW(timerfd_create(CLOCK_REALTIME, 0x77));
    close(fd);
}

static void signals(void)
{
    section("signalfd");
    sigset_t set;
    struct signalfd_siginfo info;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_NONBLOCK);
    SHOW(read(fd, &info, sizeof info));
    kill(getpid(), SIGUSR2);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR1);
    SHOW(read(fd, &info, 10));
    SHOW(read(fd, &info, sizeof info));
    printf("signal %u from me %d code %d\n", info.ssi_signo, info.ssi_pid == (uint32_t)getpid(), info.ssi_code);
    SHOW(read(fd, &info, sizeof info));
    printf("signal %u\n", info.ssi_signo);
    SHOW(read(fd, &info, sizeof info));
    SHOW(signalfd(0, &set, 0));
    SHOW(signalfd(-1, &set, 0x77));
    close(fd);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void polling(void)
{
    section("poll and select");
    int ends[2];
    pipe(ends);
    struct pollfd list[3] = {{ends[0], POLLIN, 0}, {-1, POLLIN, 7}, {99, POLLIN, 0}};
    SHOW(poll(list, 3, 0));
    printf("%#x %#x %#x\n", list[0].revents, list[1].revents, list[2].revents);
    SHOW(poll(list, 2, 10));
    SHOW(poll(BAD, 1, 0));
    SHOW(poll(NULL, 0, 1));
    volatile nfds_t far_too_many = 100000000;
    SHOW(poll(list, far_too_many, 0));
    struct timespec wrong = {0, 1000000000};
    SHOW(ppoll(list, 1, &wrong, NULL));
    fd_set in, out;
    struct timeval now = {0, 0};
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(ends[0], &in);
    FD_SET(ends[1], &out);
    SHOW(select(ends[1] + 1, &in, &out, NULL, &now));
    printf("%d %d\n", FD_ISSET(ends[0], &in), FD_ISSET(ends[1], &out));
    write(ends[1], "x", 1);
    FD_SET(ends[0], &in);
    FD_SET(ends[1], &out);
    SHOW(select(ends[1] + 1, &in, &out, NULL, NULL));
    printf("%d %d\n", FD_ISSET(ends[0], &in), FD_ISSET(ends[1], &out));
    SHOW(select(-1, &in, NULL, NULL, &now));
    FD_ZERO(&in);
    FD_SET(90, &in);
    SHOW(select(91, &in, NULL, NULL, &now));
    now.tv_usec = -1;
    SHOW(select(0, NULL, NULL, NULL, &now));
    now.tv_usec = 10000;
    SHOW(select(0, NULL, NULL, NULL, &now));
    printf("left %ld\n", (long)now.tv_usec);
    int file = open("/etc/passwd", O_RDONLY);
    struct pollfd regular = {file, POLLIN | POLLOUT, 0};
    SHOW(poll(&regular, 1, 0));
    printf("%#x\n", regular.revents);
    close(file), close(ends[0]), close(ends[1]);
}

static void epolls(void)
{
    section("epoll");
    int ends[2], set = epoll_create1(EPOLL_CLOEXEC);
    pipe(ends);
    struct epoll_event event = {EPOLLIN, {.u64 = 11}}, got[4];
    SHOW(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event));
    SHOW(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event));
    event = (struct epoll_event){EPOLLOUT | EPOLLET, {.u64 = 22}};
    SHOW(epoll_ctl(set, EPOLL_CTL_ADD, ends[1], &event));
    SHOW(epoll_ctl(set, EPOLL_CTL_ADD, 99, &event));
    SHOW(epoll_ctl(set, EPOLL_CTL_ADD, set, &event));
    SHOW(epoll_ctl(set, EPOLL_CTL_MOD, 0, &event));
    SHOW(epoll_ctl(set, EPOLL_CTL_DEL, 0, NULL));
    SHOW(epoll_ctl(set, 77, ends[0], &event));
    SHOW(epoll_ctl(set, EPOLL_CTL_ADD, 0, BAD));
    SHOW(epoll_ctl(0, EPOLL_CTL_ADD, ends[0], &event));
    SHOW(epoll_wait(set, got, 4, 0));
    printf("%lu %#x\n", got[0].data.u64, got[0].events);
    SHOW(epoll_wait(set, got, 4, 0));
    write(ends[1], "x", 1);
    SHOW(epoll_wait(set, got, 4, -1));
    printf("%lu %#x\n", got[0].data.u64, got[0].events);
    SHOW(epoll_wait(set, got, 4, 0));
    event = (struct epoll_event){EPOLLIN | EPOLLONESHOT, {.u64 = 33}};
    SHOW(epoll_ctl(set, EPOLL_CTL_MOD, ends[0], &event));
    SHOW(epoll_wait(set, got, 4, 0));
    printf("%lu %#x\n", got[0].data.u64, got[0].events);
    SHOW(epoll_wait(set, got, 4, 0));
    SHOW(epoll_wait(set, got, 0, 0));
    SHOW(epoll_wait(set, BAD, 4, 0));
    SHOW(epoll_wait(ends[0], got, 4, 0));
    SHOW(epoll_wait(99, got, 4, 0));
    SHOW(epoll_ctl(set, EPOLL_CTL_DEL, ends[1], NULL));
    SHOW(epoll_ctl(set, EPOLL_CTL_MOD, ends[0], &event));
    close(ends[0]);
    SHOW(epoll_wait(set, got, 4, 0));
    SHOW(epoll_create(0));
    SHOW(epoll_create1(77));
    int outer = epoll_create(1);
    event = (struct epoll_event){EPOLLIN, {.u64 = 44}};
    SHOW(epoll_ctl(outer, EPOLL_CTL_ADD, set, &event));
    SHOW(epoll_wait(outer, got, 4, 0));
    int file = open("/etc/passwd", O_RDONLY);
    SHOW(epoll_ctl(set, EPOLL_CTL_ADD, file, &event));
    int pair[2], inner;
    pipe(pair);
    inner = pair[0];
    for (int depth = 0; depth < 6; depth++) {
        int next = epoll_create1(0);
        SHOW(epoll_ctl(next, EPOLL_CTL_ADD, inner, &event));
        inner = next;
    }
    int one = epoll_create1(0), two = epoll_create1(0);
    event.events = EPOLLIN | EPOLLEXCLUSIVE;
    SHOW(epoll_ctl(one, EPOLL_CTL_ADD, pair[0], &event));
    SHOW(epoll_ctl(two, EPOLL_CTL_ADD, pair[0], &event));
    SHOW(epoll_ctl(two, EPOLL_CTL_MOD, pair[0], &event));
    write(pair[1], "x", 1);
    SHOW(epoll_wait(one, got, 4, 0));
    SHOW(epoll_wait(two, got, 4, 0));
}

int main(void)
{
    counters();
    timers();
    signals();
    polling();
    epolls();
    return 0;
}
