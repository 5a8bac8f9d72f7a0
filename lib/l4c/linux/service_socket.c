/*
 * service_socket.c - messages of generated stubs as packets.
 */
#include "service_socket.h"
#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define UNTYPED(tag) ((tag) & 0x3F)
/* Two words of typed items: a simple string. */
#define STRING (2UL << 6)
/* The length in a string item's first word begins here (X.2 4.7). */
#define LENGTH 10

int service_open(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t len = strlen(path);
    int fd;
    if (len >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, len);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1)) < 0) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

static service_error_t send_packet(const service_client_t *client, service_message_t *message,
                                   service_limits_t limits)
{
    uint64_t tag = message->tag;
    struct iovec parts[3] = {
        { &tag, sizeof tag },
        { message->words, 8 * UNTYPED(tag) },
        { (void *)message->string, message->string_bytes },
    };
    struct msghdr header = { .msg_iov = parts, .msg_iovlen = message->string == NULL ? 2 : 3 };
    ssize_t sent;
    (void)limits;
    if (message->string != NULL)
        tag |= STRING;
    do
        sent = sendmsg((int)client->thread, &header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? SERVICE_NO_SERVER : SERVICE_OK;
}

static service_error_t call(const service_client_t *client, service_message_t *message, void *room,
                            size_t bytes, service_limits_t limits)
{
    uint64_t tag;
    size_t words, length;
    ssize_t came;
    service_error_t error = send_packet(client, message, limits);
    if (error != SERVICE_OK)
        return error;
    do
        came = recv((int)client->thread, &tag, sizeof tag, MSG_PEEK);
    while (came < 0 && errno == EINTR);
    if (came != sizeof tag)
        return SERVICE_NO_SERVER;
    words = UNTYPED(tag);
    {
        struct iovec parts[3] = { { &tag, sizeof tag }, { message->words, 8 * words },
                                  { room, bytes } };
        struct msghdr header = { .msg_iov = parts, .msg_iovlen = 3 };
        came = recvmsg((int)client->thread, &header, 0);
        if (came < 0)
            return SERVICE_NO_SERVER;
        if ((header.msg_flags & MSG_TRUNC) != 0)
            return SERVICE_TOO_LONG;
    }
    if ((size_t)came < 8 + 8 * words || words + 2 > SERVICE_WORDS)
        return SERVICE_BAD_ANSWER;
    length = (size_t)came - 8 - 8 * words;
    message->tag = tag;
    message->string = NULL;
    message->string_bytes = 0;
    if ((tag & STRING) != 0) {
        message->words[words] = (uint64_t)length << LENGTH;
        message->words[words + 1] = (uint64_t)(uintptr_t)room;
    }
    return SERVICE_OK;
}

service_client_t service_over(int fd)
{
    service_client_t client = { call, send_packet, (service_thread_t)fd, NULL };
    return client;
}
