/*
 * partner.h - the threads that the tests on a kernel talk to.
 *
 * `near` is a server in the root task's space, `far` the same server in a space of
 * its own, paged 1:1 by `pager`, a thread of the root task.  The server answers by
 * the request's label; see partner.c.  All share the program's memory: near by
 * being in the same space, far by page faults.
 */
#ifndef C_API_PARTNER_H
#define C_API_PARTNER_H

#include <l4/ipc.h>
#include <l4c.h>

/* Requests to a server: the label; words from MR1. */
enum {
    REQUEST_INVERT = 1,  /* any words; answers with each word inverted */
    REQUEST_STRING,      /* accepts strings into string_buffers, answers with what came */
    REQUEST_READ,        /* MR1 address; answers with the word there */
    REQUEST_WRITE,       /* MR1 address, MR2 value; writes it there */
    REQUEST_WINDOW,      /* MR1 receive window; accepts mappings from now on */
    REQUEST_PROPAGATE,   /* MR1 id; sends the caller a message as if from there */
    REQUEST_SEND_STRING, /* MR1.. string item; answers with the string */
    REQUEST_WHO,         /* answers with the caller's id as it was received */
};

/* Requests to the pager: MR1 id, MR2 IP, MR3 SP: sends that thread its start message. */
#define REQUEST_START 100

#define STACK 8192
#define PAGE 4096

extern L4_ThreadId_t near, far, pager;

/* Page faults that the pager has served on `watched_page`. */
extern volatile L4_Word_t watched_page, watched_faults;

/* Creates all three; ends the program if that is not possible. */
void create_partners(void);

/* A thread id that nothing else uses, by its distance from the root task's number. */
L4_ThreadId_t spare(L4_Word_t distance, L4_Word_t version);

/* Sends the `words` words from `in` with a label, stores the answer's words to `out`. */
L4_MsgTag_t request(L4_ThreadId_t to, L4_Word_t label, L4_Word_t words, const L4_Word_t *in,
                    L4_Word_t *out);

/* One word in, one word back; ends the program if the call fails. */
L4_Word_t ask(L4_ThreadId_t to, L4_Word_t label, L4_Word_t word);

/* The server's loop. */
void serve(void);

/* Two receive buffers of the server. */
extern char string_buffers[3][256];
/* Buffer words for BR1.. that the server uses for REQUEST_STRING, and how many. */
extern L4_Word_t string_brs[8];

#endif
