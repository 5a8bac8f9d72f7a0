// UNIX sockets: pairs, names, streams, packets, descriptors in messages.
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "probe.h"

static char buffer[4096];

static socklen_t named(struct sockaddr_un *address, const char *name)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    strcpy(address->sun_path, name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1);
}

static void pairs(void)
{
    section("pairs");
    int stream[2], packet[2], datagram[2], none[2];
    SHOW(socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
    SHOW(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, packet));
    SHOW(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, datagram));
    SHOW(socketpair(AF_UNIX, SOCK_STREAM, 0, BAD));
    SHOW(socketpair(AF_UNIX, 77, 0, stream + 0));
    SHOW(socketpair(99, SOCK_STREAM, 0, none));
    SHOW(write(stream[0], "one", 3));
    SHOW(write(stream[0], "two", 3));
    SHOW(read(stream[1], buffer, 100));
    SHOW(write(packet[0], "one", 3));
    SHOW(write(packet[0], "three", 5));
    SHOW(read(packet[1], buffer, 100));
    SHOW(recv(packet[1], buffer, 2, MSG_TRUNC));
    SHOW(recv(packet[1], buffer, 10, MSG_DONTWAIT));
    SHOW(send(datagram[0], "d", 1, 0));
    SHOW(send(datagram[0], "", 0, 0));
    SHOW(recv(datagram[1], buffer, 10, MSG_PEEK));
    SHOW(recv(datagram[1], buffer, 10, 0));
    SHOW(recv(datagram[1], buffer, 10, 0));
    SHOW(recv(datagram[1], buffer, 10, 0));
    SHOW(recv(stream[1], BAD, 10, MSG_DONTWAIT));
    SHOW(send(stream[0], BAD, 10, 0));
    SHOW(shutdown(stream[0], SHUT_WR));
    SHOW(read(stream[1], buffer, 10));
    SHOW(send(stream[0], "x", 1, MSG_NOSIGNAL));
    SHOW(write(stream[1], "back", 4));
    SHOW(read(stream[0], buffer, 10));
    SHOW(shutdown(stream[0], 77));
    CHILD("writer after shutdown", write(stream[0], "x", 1));
    close(stream[1]);
    SHOW(read(stream[0], buffer, 10));
    close(packet[0]);
    SHOW(recv(packet[1], buffer, 10, 0));
    SHOW(send(packet[1], "x", 1, MSG_NOSIGNAL));
    for (int fd = 3; fd < 12; fd++)
        close(fd);
}

static void server(int type, const char *word)
{
    section(word);
    struct sockaddr_un address, peer;
    socklen_t length = named(&address, word), peer_length = sizeof peer;
    int listener = socket(AF_UNIX, type, 0), second = socket(AF_UNIX, type, 0);
    SHOW(accept(listener, NULL, NULL));
    SHOW(connect(second, (void *)&address, length));
    SHOW(bind(listener, (void *)&address, length));
    SHOW(bind(listener, (void *)&address, length));
    SHOW(bind(second, (void *)&address, length));
    SHOW(connect(second, (void *)&address, length));
    SHOW(listen(listener, 5));
    fcntl(listener, F_SETFL, O_NONBLOCK);
    SHOW(accept(listener, NULL, NULL));
    SHOW(connect(second, (void *)&address, length));
    SHOW(connect(second, (void *)&address, length));
    struct pollfd ready = {listener, POLLIN, 0};
    SHOW(poll(&ready, 1, 0));
    int talk = accept4(listener, (void *)&peer, &peer_length, SOCK_CLOEXEC);
    WORKS(talk);
    printf("peer length %d\n", (int)peer_length);
    SHOW(write(second, "request", 7));
    SHOW(read(talk, buffer, 100));
    SHOW(write(talk, "answer", 6));
    SHOW(read(second, buffer, 100));
    peer_length = sizeof peer;
    SHOW(getpeername(second, (void *)&peer, &peer_length));
    printf("%s\n", peer.sun_path);
    SHOW(getsockname(talk, (void *)&peer, &peer_length));
    SHOW(getsockname(99, (void *)&peer, &peer_length));
    SHOW(getsockname(0, (void *)&peer, &peer_length));
    close(listener), close(talk);
    SHOW(read(second, buffer, 10));
    close(second);
    second = socket(AF_UNIX, type, 0);
    SHOW(connect(second, (void *)&address, length));
    SHOW(unlink(word));
    SHOW(connect(second, (void *)&address, length));
    close(second);
}

