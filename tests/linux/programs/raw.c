// Raw sockets of the Internet on the loopback: who gets which packets, what is in them, what is answered.
#include "probe.h"
#include "loopback.h"

#include <netinet/ip_icmp.h>

#define OTHER 200
// What a packet is.
#define DATAGRAM 2
#define QUOTED 3
#ifndef ICMP_FILTER
#define ICMP_FILTER 1
#endif

// Whether the words of these bytes add up to all ones.
static int right(const unsigned char *at, int len)
{
    unsigned sum = 0;
    for (int i = 0; i < len; i++)
        sum += at[i] << (i % 2 ? 0 : 8);
    sum = (sum & 0xffff) + (sum >> 16);
    return ((sum & 0xffff) + (sum >> 16)) == 0xffff;
}

// All that has come: without the number of a packet and its checksum, of which only whether it is right.
static void got(const char *who, int fd, int header)
{
    usleep(2000);
    for (;;) {
        unsigned char bytes[2048];
        struct sockaddr_storage from;
        socklen_t len = sizeof from;
        int count = recvfrom(fd, bytes, sizeof bytes, MSG_DONTWAIT, (void *)&from, &len);
        if (count < 0)
            break;
        printf("%s got %d from port %d:", who, count, ntohs(((struct sockaddr_in *)&from)->sin_port));
        if (header) {
            printf(" (%s)", right(bytes, 20) ? "right" : "wrong");
            memset(bytes + 4, 0, 2), memset(bytes + 10, 0, 2);
        }
        // Linux leaves the checksum of a datagram for later, and quotes it so.
        if (header == DATAGRAM)
            memset(bytes + 26, 0, 2);
        if (header == QUOTED)
            memset(bytes + 22, 0, 2), memset(bytes + 32, 0, 2), memset(bytes + 38, 0, 2), memset(bytes + 54, 0, 2);
        for (int i = 0; i < count && i < 64; i++)
            printf(" %02x", bytes[i]);
        puts("");
    }
    printf("%s: %s\n", who, strerrorname_np(errno));
}

static void name(int fd)
{
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    getsockname(fd, (struct sockaddr *)&at, &len);
    printf("own: %s %d\n", inet_ntoa(at.sin_addr), ntohs(at.sin_port));
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
    WORKS(socket(AF_INET, SOCK_RAW, 0));
    WORKS(socket(AF_INET, SOCK_RAW, -1));
    WORKS(socket(AF_INET, SOCK_RAW, 1000));
    WORKS(socket(AF_INET6, SOCK_RAW, IPPROTO_TCP));
    int fd = socket(AF_INET, SOCK_RAW, OTHER), raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
    int plain = socket(AF_INET, SOCK_DGRAM, 0), six = socket(AF_INET6, SOCK_RAW, OTHER);
    name(fd);
    option(fd, SOL_SOCKET, SO_TYPE, "SO_TYPE");
    option(fd, SOL_SOCKET, SO_PROTOCOL, "SO_PROTOCOL");
    option(fd, IPPROTO_IP, IP_HDRINCL, "IP_HDRINCL");
    option(raw, IPPROTO_IP, IP_HDRINCL, "IP_HDRINCL of IPPROTO_RAW");
    option(plain, IPPROTO_IP, IP_HDRINCL, "IP_HDRINCL of UDP");
    option(fd, SOL_RAW, ICMP_FILTER, "ICMP_FILTER");
    option(six, IPPROTO_IPV6, IPV6_CHECKSUM, "IPV6_CHECKSUM");
    option(six, IPPROTO_IP, IP_TTL, "IP_TTL of IPv6");
    SHOW(listen(fd, 1));
    SHOW(shutdown(fd, SHUT_RDWR));
    SHOW(send(fd, "x", 1, 0));
    close(fd), close(raw), close(plain), close(six);
}

