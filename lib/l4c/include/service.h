/*
 * service.h - what the stubs that `./baton idl --c` generates stand on.
 *
 * docs/services.md has the form of messages to the bit.  Nothing here allocates or knows
 * the kernel: service_ipc.h carries the messages, and tests carry them over a pipe.
 *
 * A function of a client returns a service_error_t and stores its result; texts and lists of a
 * result lie in the room that the caller gives.  What a server gets was checked: values of
 * their types, within their bounds, which live until it returns.
 */
#ifndef SERVICE_H
#define SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Words of a message behind its tag. */
#define SERVICE_WORDS 63
/* The label of a request to bind, and the labels of answers. */
#define SERVICE_LABEL_BIND 0x3FFFFFFFUL
#define SERVICE_LABEL_OK 0UL
#define SERVICE_LABEL_UNKNOWN 2UL
#define SERVICE_LABEL_MALFORMED 3UL
#define SERVICE_LABEL_TOO_LONG 4UL
#define SERVICE_LABEL_LOST 5UL
#define SERVICE_LABEL_NOT_REACHED 6UL
/* Beside the version in an answer to it: there are procedure calls, too. */
#define SERVICE_OFFERS_CALLS (1UL << 63)
#define SERVICE_IS_FAR (1UL << 62)
/* A time without an end, and no limit for a string. */
#define SERVICE_NEVER UINT64_MAX

/* Why a call has no result.  What the interface itself may answer is not among these. */
typedef enum {
    SERVICE_OK,         /* it has one */
    SERVICE_NO_SERVER,  /* the message did not arrive, or no answer came */
    SERVICE_UNKNOWN,    /* the server has no such function, or not of this type */
    SERVICE_MALFORMED,  /* the server says that the request makes no sense */
    SERVICE_TOO_LONG,   /* longer than the interface, or the room for it, allows */
    SERVICE_BAD_ANSWER, /* the answer is none of this function */
    SERVICE_LOST,       /* the server ended in the call: it may have been carried out, or not */
} service_error_t;

/* The error as a sentence. */
const char *service_sentence(service_error_t error);

/* A text in UTF-8, without an end mark; bytes; a thread's or interrupt's global id. */
typedef struct {
    const char *at;
    size_t len;
} service_string_t;

typedef struct {
    const uint8_t *at;
    size_t len;
} service_bytes_t;

typedef uint64_t service_thread_t;

/* The text of a string constant or variable. */
static inline service_string_t service_string(const char *text)
{
    service_string_t string = { text, strlen(text) };
    return string;
}

/* A message: label << 16, and words.  Going out, its string is told beside it; come in, the item
 * that stands for it is behind the words. */
typedef struct {
    uint64_t tag;
    uint64_t words[SERVICE_WORDS];
    const void *string; /* NULL: it has none */
    size_t string_bytes;
} service_message_t;

/* How long a call may take, in microseconds: until the server takes it, and to its answer. */
typedef struct {
    uint64_t send_us;
    uint64_t answer_us;
} service_limits_t;

/* A server, as its clients reach it. */
typedef struct service_client service_client_t;
struct service_client {
    /* Sends *message; the answer replaces it, its string goes into `room`. */
    service_error_t (*call)(const service_client_t *client, service_message_t *message,
                            void *room, size_t bytes, service_limits_t limits);
    /* Sends *message, to which there is no answer. */
    service_error_t (*send)(const service_client_t *client, service_message_t *message,
                            service_limits_t limits);
    service_thread_t thread;
    /* The server, which has just been asked whether it fits, can be reached by procedure calls,
     * too.  NULL: nobody wants to know. */
    void (*offered)(const service_client_t *client);
};

/* One request, and all that a server's loop keeps for it. */
typedef struct {
    service_thread_t caller;   /* as the kernel says */
    service_message_t request;
    const uint8_t *input;      /* its string */
    size_t input_bytes;
    uint8_t *room;             /* for what results refer to and the server does not keep */
    size_t room_bytes;
    size_t room_used;
    service_message_t answer;
    uint8_t *output;           /* for its string */
    size_t output_bytes;
} service_call_t;

