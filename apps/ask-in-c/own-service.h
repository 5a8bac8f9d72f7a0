/* Made by baton-idl from the interfaces' WIT files. Change those instead. */
#ifndef STUBS_EXAMPLE_OWN_SERVICE_H
#define STUBS_EXAMPLE_OWN_SERVICE_H

#include <service.h>

/* A board, to which tasks pin notes for each other. */

/* Why not. */
typedef enum {
    OWN_SERVICE_TROUBLE_NO_NOTE, /* There is no note of that number, or it is somebody else's. */
    OWN_SERVICE_TROUBLE_TOO_MANY, /* The caller's task has pinned as many as one may. */
    OWN_SERVICE_TROUBLE_NOT_ALLOWED, /* The caller's description does not use this service. */
} own_service_trouble_t;

static inline void service_put_own_service_trouble(service_out_t *out, own_service_trouble_t value)
{
    service_put_word(out, (uint64_t)value);
}

static inline own_service_trouble_t service_get_own_service_trouble(service_in_t *in)
{
    return (own_service_trouble_t)service_get_up_to(in, 2);
}

#ifndef SERVICE_RESULT_U32_OWN_SERVICE_TROUBLE
#define SERVICE_RESULT_U32_OWN_SERVICE_TROUBLE
typedef struct {
    bool is_err;
    union {
        uint32_t ok;
        own_service_trouble_t err;
    } as;
} service_result_u32_own_service_trouble_t;

static inline void service_put_result_u32_own_service_trouble(service_out_t *out, service_result_u32_own_service_trouble_t value)
{
    service_put_word(out, (uint64_t)value.is_err);
    switch ((unsigned)value.is_err) {
        case 0:
            service_put_word(out, value.as.ok);
            break;
        case 1:
            service_put_own_service_trouble(out, value.as.err);
            break;
        default:
            out->failed = true;
    }
}

static inline service_result_u32_own_service_trouble_t service_get_result_u32_own_service_trouble(service_in_t *in)
{
    service_result_u32_own_service_trouble_t value;
    memset(&value, 0, sizeof value);
    value.is_err = (bool)service_get_up_to(in, 1);
    switch ((unsigned)value.is_err) {
        case 0:
            value.as.ok = (uint32_t)service_get_up_to(in, UINT32_MAX);
            break;
        case 1:
            value.as.err = service_get_own_service_trouble(in);
            break;
        default:
            in->failed = true;
    }
    return value;
}
#endif

#ifndef SERVICE_RESULT_STRING_OWN_SERVICE_TROUBLE
#define SERVICE_RESULT_STRING_OWN_SERVICE_TROUBLE
typedef struct {
    bool is_err;
    union {
        service_string_t ok;
        own_service_trouble_t err;
    } as;
} service_result_string_own_service_trouble_t;

static inline void service_put_result_string_own_service_trouble(service_out_t *out, service_result_string_own_service_trouble_t value)
{
    service_put_word(out, (uint64_t)value.is_err);
    switch ((unsigned)value.is_err) {
        case 0:
            service_put_string(out, value.as.ok);
            break;
        case 1:
            service_put_own_service_trouble(out, value.as.err);
            break;
        default:
            out->failed = true;
    }
}

static inline service_result_string_own_service_trouble_t service_get_result_string_own_service_trouble(service_in_t *in)
{
    service_result_string_own_service_trouble_t value;
    memset(&value, 0, sizeof value);
    value.is_err = (bool)service_get_up_to(in, 1);
    switch ((unsigned)value.is_err) {
        case 0:
            value.as.ok = service_get_string(in);
            break;
        case 1:
            value.as.err = service_get_own_service_trouble(in);
            break;
        default:
            in->failed = true;
    }
    return value;
}
#endif

#ifndef SERVICE_RESULT_VOID_OWN_SERVICE_TROUBLE
#define SERVICE_RESULT_VOID_OWN_SERVICE_TROUBLE
typedef struct {
    bool is_err;
    union {
        own_service_trouble_t err;
    } as;
} service_result_void_own_service_trouble_t;

static inline void service_put_result_void_own_service_trouble(service_out_t *out, service_result_void_own_service_trouble_t value)
{
    service_put_word(out, (uint64_t)value.is_err);
    switch ((unsigned)value.is_err) {
        case 0:
            service_put_zeros(out, 1);
            break;
        case 1:
            service_put_own_service_trouble(out, value.as.err);
            break;
        default:
            out->failed = true;
    }
}

static inline service_result_void_own_service_trouble_t service_get_result_void_own_service_trouble(service_in_t *in)
{
    service_result_void_own_service_trouble_t value;
    memset(&value, 0, sizeof value);
    value.is_err = (bool)service_get_up_to(in, 1);
    switch ((unsigned)value.is_err) {
        case 0:
            service_skip(in, 1);
            break;
        case 1:
            value.as.err = service_get_own_service_trouble(in);
            break;
        default:
            in->failed = true;
    }
    return value;
}
#endif