static void echo(void)
{
    section("echo");
    unsigned char ask[] = {8, 0, 0x8f, 0x93, 0, 1, 0, 2, 'h', 'i'};
    int fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
    struct sockaddr_in home = v4("127.0.0.1", 0);
    SHOW(sendto(fd, ask, sizeof ask, 0, AT(home)));
    got("icmp", fd, 1);
    unsigned filter = 1 << ICMP_ECHO;
    SHOW(setsockopt(fd, SOL_RAW, ICMP_FILTER, &filter, sizeof filter));
    SHOW(sendto(fd, ask, sizeof ask, 0, AT(home)));
    got("filtered", fd, 1);
    ask[9]++;
    SHOW(sendto(fd, ask, sizeof ask, 0, AT(home)));
    got("wrong", fd, 1);
    close(fd);
}

static void copies(void)
{
    section("copies");
    int one = socket(AF_INET, SOCK_RAW, OTHER), two = socket(AF_INET, SOCK_RAW, OTHER);
    struct sockaddr_in home = v4("127.0.0.1", 7), there = v4("127.0.0.9", 0), far = v4("10.9.8.7", 0);
    SHOW(sendto(one, "hello", 5, 0, AT(home)));
    got("one", one, 1), got("two", two, 1);
    SHOW(bind(two, AT(far)));
    SHOW(bind(two, AT(home)));
    SHOW(bind(two, AT(there)));
    name(two);
    SHOW(sendto(one, "a", 1, 0, AT(home)));
    SHOW(sendto(one, "b", 1, 0, AT(there)));
    got("bound", two, 1);
    SHOW(connect(one, AT(there)));
    name(one);
    SHOW(bind(one, AT(home)));
    got("connected", one, 1);
    SHOW(send(one, "c", 1, 0));
    SHOW(sendto(two, "d", 1, 0, AT(home)));
    got("connected", one, 1), got("bound", two, 1);
    close(one);
    one = socket(AF_INET, SOCK_RAW, OTHER);
    int hops = 5, class = 0x10;
    setsockopt(one, IPPROTO_IP, IP_TTL, &hops, sizeof hops);
    setsockopt(one, IPPROTO_IP, IP_TOS, &class, sizeof class);
    SHOW(sendto(one, "", 0, 0, AT(home)));
    got("one", one, 1);
    static char large[70000];
    SHOW(sendto(one, large, 65516, 0, AT(home)));
    SHOW(sendto(one, large, 65515, 0, AT(home)));
    SHOW(recv(one, large, 10, MSG_TRUNC));
    close(one), close(two);
}

static void headers(void)
{
    section("headers");
    int maker = socket(AF_INET, SOCK_RAW, IPPROTO_RAW), taker = socket(AF_INET, SOCK_RAW, OTHER);
    struct sockaddr_in home = v4("127.0.0.1", 0);
    unsigned char made[] = {0x45, 0, 0, 0, 0, 7, 0, 0, 9, OTHER, 0, 0, 0, 0, 0, 0, 10, 1, 2, 3, 'h', 'i'};
    SHOW(sendto(maker, made, sizeof made, 0, AT(home)));
    SHOW(sendto(maker, made, 19, 0, AT(home)));
    got("taker", taker, 1), got("maker", maker, 1);
    static const unsigned char spoilt[][2] = {{0, 0x4f}, {0, 0x44}, {0, 0x65}, {7, 1}, {0, 0x46}};
    for (int i = 0; i < 5; i++) {
        unsigned char copy[sizeof made];
        memcpy(copy, made, sizeof made);
        copy[spoilt[i][0]] = spoilt[i][1];
        SHOW(sendto(maker, copy, sizeof copy, 0, AT(home)));
    }
    got("taker", taker, 1);
    int on = 1;
    SHOW(setsockopt(taker, IPPROTO_IP, IP_HDRINCL, &on, sizeof on));
    SHOW(sendto(taker, made, sizeof made, 0, AT(home)));
    SHOW(sendto(taker, "short", 5, 0, AT(home)));
    got("taker", taker, 1);
    close(maker), close(taker);
}

