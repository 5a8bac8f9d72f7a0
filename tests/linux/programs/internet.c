// Sockets of the Internet on the loopback: addresses, ports, connections, datagrams, errors.
#include "probe.h"
#include "loopback.h"

#include <netinet/tcp.h>
#include <poll.h>

// An address; a port only if it was not given by the system.
static void show_name(const char *what, const struct sockaddr *at, socklen_t len)
{
    char text[64] = "";
    int port = ntohs(((const struct sockaddr_in *)at)->sin_port);
    if (at->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)at)->sin_addr, text, sizeof text);
    else if (at->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)at)->sin6_addr, text, sizeof text);
    printf("%s: family %d %s ", what, at->sa_family, text);
    if (port >= 32768)
        printf("any");
    else
        printf("%d", port);
    printf(" (%u)\n", len);
}

static void names(int fd)
{
    struct sockaddr_storage at;
    socklen_t len = sizeof at;
    if (SHOW(getsockname(fd, (struct sockaddr *)&at, &len)) == 0)
        show_name("own", (struct sockaddr *)&at, len);
    len = sizeof at;
    if (SHOW(getpeername(fd, (struct sockaddr *)&at, &len)) == 0)
        show_name("peer", (struct sockaddr *)&at, len);
}

// Linux may leave what was sent to its softirq's thread, so that it arrives a moment later.
static void ready(int fd)
{
    usleep(2000);
    struct pollfd entry = {fd, POLLIN | POLLOUT | POLLRDHUP | POLLPRI, 0};
    poll(&entry, 1, 0);
    printf("poll: %#x\n", entry.revents);
}

static void option(int fd, int level, int name, const char *what)
{
    int value = -1;
    socklen_t len = sizeof value;
    errno = 0;
    long result = getsockopt(fd, level, name, &value, &len);
    printf("%s: %s %d\n", what, result ? strerrorname_np(errno) : "ok", value);
}

