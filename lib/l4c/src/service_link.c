/*
 * service_link.c - a client's calls as procedure calls, and by messages what can't go that way.
 *
 * The message stays what it is (docs/decisions/0065): its tag is the procedure's number, six words are
 * in registers, further ones and the string on the A-stack.  The server can write an A-stack at any
 * time: each word is read once, and strings are copied out.
 */
#include "lrpc.h"
#include <service_link.h>
#include <system.h>

#define UNTYPED(tag) ((tag) & 0x3F)
#define TYPED(tag) ((tag) >> 6 & 0x3F)
#define FLAGS 0xF000UL
/* Nothing came of a procedure call: the request goes by a message. */
#define SERVICE_BY_MESSAGE ((service_error_t)-1)
/* How long a server that has ended may take until it is there again, and how often it is looked for. */
#define PATIENCE_MS 1000
#define PAUSE_MS 5

/* The pages for A-stacks that are somebody's, a bit each. */
static L4_Word_t taken;

static volatile L4_Word_t *take_place(void)
{
    L4_Word_t before = __atomic_load_n(&taken, __ATOMIC_RELAXED), index;
    do {
        index = before == ~0UL ? LRPC_A_STACK_PAGES : (L4_Word_t)__builtin_ctzl(~before);
        if (index >= LRPC_A_STACK_PAGES)
            return NULL;
    } while (!__atomic_compare_exchange_n(&taken, &before, before | 1UL << index, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return (volatile L4_Word_t *)(LRPC_A_STACKS + index * LRPC_A_STACK_BYTES);
}

static void leave_place(volatile L4_Word_t *place)
{
    L4_Word_t index = ((L4_Word_t)place - LRPC_A_STACKS) / LRPC_A_STACK_BYTES;
    __atomic_fetch_and(&taken, ~(1UL << index), __ATOMIC_RELAXED);
}

/* Asks the server for a binding; there is none. */
static void bind(service_link_t *link)
{
    L4_Word_t mr[8] = { 0, 0, 0, 0, LRPC_A_STACK_BYTES, 0, link->client.thread, 0 }, token;
    volatile L4_Word_t *place = take_place();
    if (place == NULL)
        return;
    token = lrpc_trap(LRPC_BIND, (L4_Word_t)place, 1, mr);
    if (mr[1] != 1) {
        leave_place(place);
        return;
    }
    link->token = token;
    link->a_stack = place;
}

/* Calls go by messages until there is another binding. */
static void give_up(service_link_t *link)
{
    L4_Word_t mr[8] = { 0 };
    link->is_to_bind = false;
    if (link->a_stack == NULL)
        return;
    lrpc_trap(LRPC_CONTROL, LRPC_REVOKE, link->token, mr);
    /* Only now the place is free. */
    leave_place(link->a_stack);
    link->a_stack = NULL;
    link->token = 0;
}

/* Bytes of the string that is the last item of `message`; SIZE_MAX: it has none. */
static size_t string_bytes(const service_message_t *message)
{
    size_t words = UNTYPED(message->tag);
    if (TYPED(message->tag) != 2 || words + 2 > SERVICE_WORDS
        || (message->words[words] & 0x3FF) != 0)
        return SIZE_MAX;
    return message->words[words] >> 10;
}

/* Bytes to the A-stack, behind the words, and from there; whole words, the last may be cut. */
static void put_string(service_link_t *link, const uint8_t *from, size_t bytes)
{
    volatile L4_Word_t *to = link->a_stack + LRPC_WORD_BYTES / 8;
    while (bytes != 0) {
        size_t part = bytes < 8 ? bytes : 8;
        L4_Word_t word = 0;
        memcpy(&word, from, part);
        *to++ = word;
        from += part;
        bytes -= part;
    }
}

static void take_string(const service_link_t *link, uint8_t *to, size_t bytes)
{
    const volatile L4_Word_t *from = link->a_stack + LRPC_WORD_BYTES / 8;
    while (bytes != 0) {
        size_t part = bytes < 8 ? bytes : 8;
        L4_Word_t word = *from++;
        memcpy(to, &word, part);
        to += part;
        bytes -= part;
    }
}

/* The request into registers and onto the A-stack; false: it has no place there. */
static bool put(service_link_t *link, const service_message_t *message, L4_Word_t mr[8])
{
    size_t words = UNTYPED(message->tag), index;
    mr[0] = message->tag;
    for (index = 0; index < words; index++) {
        if (index < LRPC_THERE)
            mr[index + 1] = message->words[index];
        else
            link->a_stack[index] = message->words[index];
    }
    if (message->string == NULL)
        return true;
    if (message->string_bytes > LRPC_STRING_BYTES || words + 2 > SERVICE_WORDS)
        return false;
    mr[0] |= 2UL << 6;
    for (index = words; index < words + 2; index++) {
        L4_Word_t word = index == words ? message->string_bytes << 10 : 0;
        if (index < LRPC_THERE)
            mr[index + 1] = word;
        else
            link->a_stack[index] = word;
    }
    put_string(link, message->string, message->string_bytes);
    return true;
}

/* What came back, items included. */
static void take(const service_link_t *link, service_message_t *message, const L4_Word_t mr[8],
                 void *room, size_t bytes)
{
    size_t words = UNTYPED(mr[0]) + TYPED(mr[0]), index, length;
    if (words > SERVICE_WORDS)
        words = SERVICE_WORDS;
    message->tag = mr[0] & ~FLAGS;
    message->string = NULL;
    message->string_bytes = 0;
    for (index = 0; index < words; index++)
        message->words[index] = index < LRPC_BACK ? mr[index + 1] : link->a_stack[index];
    length = string_bytes(message);
    if (length <= bytes && length <= LRPC_STRING_BYTES)
        take_string(link, room, length);
}

/* Over the binding, which there is. */
static service_error_t call_procedure(service_link_t *link, service_message_t *message, void *room,
                                      size_t bytes)
{
    L4_Word_t mr[8] = { 0 }, status;
    if (!put(link, message, mr))
        return SERVICE_BY_MESSAGE;
    status = lrpc_trap(LRPC_CALL, link->token, 0, mr);
    if (status == LRPC_DONE) {
        take(link, message, mr, room, bytes);
        return SERVICE_OK;
    }
    if (status == LRPC_NO_HOST || status == LRPC_IN_USE)
        return SERVICE_BY_MESSAGE;
    give_up(link);
    link->is_to_bind = true;
    return status == LRPC_NO_BINDING || status == LRPC_NO_PROCEDURE ? SERVICE_BY_MESSAGE
                                                                    : SERVICE_LOST;
}

/* Whether the server with the link's name is another one now; it is waited for. */
static bool look_up_again(service_link_t *link)
{
    service_link_t other;
    unsigned round;
    for (round = 0; round < PATIENCE_MS / PAUSE_MS; round++) {
        if (service_link_find(&other, link->name, 0) == SERVICE_OK
            && other.client.thread != link->client.thread) {
            give_up(link);
            link->client.thread = other.client.thread;
            if (link->wants_calls)
                bind(link);
            return true;
        }
        L4_Sleep(L4_TimePeriod(PAUSE_MS * 1000));
    }
    return false;
}

/* Whether a failed message has reached nobody, and could not. */
static bool reached_nobody(void)
{
    L4_Word_t code = L4_ErrorCode();
    return L4_IpcErrorKind(code) == L4_IpcErrNonExisting && !L4_IpcErrorInReceive(code);
}

static service_client_t by_messages(const service_link_t *link)
{
    L4_ThreadId_t server;
    server.raw = link->client.thread;
    return service_at(server);
}

static service_error_t call(const service_client_t *client, service_message_t *message, void *room,
                            size_t bytes, service_limits_t limits)
{
    /* A link hands out pointers to its first member. */
    service_link_t *link = (service_link_t *)client;
    service_client_t messages;
    service_error_t error;
    bool is_unlimited = limits.send_us == SERVICE_NEVER && limits.answer_us == SERVICE_NEVER;
    if (link->is_to_bind) {
        link->is_to_bind = false;
        bind(link);
    }
    if (is_unlimited && link->token != 0) {
        error = call_procedure(link, message, room, bytes);
        if (error != SERVICE_BY_MESSAGE)
            return error;
    }
    messages = by_messages(link);
    error = messages.call(&messages, message, room, bytes, limits);
    if (error != SERVICE_NO_SERVER || link->name == NULL || !reached_nobody()
        || !look_up_again(link))
        return error;
    messages = by_messages(link);
    return messages.call(&messages, message, room, bytes, limits);
}

static service_error_t send(const service_client_t *client, service_message_t *message,
                            service_limits_t limits)
{
    service_link_t *link = (service_link_t *)client;
    service_client_t messages = by_messages(link);
    service_error_t error = messages.send(&messages, message, limits);
    if (error != SERVICE_NO_SERVER || link->name == NULL || !reached_nobody()
        || !look_up_again(link))
        return error;
    messages = by_messages(link);
    return messages.send(&messages, message, limits);
}

static void offered(const service_client_t *client)
{
    service_link_take_calls((service_link_t *)client);
}

service_link_t service_link(L4_ThreadId_t server)
{
    service_link_t link = { { call, send, server.raw, offered }, NULL, 0, NULL, false, false };
    return link;
}

service_error_t service_link_find(service_link_t *link, const char *name, uint64_t patience_ms)
{
    service_client_t root = service_at(service_root());
    service_result_thread_common_refusal_t found;
    L4_ThreadId_t server;
    for (;;) {
        service_error_t error = names_lookup(&root, service_string(name), &found);
        if (error != SERVICE_OK)
            return error;
        if (!found.is_err)
            break;
        if (patience_ms < PAUSE_MS)
            return SERVICE_NO_SERVER;
        patience_ms -= PAUSE_MS;
        L4_Sleep(L4_TimePeriod(PAUSE_MS * 1000));
    }
    server.raw = found.as.ok;
    *link = service_link(server);
    link->name = name;
    return SERVICE_OK;
}

service_transport_t service_link_transport(const service_link_t *link)
{
    return link->token == 0 ? SERVICE_BY_MESSAGES : SERVICE_BY_CALLS;
}

void service_link_take_calls(service_link_t *link)
{
    link->wants_calls = true;
    if (link->token == 0)
        bind(link);
}

void service_link_take_messages(service_link_t *link)
{
    link->wants_calls = false;
    give_up(link);
}

void service_link_end(service_link_t *link)
{
    service_link_take_messages(link);
}
