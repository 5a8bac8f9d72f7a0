/*
 * A server and a client in C, at the end of a pipe.  What comes is a request for one interface;
 * the server asks the same of the other side by the client, and answers what that says.
 */
#include "trial.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NO_STRING UINT64_MAX
enum { CALL = 1, DONE = 2 };

/* What goes through the pipe, with the string behind it. */
struct frame {
    uint64_t kind; /* to here: the interface, or 0 for an answer and 1 for none */
    uint64_t status;
    uint64_t room;
    uint64_t string_bytes;
    uint64_t tag;
    uint64_t words[SERVICE_WORDS];
};

static uint8_t input[16384], output[16384], own_room[32768], room[32768];
static service_error_t status;

static void get(void *to, size_t bytes)
{
    uint8_t *at = to;
    while (bytes != 0) {
        ssize_t some = read(0, at, bytes);
        if (some <= 0)
            exit(0);
        at += some;
        bytes -= (size_t)some;
    }
}

static void put(const void *from, size_t bytes)
{
    const uint8_t *at = from;
    while (bytes != 0) {
        ssize_t some = write(1, at, bytes);
        if (some <= 0)
            exit(1);
        at += some;
        bytes -= (size_t)some;
    }
}

static void send_frame(uint64_t kind, const service_message_t *message, uint64_t room_bytes)
{
    struct frame frame = { kind, status, room_bytes, NO_STRING, message->tag, { 0 } };
    memcpy(frame.words, message->words, 8 * (message->tag & 63));
    if (message->string != NULL)
        frame.string_bytes = message->string_bytes;
    put(&frame, sizeof frame);
    if (message->string != NULL)
        put(message->string, message->string_bytes);
}

/* Takes a frame; its string goes into `string`, and must fit there. */
static uint64_t take_frame(service_message_t *message, void *string, size_t bytes)
{
    struct frame frame;
    get(&frame, sizeof frame);
    message->tag = frame.tag;
    memcpy(message->words, frame.words, sizeof frame.words);
    if (frame.string_bytes != NO_STRING) {
        if (frame.string_bytes > bytes)
            abort();
        get(string, frame.string_bytes);
    }
    return frame.kind;
}

static service_error_t call_upstream(const service_client_t *client, service_message_t *message,
                                     void *to, size_t bytes, service_limits_t limits)
{
    (void)client;
    (void)limits;
    send_frame(CALL, message, bytes);
    return take_frame(message, to, bytes) == 0 ? SERVICE_OK : SERVICE_NO_SERVER;
}

static const service_client_t upstream = { call_upstream, NULL, 0, NULL };

/* RELAYS */

int main(void)
{
    static service_call_t call;
    for (;;) {
        uint64_t interface = take_frame(&call.request, input, sizeof input);
        call.caller = 1;
        call.input = input;
        call.input_bytes = sizeof input;
        call.room = own_room;
        call.room_bytes = sizeof own_room;
        call.output = output;
        call.output_bytes = sizeof output;
        status = SERVICE_OK;
        if (dispatch(interface, &call) == SERVICE_KEPT)
            abort();
        send_frame(DONE, &call.answer, 0);
    }
}