/* What requests are called: the hashes of their functions, types included. */
#define OWN_SERVICE_LABEL_PIN 0x5f419363UL
#define OWN_SERVICE_LABEL_READ 0x770814cbUL
#define OWN_SERVICE_LABEL_TAKE_DOWN 0x45f8fcf4UL

static const service_function_t own_service__functions[] = {
    { OWN_SERVICE_LABEL_PIN, "pin" },
    { OWN_SERVICE_LABEL_READ, "read" },
    { OWN_SERVICE_LABEL_TAKE_DOWN, "take-down" },
};

/* `example:own-service/own-service@0.1.0`. */
static const service_interface_t own_service_interface = {
    "example:own-service/own-service", 0xee09f50c0a2d1304UL, 0x10000UL,
    3, own_service__functions,
};

/* Pins a note; its number. */
static inline service_error_t own_service_pin(const service_client_t *server, service_string_t text, service_result_u32_own_service_trouble_t *result)
{
    const service_limits_t limits = { SERVICE_NEVER, SERVICE_NEVER };
    service_message_t message;
    service_out_t out = service_begin(&message, OWN_SERVICE_LABEL_PIN, 1, NULL, 0);
    service_at_most(&out.failed, text.len, 600);
    service_put_word(&out, text.len);
    if (out.failed) {
        return SERVICE_TOO_LONG;
    }
    message.string = text.at != NULL ? (const void *)text.at : "";
    message.string_bytes = text.len;
    service_error_t error = server->call(server, &message, NULL, 0, limits);
    service_in_t in;
    if (error == SERVICE_OK) {
        error = service_answered(&message);
    }
    if (error != SERVICE_OK) {
        return error;
    }
    in = service_read_words(&message, 2);
    if (in.failed) {
        return SERVICE_BAD_ANSWER;
    }
    *result = service_get_result_u32_own_service_trouble(&in);
    return service_is_read(&in, 0) ? SERVICE_OK : SERVICE_BAD_ANSWER;
}

/* What a note says. */
static inline service_error_t own_service_read(const service_client_t *server, uint32_t number, service_result_string_own_service_trouble_t *result, void *room, size_t room_bytes)
{
    const service_limits_t limits = { SERVICE_NEVER, SERVICE_NEVER };
    service_message_t message;
    service_out_t out = service_begin(&message, OWN_SERVICE_LABEL_READ, 1, NULL, 0);
    service_put_word(&out, number);
    if (out.failed) {
        return SERVICE_TOO_LONG;
    }
    service_error_t error = server->call(server, &message, room, room_bytes, limits);
    service_in_t in;
    if (error == SERVICE_OK) {
        error = service_answered(&message);
    }
    if (error != SERVICE_OK) {
        return error;
    }
    in = service_read_string(&message, 2, room, room_bytes);
    if (in.failed) {
        return SERVICE_BAD_ANSWER;
    }
    *result = service_get_result_string_own_service_trouble(&in);
    if (!(*result).is_err) { service_at_most(&in.failed, (*result).as.ok.len, 600); }
    return service_is_read(&in, 0) ? SERVICE_OK : SERVICE_BAD_ANSWER;
}

/* Takes a note of the caller's task down. */
static inline service_error_t own_service_take_down(const service_client_t *server, uint32_t number, service_result_void_own_service_trouble_t *result)
{
    const service_limits_t limits = { SERVICE_NEVER, SERVICE_NEVER };
    service_message_t message;
    service_out_t out = service_begin(&message, OWN_SERVICE_LABEL_TAKE_DOWN, 1, NULL, 0);
    service_put_word(&out, number);
    if (out.failed) {
        return SERVICE_TOO_LONG;
    }
    service_error_t error = server->call(server, &message, NULL, 0, limits);
    service_in_t in;
    if (error == SERVICE_OK) {
        error = service_answered(&message);
    }
    if (error != SERVICE_OK) {
        return error;
    }
    in = service_read_words(&message, 2);
    if (in.failed) {
        return SERVICE_BAD_ANSWER;
    }
    *result = service_get_result_void_own_service_trouble(&in);
    return service_is_read(&in, 0) ? SERVICE_OK : SERVICE_BAD_ANSWER;
}

/* Bytes of the longest string of a request, that results refer to, of an answer's string. */
#define OWN_SERVICE_INPUT 600
#define OWN_SERVICE_ROOM 600
#define OWN_SERVICE_OUTPUT 600

/* What a server of this interface does; every function has to be there. Anybody who can send
 * it a message may call it: call->caller says who. `self` is the server's own. */