static void making(void)
{
    section("making");
    WORKS(socket(AF_INET, SOCK_STREAM, 0));
    WORKS(socket(AF_INET, SOCK_STREAM, IPPROTO_TCP));
    WORKS(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
    WORKS(socket(AF_INET, SOCK_DGRAM, IPPROTO_TCP));
    WORKS(socket(AF_INET, SOCK_SEQPACKET, 0));
    WORKS(socket(AF_INET6, SOCK_DGRAM, IPPROTO_UDP));
    int pair[2];
    SHOW(socketpair(AF_INET, SOCK_STREAM, 0, pair));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    names(fd);
    ready(fd);
    option(fd, SOL_SOCKET, SO_TYPE, "SO_TYPE");
    option(fd, SOL_SOCKET, SO_DOMAIN, "SO_DOMAIN");
    option(fd, SOL_SOCKET, SO_PROTOCOL, "SO_PROTOCOL");
    option(fd, IPPROTO_TCP, TCP_NODELAY, "TCP_NODELAY");
    option(fd, IPPROTO_TCP, TCP_KEEPIDLE, "TCP_KEEPIDLE");
    option(fd, IPPROTO_IP, IP_TTL, "IP_TTL");
    option(fd, IPPROTO_IPV6, IPV6_V6ONLY, "IPV6_V6ONLY");
    option(fd, IPPROTO_TCP, 99, "none");
    char text[4];
    SHOW(read(fd, text, 4));
    SHOW(send(fd, text, 4, MSG_NOSIGNAL));
    SHOW(shutdown(fd, SHUT_RDWR));
    SHOW(accept(fd, NULL, NULL));
}

static void binding(void)
{
    section("binding");
    int one = socket(AF_INET, SOCK_STREAM, 0), two = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = v4("127.0.0.1", 7001), all = v4("0.0.0.0", 7001);
    struct sockaddr_in far = v4("10.1.2.3", 7001), any = v4("127.0.0.1", 0);
    struct sockaddr_in6 six = v6("::1", 7001);
    SHOW(bind(one, AT(far)));
    SHOW(bind(one, AT(six)));
    SHOW(bind(one, (struct sockaddr *)&at, 8));
    SHOW(bind(one, AT(at)));
    SHOW(bind(one, AT(any)));
    names(one);
    SHOW(bind(two, AT(at)));
    SHOW(bind(two, AT(all)));
    SHOW(listen(one, 5));
    int on = 1;
    setsockopt(one, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(two, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    SHOW(bind(two, AT(at)));
    SHOW(bind(two, AT(any)));
    names(two);
    int three = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 all_six = v6("::", 7001);
    SHOW(bind(three, AT(all_six)));
    SHOW(setsockopt(three, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on));
    SHOW(bind(three, AT(all_six)));
    int datagrams = socket(AF_INET, SOCK_DGRAM, 0);
    SHOW(bind(datagrams, AT(at)));
    SHOW(listen(datagrams, 1));
    int fresh = socket(AF_INET, SOCK_STREAM, 0);
    SHOW(listen(fresh, 1));
    names(fresh);
    ready(fresh);
    close(one), close(two), close(three), close(datagrams), close(fresh);
}

// The port is free although connections of the run before are still being forgotten.
static void again(int listener)
{
    int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

static void connecting(void)
{
    section("connecting");
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = v4("127.0.0.1", 7002), closed = v4("127.0.0.1", 7003);
    again(listener);
    bind(listener, AT(at));
    listen(listener, 5);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    SHOW(connect(client, AT(closed)));
    SHOW(connect(client, (struct sockaddr *)&at, 8));
    SHOW(connect(client, AT(at)));
    SHOW(connect(client, AT(at)));
    names(client);
    ready(listener);
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    int server = accept(listener, (struct sockaddr *)&from, &len);
    show_name("accepted", (struct sockaddr *)&from, len);
    names(server);
    ready(client);
    char text[64] = "";
    SHOW(send(client, "hello", 5, 0));
    ready(server);
    int waiting = 0;
    SHOW(ioctl(server, FIONREAD, &waiting));
    printf("%d\n", waiting);
    SHOW(recv(server, text, 3, MSG_PEEK));
    SHOW(recv(server, text, sizeof text, 0));
    printf("%s\n", text);
    SHOW(recv(server, text, sizeof text, MSG_DONTWAIT));
    SHOW(shutdown(client, SHUT_WR));
    ready(server);
    ready(client);
    SHOW(recv(server, text, sizeof text, 0));
    SHOW(send(client, "x", 1, MSG_NOSIGNAL));
    SHOW(send(server, "back", 4, 0));
    SHOW(recv(client, text, sizeof text, 0));
    close(client);
    SHOW(send(server, "lost", 4, MSG_NOSIGNAL));
    SHOW(recv(server, text, sizeof text, 0));
    SHOW(send(server, "more", 4, MSG_NOSIGNAL));
    ready(server);
    close(server);
    section("resets");
    client = socket(AF_INET, SOCK_STREAM, 0);
    connect(client, AT(at));
    server = accept(listener, NULL, NULL);
    send(client, "unread", 6, 0);
    close(server);
    ready(client);
    SHOW(recv(client, text, sizeof text, 0));
    SHOW(recv(client, text, sizeof text, 0));
    SHOW(send(client, "x", 1, MSG_NOSIGNAL));
    close(client), close(listener);
    SHOW(connect(socket(AF_INET, SOCK_STREAM, 0), AT(at)));
}

static void not_waiting(void)
{
    section("not waiting");
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in at = v4("127.0.0.1", 7004), closed = v4("127.0.0.1", 7005);
    again(listener);
    bind(listener, AT(at));
    listen(listener, 5);
    SHOW(accept(listener, NULL, NULL));
    int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    SHOW(connect(client, AT(at)));
    ready(client);
    option(client, SOL_SOCKET, SO_ERROR, "SO_ERROR");
    SHOW(connect(client, AT(at)));
    SHOW(connect(client, AT(at)));
    WORKS(accept(listener, NULL, NULL));
    char text[4];
    SHOW(recv(client, text, 4, 0));
    close(client);
    client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    SHOW(connect(client, AT(closed)));
    ready(client);
    option(client, SOL_SOCKET, SO_ERROR, "SO_ERROR");
    close(client);
    client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    SHOW(connect(client, AT(closed)));
    usleep(2000);
    SHOW(connect(client, AT(closed)));
    SHOW(connect(client, AT(at)));
    close(client), close(listener);
}

static void six(void)
{
    section("IPv6");
    int listener = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 all = v6("::", 7006), at = v6("::1", 7006);
    struct sockaddr_in four = v4("127.0.0.1", 7006);
    again(listener);
    SHOW(bind(listener, AT(all)));
    SHOW(listen(listener, 5));
    int client = socket(AF_INET, SOCK_STREAM, 0);
    SHOW(connect(client, AT(four)));
    int server = accept(listener, NULL, NULL);
    names(client);
    names(server);
    close(client), close(server);
    client = socket(AF_INET6, SOCK_STREAM, 0);
    SHOW(connect(client, AT(at)));
    server = accept(listener, NULL, NULL);
    names(client);
    names(server);
    option(client, IPPROTO_IPV6, IPV6_V6ONLY, "IPV6_V6ONLY");
    close(client), close(server), close(listener);
}

static void datagrams(void)
{
    section("datagrams");
    int server = socket(AF_INET, SOCK_DGRAM, 0), client = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in at = v4("127.0.0.1", 7007), closed = v4("127.0.0.1", 7008);
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    char text[64] = "";
    ready(client);
    SHOW(send(client, "x", 1, 0));
    SHOW(recv(client, text, 4, MSG_DONTWAIT));
    SHOW(bind(server, AT(at)));
    SHOW(sendto(client, "question", 8, 0, AT(at)));
    names(client);
    SHOW(recvfrom(server, text, sizeof text, 0, (struct sockaddr *)&from, &len));
    show_name("from", (struct sockaddr *)&from, len);
    SHOW(sendto(server, "answer", 6, 0, (struct sockaddr *)&from, len));
    SHOW(recv(client, text, 3, MSG_TRUNC));
    SHOW(sendto(client, "", 0, 0, AT(at)));
    SHOW(recv(server, text, sizeof text, 0));
    SHOW(connect(client, AT(at)));
    names(client);
    SHOW(send(client, "one", 3, 0));
    SHOW(send(client, "two", 3, 0));
    SHOW(recv(server, text, sizeof text, 0));
    SHOW(recv(server, text, sizeof text, 0));
    SHOW(connect(client, AT(closed)));
    SHOW(send(client, "x", 1, 0));
    ready(client);
    SHOW(send(client, "x", 1, 0));
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    SHOW(connect(client, &none, sizeof none));
    SHOW(send(client, "x", 1, 0));
    static char large[65536];
    SHOW(sendto(client, large, 65508, 0, AT(at)));
    SHOW(sendto(client, large, 65507, 0, AT(at)));
    SHOW(recv(server, large, sizeof large, 0));
    close(server), close(client);
}

int main(void)
{
    loopback_up();
    making();
    binding();
    connecting();
    not_waiting();
    six();
    datagrams();
    return 0;
}