static void datagrams(void)
{
    section("datagrams");
    int raw = socket(AF_INET, SOCK_RAW, IPPROTO_UDP), icmp = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
    int server = socket(AF_INET, SOCK_DGRAM, 0), client = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in at = v4("127.0.0.1", 7100), own = v4("127.0.0.1", 7101), closed = v4("127.0.0.1", 7102);
    bind(server, AT(at)), bind(client, AT(own));
    SHOW(sendto(client, "question", 8, 0, AT(at)));
    got("server", server, 0), got("raw", raw, DATAGRAM);
    unsigned char made[] = {0, 99, 7100 >> 8, 7100 & 255, 0, 10, 0, 0, 'h', 'i'};
    SHOW(sendto(raw, made, sizeof made, 0, AT(at)));
    got("server", server, 0);
    for (int len = 7; len < 12; len++) {
        made[5] = len;
        SHOW(sendto(raw, made, sizeof made, 0, AT(at)));
    }
    made[5] = 10, made[7] = 1;
    SHOW(sendto(raw, made, sizeof made, 0, AT(at)));
    got("server", server, 0), got("raw", raw, 1), got("icmp", icmp, 1);
    SHOW(connect(client, AT(closed)));
    SHOW(send(client, "x", 1, 0));
    usleep(2000);
    SHOW(send(client, "x", 1, 0));
    got("icmp", icmp, QUOTED);
    // Of a protocol that nobody knows.
    int other = socket(AF_INET, SOCK_RAW, OTHER), maker = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
    unsigned char unknown[] = {0x45, 4, 0, 0, 0, 7, 0, 0, 9, OTHER, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1, '?'};
    SHOW(sendto(maker, unknown, sizeof unknown, 0, AT(at)));
    got("icmp", icmp, 1);
    close(other);
    SHOW(sendto(maker, unknown, sizeof unknown, 0, AT(at)));
    usleep(2000);
    unsigned char told[64] = {0};
    SHOW(recv(icmp, told, sizeof told, MSG_DONTWAIT));
    printf("class %#x, kind %d, code %d, of %d\n", told[1], told[20], told[21], told[28 + 9]);
    close(raw), close(icmp), close(server), close(client), close(maker);
}

static void six(void)
{
    section("six");
    int fd = socket(AF_INET6, SOCK_RAW, OTHER), icmp = socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
    struct sockaddr_in6 home = v6("::1", 0), wrong = v6("::1", 201), right = v6("::1", OTHER);
    int three = 3, four = 4, off = -1;
    SHOW(setsockopt(icmp, IPPROTO_IPV6, IPV6_CHECKSUM, &four, sizeof four));
    SHOW(setsockopt(fd, IPPROTO_IPV6, IPV6_CHECKSUM, &three, sizeof three));
    SHOW(setsockopt(fd, IPPROTO_IPV6, IPV6_CHECKSUM, &four, sizeof four));
    option(fd, IPPROTO_IPV6, IPV6_CHECKSUM, "IPV6_CHECKSUM");
    SHOW(sendto(fd, "abcd", 4, 0, AT(home)));
    SHOW(sendto(fd, "abcdefgh", 8, 0, AT(home)));
    SHOW(sendto(fd, "abcdefgh", 8, 0, AT(wrong)));
    got("six", fd, 0);
    SHOW(setsockopt(fd, IPPROTO_IPV6, IPV6_CHECKSUM, &off, sizeof off));
    SHOW(sendto(fd, "abcdefgh", 8, 0, AT(right)));
    got("six", fd, 0);
    unsigned char ask[] = {128, 0, 0, 0, 0, 1, 0, 2, 'h', 'i'};
    SHOW(sendto(icmp, ask, sizeof ask, 0, AT(home)));
    got("icmp", icmp, 0);
    close(fd), close(icmp);
}

int main(void)
{
    loopback_up();
    making();
    echo();
    copies();
    headers();
    datagrams();
    six();
    if (setresuid(1000, 1000, 1000) == 0) {
        section("without rights");
        WORKS(socket(AF_INET, SOCK_RAW, IPPROTO_UDP));
        WORKS(socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6));
    }
    return 0;
}
