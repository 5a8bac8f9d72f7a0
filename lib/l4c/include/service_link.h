/*
 * service_link.h - a server that is called by procedure calls where it offers them, else by messages.
 *
 *     service_link_t board = service_link(thread);
 *     error = service_bind(&board.client, &own_service_interface, NULL, 0, why, sizeof why);
 *     error = own_service_pin(&board.client, text, &pinned);
 *     service_link_end(&board);
 *
 * What can't go by a procedure call goes by a message, call by call: functions with timeouts and
 * calls for which the server has no thread.  A link belongs to one thread: it has one A-stack.
 * docs/services.md, By procedure calls; docs/calls/lrpc.md.
 */
#ifndef SERVICE_LINK_H
#define SERVICE_LINK_H

#include <service_ipc.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { SERVICE_BY_MESSAGES, SERVICE_BY_CALLS } service_transport_t;

/* `client` stays the first: what generated stubs get is a pointer to it. */
typedef struct {
    service_client_t client;
    const char *name;           /* under which it is looked up when it is gone, or NULL */
    L4_Word_t token;            /* what names the A-stack to the kernel; 0: messages */
    volatile L4_Word_t *a_stack;
    bool wants_calls;           /* offered or asked for, and messages were not since */
    bool is_to_bind;            /* the binding has ended by itself */
} service_link_t;

/* To the server that the thread is, by messages at first. */
service_link_t service_link(L4_ThreadId_t server);

/*
 * To the server that is registered under `name`, which is waited for so long.  One that ends and is
 * started again is found again, by the first call that reaches nobody.
 */
service_error_t service_link_find(service_link_t *link, const char *name, uint64_t patience_ms);

/* How calls travel now. */
service_transport_t service_link_transport(const service_link_t *link);

/* Asks the server for a binding: from now on calls go over it, if it agrees. */
void service_link_take_calls(service_link_t *link);

/* Ends the binding, if there is one: calls go by messages. */
void service_link_take_messages(service_link_t *link);

/* The link is used no more. */
void service_link_end(service_link_t *link);

#ifdef __cplusplus
}
#endif

#endif
