// Urgent data of streams: where a reader stops, what it leaves out, who is told.
#include "probe.h"
#include "loopback.h"

#include <poll.h>
#include <signal.h>
#include <sys/un.h>

static volatile int told;

static void on_urgent(int number)
{
    (void)number;
    told++;
}

static void tcp(int pair[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (struct sockaddr *)&at, sizeof at);
    listen(listener, 1);
    getsockname(listener, (struct sockaddr *)&at, &len);
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    connect(pair[0], (struct sockaddr *)&at, sizeof at);
    pair[1] = accept(listener, NULL, NULL);
    close(listener);
}

static void give(int fd, const char *text, int flags)
{
    SHOW(send(fd, text, strlen(text), flags | MSG_NOSIGNAL));
    // Linux may deliver it a moment later.
    usleep(2000);
}

static void take(int fd, int flags)
{
    char text[32] = "";
    errno = 0;
    long len = recv(fd, text, sizeof text, flags | MSG_DONTWAIT);
    printf("%s: %.*s\n", len < 0 ? strerrorname_np(errno) : "ok", len < 0 ? 0 : (int)len, text);
}

static void state(int fd)
{
    int mark = -1, bytes = -1;
    struct pollfd entry = {fd, POLLIN | POLLPRI | POLLRDHUP, 0};
    poll(&entry, 1, 0);
    ioctl(fd, SIOCATMARK, &mark);
    ioctl(fd, FIONREAD, &bytes);
    printf("poll %#x, at the mark %d, readable %d, told %d\n", entry.revents, mark, bytes, told);
}

static void flags_of_message(int fd)
{
    char text[4];
    struct iovec range = {text, sizeof text};
    struct msghdr header = {.msg_iov = &range, .msg_iovlen = 1};
    SHOW(recvmsg(fd, &header, MSG_OOB | MSG_DONTWAIT));
    printf("flags %#x\n", header.msg_flags & ~MSG_DONTWAIT);
}

static void stream(const char *name, int pair[2])
{
    section(name);
    SHOW(fcntl(pair[1], F_SETOWN, getpid()));
    told = 0;
    take(pair[1], MSG_OOB);
    give(pair[0], "ab!", MSG_OOB);
    give(pair[0], "cd", 0);
    int bytes = 0;
    ioctl(pair[1], SIOCATMARK, &bytes);
    printf("told %d, at the mark %d\n", told, bytes);
    take(pair[1], 0);
    take(pair[1], MSG_OOB | MSG_PEEK);
    // The next reader of a UNIX stream, on Linux 6.1, finds nothing once, where the byte was.
    if (strcmp(name, "UNIX")) {
        flags_of_message(pair[1]);
        take(pair[1], MSG_OOB);
    }
    take(pair[1], 0);
    take(pair[1], 0);
    give(pair[0], "?", MSG_OOB);
    give(pair[0], "ef", 0);
    take(pair[1], 0);
    take(pair[1], MSG_OOB);
    give(pair[0], "!", MSG_OOB);
    flags_of_message(pair[1]);
    take(pair[1], MSG_OOB);
    SHOW(send(pair[0], "", 0, MSG_OOB));
}

static void by_tcp(int pair[2])
{
    section("more of TCP");
    told = 0;
    give(pair[0], "a1", MSG_OOB);
    state(pair[1]);
    give(pair[0], "b2", MSG_OOB);
    state(pair[1]);
    take(pair[1], MSG_PEEK);
    take(pair[1], MSG_OOB);
    state(pair[1]);
    take(pair[1], 0);
    state(pair[1]);
    take(pair[1], 0);
    state(pair[1]);
    give(pair[0], "g", 0);
    take(pair[1], MSG_PEEK);
    take(pair[1], 0);
    state(pair[1]);
    give(pair[0], "3", MSG_OOB);
    give(pair[0], "c4", MSG_OOB);
    take(pair[1], 0);
    take(pair[1], MSG_OOB);
    int on = 1;
    SHOW(setsockopt(pair[1], SOL_SOCKET, SO_OOBINLINE, &on, sizeof on));
    give(pair[0], "hi!", MSG_OOB);
    give(pair[0], "jk", 0);
    take(pair[1], MSG_OOB);
    state(pair[1]);
    take(pair[1], 0);
    state(pair[1]);
    take(pair[1], 0);
    state(pair[1]);
    int owner = 0;
    SHOW(ioctl(pair[1], SIOCGPGRP, &owner));
    printf("owner is this process: %d\n", owner == getpid());
    owner = 0;
    SHOW(ioctl(pair[1], SIOCSPGRP, &owner));
    give(pair[0], "!", MSG_OOB);
    printf("told %d\n", told);
}

static void without(void)
{
    section("where there is none");
    int pair[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    give(pair[0], "x", MSG_OOB);
    take(pair[1], MSG_OOB);
    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
    give(pair[0], "x", MSG_OOB);
    int udp = socket(AF_INET, SOCK_DGRAM, 0), listener = socket(AF_INET, SOCK_STREAM, 0);
    take(udp, MSG_OOB);
    listen(listener, 1);
    take(listener, MSG_OOB);
    take(socket(AF_INET, SOCK_STREAM, 0), MSG_OOB);
}

int main(void)
{
    int pair[2];
    signal(SIGURG, on_urgent);
    loopback_up();
    tcp(pair);
    stream("TCP", pair);
    by_tcp(pair);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    stream("UNIX", pair);
    without();
    return 0;
}