typedef struct {
    /* Pins a note; its number. */
    void (*pin)(void *self, service_call_t *call, service_string_t text, service_result_u32_own_service_trouble_t *result);
    /* What a note says. */
    void (*read)(void *self, service_call_t *call, uint32_t number, service_result_string_own_service_trouble_t *result);
    /* Takes a note of the caller's task down. */
    void (*take_down)(void *self, service_call_t *call, uint32_t number, service_result_void_own_service_trouble_t *result);
} own_service_server_t;

static inline service_outcome_t own_service__answer_pin(service_call_t *call, service_result_u32_own_service_trouble_t result)
{
    service_out_t out = service_begin(&call->answer, SERVICE_LABEL_OK, 2, NULL, 0);
    service_put_result_u32_own_service_trouble(&out, result);
    if (out.failed) {
        return service_refuse(call, SERVICE_LABEL_TOO_LONG);
    }
    return SERVICE_ANSWERED;
}

static inline service_outcome_t own_service__serve_pin(const own_service_server_t *server, void *self, service_call_t *call)
{
    service_in_t in = service_read_string(&call->request, 1, call->input, call->input_bytes);
    service_string_t text;
    service_result_u32_own_service_trouble_t result;
    if (in.failed) {
        return service_refuse(call, SERVICE_LABEL_MALFORMED);
    }
    text = service_get_string(&in);
    service_at_most(&in.failed, text.len, 600);
    if (!service_is_read(&in, 0)) {
        return service_refuse(call, SERVICE_LABEL_MALFORMED);
    }
    memset(&result, 0, sizeof result);
    server->pin(self, call, text, &result);
    return own_service__answer_pin(call, result);
}

static inline service_outcome_t own_service__answer_read(service_call_t *call, service_result_string_own_service_trouble_t result)
{
    service_out_t out = service_begin(&call->answer, SERVICE_LABEL_OK, 2, call->output, call->output_bytes);
    service_put_result_string_own_service_trouble(&out, result);
    if (out.failed) {
        return service_refuse(call, SERVICE_LABEL_TOO_LONG);
    }
    service_end_string(&call->answer, &out, call->output);
    return SERVICE_ANSWERED;
}

static inline service_outcome_t own_service__serve_read(const own_service_server_t *server, void *self, service_call_t *call)
{
    service_in_t in = service_read_words(&call->request, 1);
    uint32_t number;
    service_result_string_own_service_trouble_t result;
    if (in.failed) {
        return service_refuse(call, SERVICE_LABEL_MALFORMED);
    }
    number = (uint32_t)service_get_up_to(&in, UINT32_MAX);
    if (!service_is_read(&in, 0)) {
        return service_refuse(call, SERVICE_LABEL_MALFORMED);
    }
    memset(&result, 0, sizeof result);
    server->read(self, call, number, &result);
    return own_service__answer_read(call, result);
}

static inline service_outcome_t own_service__answer_take_down(service_call_t *call, service_result_void_own_service_trouble_t result)
{
    service_out_t out = service_begin(&call->answer, SERVICE_LABEL_OK, 2, NULL, 0);
    service_put_result_void_own_service_trouble(&out, result);
    if (out.failed) {
        return service_refuse(call, SERVICE_LABEL_TOO_LONG);
    }
    return SERVICE_ANSWERED;
}

static inline service_outcome_t own_service__serve_take_down(const own_service_server_t *server, void *self, service_call_t *call)
{
    service_in_t in = service_read_words(&call->request, 1);
    uint32_t number;
    service_result_void_own_service_trouble_t result;
    if (in.failed) {
        return service_refuse(call, SERVICE_LABEL_MALFORMED);
    }
    number = (uint32_t)service_get_up_to(&in, UINT32_MAX);
    if (!service_is_read(&in, 0)) {
        return service_refuse(call, SERVICE_LABEL_MALFORMED);
    }
    memset(&result, 0, sizeof result);
    server->take_down(self, call, number, &result);
    return own_service__answer_take_down(call, result);
}

/* Answers call->request by calling the server; the answer is in call->answer. */
static inline service_outcome_t own_service_dispatch(const own_service_server_t *server, void *self, service_call_t *call)
{
    call->room_used = 0;
    switch (call->request.tag >> 16) {
        case OWN_SERVICE_LABEL_PIN:
            return own_service__serve_pin(server, self, call);
        case OWN_SERVICE_LABEL_READ:
            return own_service__serve_read(server, self, call);
        case OWN_SERVICE_LABEL_TAKE_DOWN:
            return own_service__serve_take_down(server, self, call);
        case SERVICE_LABEL_BIND:
            return service_describe(&own_service_interface, call);
        default:
            return service_refuse(call, SERVICE_LABEL_UNKNOWN);
    }
}

#endif