static void options(void)
{
    section("options");
    int pair[2], value = -1;
    socklen_t length = sizeof value;
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    SHOW(getsockopt(pair[0], SOL_SOCKET, SO_TYPE, &value, &length));
    printf("type %d\n", value);
    SHOW(getsockopt(pair[0], SOL_SOCKET, SO_ERROR, &value, &length));
    printf("error %d\n", value);
    SHOW(getsockopt(pair[0], SOL_SOCKET, SO_ACCEPTCONN, &value, &length));
    SHOW(getsockopt(pair[0], SOL_SOCKET, 7777, &value, &length));
    SHOW(getsockopt(99, SOL_SOCKET, SO_TYPE, &value, &length));
    SHOW(getsockopt(pair[0], SOL_SOCKET, SO_TYPE, BAD, &length));
    struct ucred who;
    length = sizeof who;
    SHOW(getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &who, &length));
    printf("mine %d, uid %u\n", who.pid == getpid(), who.uid);
    struct timeval soon = {0, 20000};
    SHOW(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon));
    SHOW(read(pair[0], buffer, 1));
    SHOW(socket(99, SOCK_STREAM, 0));
    SHOW(socket(AF_UNIX, 99, 0));
    close(pair[0]), close(pair[1]);
}

union control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
};

/* Sends a byte and a descriptor. */
static void pass(int over, int descriptor)
{
    union control control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec data = {"!", 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(int));
    SHOW(sendmsg(over, &message, 0));
}

static void descriptors(void)
{
    section("descriptors in messages");
    int pair[2], pipe_ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    pipe(pipe_ends);
    pass(pair[0], pipe_ends[1]);
    close(pipe_ends[1]);
    union control control = {0};
    struct iovec data = {buffer, 10};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    SHOW(recvmsg(pair[1], &message, 0));
    int received = -1;
    memcpy(&received, CMSG_DATA(&control.header), sizeof(int));
    printf("type %d, flags %#x\n", control.header.cmsg_type, message.msg_flags);
    SHOW(write(received, "through it", 10));
    close(received);
    SHOW(read(pipe_ends[0], buffer, 100));
    SHOW(read(pipe_ends[0], buffer, 100));
    pass(pair[0], 99);
    SHOW(sendmsg(pair[0], BAD, 0));
}

/* Sockets that only their own queues hold are gone, and what else is in the queues, too. */
static void lost(void)
{
    int pair[2], pipe_ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    pipe(pipe_ends);
    pass(pair[0], pipe_ends[1]);
    pass(pair[0], pair[0]);
    pass(pair[0], pair[1]);
    close(pipe_ends[1]);
    close(pair[0]);
    close(pair[1]);
    /* Linux looks when a socket ends. */
    close(socket(AF_UNIX, SOCK_STREAM, 0));
    SHOW(read(pipe_ends[0], buffer, 100));
    close(pipe_ends[0]);
}

/* How much a stream holds is what its sender's buffer does; what of that is bookkeeping differs. */
static void buffers(void)
{
    section("buffers");
    const int sizes[] = {1, 4096, 16384};
    for (int i = 0; i < 3; i++) {
        int pair[2], size = sizes[i], told = 0;
        long sent = 0, held = 0;
        socklen_t len = sizeof told;
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
        SHOW(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
        SHOW(getsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &told, &len));
        while ((sent = write(pair[0], buffer, sizeof buffer)) > 0)
            held += sent;
        printf("told %d, holds about as much: %d\n", told, held > told * 3 / 4 && held <= told);
        SHOW(setsockopt(pair[1], SOL_SOCKET, SO_RCVBUF, &size, sizeof size));
        SHOW(getsockopt(pair[1], SOL_SOCKET, SO_RCVBUF, &told, &len));
        printf("told %d\n", told);
        close(pair[0]);
        close(pair[1]);
    }
}

int main(void)
{
    pairs();
    server(SOCK_STREAM, "stream");
    server(SOCK_SEQPACKET, "seqpacket");
    options();
    buffers();
    descriptors();
    lost();
    return 0;
}
