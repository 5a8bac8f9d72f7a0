// What programs about sockets of the Internet share: addresses, and the loopback.
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define AT(address) (struct sockaddr *)&address, sizeof address

static inline struct sockaddr_in v4(const char *ip, int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, ip, &at.sin_addr);
    return at;
}

static inline struct sockaddr_in6 v6(const char *ip, int port)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    inet_pton(AF_INET6, ip, &at.sin6_addr);
    return at;
}

static inline void loopback_up(void)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    strcpy(request.ifr_name, "lo");
    ioctl(fd, SIOCGIFFLAGS, &request);
    request.ifr_flags |= IFF_UP;
    ioctl(fd, SIOCSIFFLAGS, &request);
    close(fd);
}