/* What a request comes to. */
typedef enum {
    SERVICE_ANSWERED, /* the answer goes back */
    SERVICE_KEPT,     /* nothing goes back: none is expected, or it comes later */
    SERVICE_NOT_MINE, /* the interface has no such function; the answer says so */
} service_outcome_t;

/* `bytes` of the room for results; NULL if there are not as many left. */
void *service_room(service_call_t *call, size_t bytes);

/* An interface, as its stubs know it. */
typedef struct {
    uint64_t label;
    const char *name;
} service_function_t;

typedef struct {
    const char *name; /* package and name */
    uint64_t id;      /* the hash of it */
    uint64_t version; /* major << 32 | minor << 16 | patch */
    size_t count;
    const service_function_t *functions;
} service_interface_t;

/* Asks the server for the functions `uses` (all, if NULL).  If it has not all of them, the
 * sentence that says so, with both sides in it, is in `why`. */
service_error_t service_bind(const service_client_t *client, const service_interface_t *interface,
                             const uint64_t *uses, size_t count, char *why, size_t why_bytes);

/* The server's side of it. */
service_outcome_t service_describe(const service_interface_t *interface, service_call_t *call);

/* Answers with nothing but a label. */
service_outcome_t service_refuse(service_call_t *call, uint64_t label);

/* Values that are being written: flat words, and the body behind them. */
typedef struct {
    uint8_t *words;
    uint8_t *body;
    size_t left;
    bool failed;
} service_out_t;

/* Values that are being read. */
typedef struct {
    const uint8_t *words;
    const uint8_t *body;
    size_t left;
    bool failed;
} service_in_t;

static inline void service_put_word(service_out_t *out, uint64_t word)
{
    memcpy(out->words, &word, 8);
    out->words += 8;
}

static inline void service_put_zeros(service_out_t *out, size_t words)
{
    memset(out->words, 0, 8 * words);
    out->words += 8 * words;
}

/* Room in the body; NULL, and the whole has failed, if there is none. */
static inline uint8_t *service_put_room(service_out_t *out, size_t bytes)
{
    uint8_t *at = out->body;
    if (out->failed || bytes > out->left) {
        out->failed = true;
        return NULL;
    }
    out->body += bytes;
    out->left -= bytes;
    return at;
}

static inline void service_put_contents(service_out_t *out, const void *from, size_t bytes)
{
    uint8_t *at = service_put_room(out, bytes);
    if (at != NULL && bytes != 0)
        memcpy(at, from, bytes);
}

static inline uint64_t service_get_word(service_in_t *in)
{
    uint64_t word;
    memcpy(&word, in->words, 8);
    in->words += 8;
    return word;
}

static inline void service_skip(service_in_t *in, size_t words)
{
    in->words += 8 * words;
}

/* The next bytes of the body; NULL, and the whole has failed, if there are fewer. */
static inline const uint8_t *service_get_contents(service_in_t *in, uint64_t bytes)
{
    const uint8_t *at = in->body;
    if (in->failed || bytes > in->left) {
        in->failed = true;
        return NULL;
    }
    in->body += bytes;
    in->left -= bytes;
    return at;
}

/* A value that is at most `max`. */
static inline uint64_t service_get_up_to(service_in_t *in, uint64_t max)
{
    uint64_t word = service_get_word(in);
    if (word > max) {
        in->failed = true;
        return 0;
    }
    return word;
}

/* A signed value of so many bits. */
static inline int64_t service_get_signed(service_in_t *in, unsigned bits)
{
    int64_t word = (int64_t)service_get_word(in), last = INT64_MAX >> (64 - bits);
    if (word < -last - 1 || word > last) {
        in->failed = true;
        return 0;
    }
    return word;
}

