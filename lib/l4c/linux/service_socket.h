/*
 * service_socket.h - carries the messages of generated stubs from a Linux program to a service
 * of the system below, through its socket in /srv.
 *
 *     int fd = service_open("/srv/own-service");
 *     service_client_t board = service_over(fd);
 *     error = own_service_pin(&board, service_string("milk"), &pinned);
 *
 * A packet is one message: its tag, its words, its string (docs/services.md).
 */
#ifndef SERVICE_SOCKET_H
#define SERVICE_SOCKET_H

#include <service.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A connection to the service whose socket is at `path`; -1, and errno, if there is none. */
int service_open(const char *path);

/* The service behind a connection. Times to wait are not limited here: SO_RCVTIMEO does that. */
service_client_t service_over(int fd);

#ifdef __cplusplus
}
#endif

#endif
