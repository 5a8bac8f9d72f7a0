/*
 * service_ipc.h - carries the messages of generated stubs over the kernel's IPC.
 *
 *     service_client_t root = service_at(service_root());
 *     error = names_lookup(&root, service_string("post"), &found);
 *
 * Nobody waits here without a limit for the pages of the other side's strings.
 */
#ifndef SERVICE_IPC_H
#define SERVICE_IPC_H

#include <l4/ipc.h>
#include <service.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The root task: the server of names, and of the tasks (system.h). */
L4_ThreadId_t service_root(void);

/* The server that the thread is. */
service_client_t service_at(L4_ThreadId_t thread);

/*
 * Serves for ever: `answer` is called with `self` and each request, and calls an interface's
 * dispatch function (PANTRY_dispatch).  `input`, `room` and `output` of `call`, with their sizes,
 * are set by the caller, as large as the interface says (PANTRY_INPUT, PANTRY_ROOM, PANTRY_OUTPUT).
 */
void service_serve(service_outcome_t (*answer)(void *self, service_call_t *call), void *self,
                   service_call_t *call) __attribute__((noreturn));

/* Sends the answer in `call` to `call->caller`, if it waits for it: for one that was kept. */
void service_answer_later(const service_call_t *call);

#ifdef __cplusplus
}
#endif

#endif