/* Bits of which none is outside of `all`. */
static inline uint64_t service_get_flags(service_in_t *in, uint64_t all)
{
    uint64_t word = service_get_word(in);
    if ((word & ~all) != 0) {
        in->failed = true;
        return 0;
    }
    return word;
}

/* Whether a number is a character of Unicode, and bytes are UTF-8. */
static inline bool service_is_char(uint64_t value)
{
    return value <= 0x10FFFF && !(value >= 0xD800 && value <= 0xDFFF);
}

bool service_is_utf8(const uint8_t *at, size_t len);

static inline uint32_t service_get_char(service_in_t *in)
{
    uint64_t word = service_get_word(in);
    if (!service_is_char(word)) {
        in->failed = true;
        return 0;
    }
    return (uint32_t)word;
}

static inline void service_put_f32(service_out_t *out, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    service_put_word(out, bits);
}

static inline void service_put_f64(service_out_t *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, 8);
    service_put_word(out, bits);
}

static inline float service_get_f32(service_in_t *in)
{
    uint32_t bits = (uint32_t)service_get_up_to(in, UINT32_MAX);
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline double service_get_f64(service_in_t *in)
{
    uint64_t bits = service_get_word(in);
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

static inline void service_put_string(service_out_t *out, service_string_t value)
{
    service_put_word(out, value.len);
    service_put_contents(out, value.at, value.len);
}

static inline void service_put_bytes(service_out_t *out, service_bytes_t value)
{
    service_put_word(out, value.len);
    service_put_contents(out, value.at, value.len);
}

static inline service_bytes_t service_get_bytes(service_in_t *in)
{
    uint64_t len = service_get_word(in);
    service_bytes_t value = { service_get_contents(in, len), 0 };
    value.len = in->failed ? 0 : len;
    return value;
}

static inline service_string_t service_get_string(service_in_t *in)
{
    service_bytes_t bytes = service_get_bytes(in);
    service_string_t value = { (const char *)bytes.at, bytes.len };
    if (!service_is_utf8(bytes.at, bytes.len))
        in->failed = true;
    return value;
}

/* Fails if a length is beyond its bound. */
static inline void service_at_most(bool *failed, size_t len, size_t bound)
{
    if (len > bound)
        *failed = true;
}

/*
 * Whole messages.  `flat` words, then, by the function's form, nothing, a body in words of at
 * most `bound` bytes, or a string.
 */
static inline service_out_t service_begin(service_message_t *message, uint64_t label, size_t flat,
                                          void *body, size_t bound)
{
    service_out_t out = { (uint8_t *)message->words, (uint8_t *)body, bound, false };
    message->tag = label << 16 | flat;
    message->string = NULL;
    message->string_bytes = 0;
    return out;
}

/* Counts the words of a body that was written behind the flat ones, and fills up the last. */
void service_end_inline(service_message_t *message, service_out_t *out);

/* What was written to `body` goes as the message's string. */
static inline void service_end_string(service_message_t *message, service_out_t *out, void *body)
{
    message->string = body;
    message->string_bytes = (size_t)(out->body - (uint8_t *)body);
}

/* The values in a message that came; if it has not this form, the reading has failed. */
service_in_t service_read_words(const service_message_t *message, size_t flat);
service_in_t service_read_inline(const service_message_t *message, size_t flat, size_t bound);
service_in_t service_read_string(const service_message_t *message, size_t flat, const void *string,
                                 size_t room);

/* Whether all was read, and all of it was right. */
static inline bool service_is_read(const service_in_t *in, size_t may_be_left)
{
    return !in->failed && in->left <= may_be_left;
}

/* What an answer's label says. */
service_error_t service_answered(const service_message_t *answer);

/* Copies the body of an answer out of its words, where the next call's go. */
service_error_t service_keep_inline(const service_message_t *answer, size_t flat, void *room,
                                    size_t bytes, service_in_t *in);

#ifdef __cplusplus
}
#endif

#endif
