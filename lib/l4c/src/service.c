/*
 * service.c - what generated stubs share: forms of messages, bindings, UTF-8.
 */
#include <service.h>
#include <stdio.h>

#define SHAPE 0xFFFUL
#define UNTYPED(tag) ((tag) & 0x3F)
#define TYPED(tag) ((tag) >> 6 & 0x3F)
/* Of a string item's first word: its kind, more pieces, substrings, more items. */
#define NOT_SIMPLE 0x3FFUL

const char *service_sentence(service_error_t error)
{
    switch (error) {
    case SERVICE_OK:
        return "the call has a result";
    case SERVICE_NO_SERVER:
        return "the server could not be reached, or did not answer in time";
    case SERVICE_UNKNOWN:
        return "the server does not know this function, or with other types; build both from one "
               "interface";
    case SERVICE_MALFORMED:
        return "the server says that the request makes no sense";
    case SERVICE_TOO_LONG:
        return "a text or list is longer than the interface or the room for it allows";
    case SERVICE_LOST:
        return "the server ended in the middle of the call; it may have been carried out";
    case SERVICE_BAD_ANSWER:
        break;
    }
    return "the server's answer makes no sense";
}

void *service_room(service_call_t *call, size_t bytes)
{
    uint8_t *at = call->room + call->room_used;
    if (bytes > call->room_bytes - call->room_used)
        return NULL;
    call->room_used += bytes;
    return at;
}

/* Bytes of a sequence by its first byte, and the least and largest second one; 0: no first byte. */
static unsigned sequence(uint8_t first, uint8_t *low, uint8_t *high)
{
    *low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    *high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    return first < 0x80                     ? 1
           : first >= 0xC2 && first <= 0xDF ? 2
           : first >= 0xE0 && first <= 0xEF ? 3
           : first >= 0xF0 && first <= 0xF4 ? 4
                                            : 0;
}

bool service_is_utf8(const uint8_t *at, size_t len)
{
    size_t next = 0;
    while (next < len) {
        uint8_t low, high;
        unsigned bytes = sequence(at[next], &low, &high), index;
        if (bytes == 0 || bytes > len - next)
            return false;
        for (index = 1; index < bytes; index++) {
            if (at[next + index] < low || at[next + index] > high)
                return false;
            low = 0x80;
            high = 0xBF;
        }
        next += bytes;
    }
    return true;
}

void service_end_inline(service_message_t *message, service_out_t *out)
{
    size_t used = (size_t)(out->body - (uint8_t *)message->words);
    memset(out->body, 0, -used & 7);
    message->tag = (message->tag & ~SHAPE) | (used + 7) / 8;
}

static service_in_t nothing(void)
{
    service_in_t in = { NULL, NULL, 0, true };
    return in;
}

service_in_t service_read_words(const service_message_t *message, size_t flat)
{
    service_in_t in = { (const uint8_t *)message->words, NULL, 0, false };
    return (message->tag & SHAPE) == flat ? in : nothing();
}

service_in_t service_read_inline(const service_message_t *message, size_t flat, size_t bound)
{
    service_in_t in = { (const uint8_t *)message->words, NULL, 0, false };
    size_t words = UNTYPED(message->tag);
    if (words < flat || TYPED(message->tag) != 0 || words - flat > (bound + 7) / 8)
        return nothing();
    in.body = in.words + 8 * flat;
    in.left = 8 * (words - flat) < bound ? 8 * (words - flat) : bound;
    return in;
}

service_in_t service_read_string(const service_message_t *message, size_t flat, const void *string,
                                 size_t room)
{
    service_in_t in = { (const uint8_t *)message->words, (const uint8_t *)string, 0, false };
    if ((message->tag & SHAPE) != (2UL << 6 | flat) || flat + 2 > SERVICE_WORDS
        || (message->words[flat] & NOT_SIMPLE) != 0)
        return nothing();
    in.left = message->words[flat] >> 10;
    return in.left <= room ? in : nothing();
}

service_error_t service_answered(const service_message_t *answer)
{
    switch (answer->tag >> 16) {
    case SERVICE_LABEL_OK:
        return SERVICE_OK;
    case SERVICE_LABEL_UNKNOWN:
        return SERVICE_UNKNOWN;
    case SERVICE_LABEL_MALFORMED:
        return SERVICE_MALFORMED;
    case SERVICE_LABEL_TOO_LONG:
        return SERVICE_TOO_LONG;
    case SERVICE_LABEL_LOST:
        return SERVICE_LOST;
    case SERVICE_LABEL_NOT_REACHED:
        return SERVICE_NO_SERVER;
    default:
        return SERVICE_BAD_ANSWER;
    }
}

service_error_t service_keep_inline(const service_message_t *answer, size_t flat, void *room,
                                    size_t bytes, service_in_t *in)
{
    size_t words = UNTYPED(answer->tag);
    if (words < flat || TYPED(answer->tag) != 0)
        return SERVICE_BAD_ANSWER;
    if (words - flat > bytes / 8 + (bytes % 8 != 0))
        return SERVICE_TOO_LONG;
    *in = service_read_inline(answer, flat, bytes);
    if (in->left != 0)
        memcpy(room, in->body, in->left);
    in->body = (const uint8_t *)room;
    return SERVICE_OK;
}

service_outcome_t service_refuse(service_call_t *call, uint64_t label)
{
    service_begin(&call->answer, label, 0, NULL, 0);
    return label == SERVICE_LABEL_UNKNOWN ? SERVICE_NOT_MINE : SERVICE_ANSWERED;
}

static const service_function_t *find(const service_interface_t *interface, uint64_t label)
{
    size_t index;
    for (index = 0; index < interface->count; index++)
        if (interface->functions[index].label == label)
            return &interface->functions[index];
    return NULL;
}

service_outcome_t service_describe(const service_interface_t *interface, service_call_t *call)
{
    const service_message_t *request = &call->request;
    size_t words = UNTYPED(request->tag), known = 2;
    service_out_t out;
    if (words < 2 || TYPED(request->tag) != 0)
        return service_refuse(call, SERVICE_LABEL_MALFORMED);
    if (request->words[0] != interface->id)
        return service_refuse(call, SERVICE_LABEL_UNKNOWN);
    while (known < words && find(interface, request->words[known]) != NULL)
        known++;
    out = service_begin(&call->answer, SERVICE_LABEL_OK, 2, NULL, 0);
    service_put_word(&out, interface->version);
    service_put_word(&out, known - 2);
    return SERVICE_ANSWERED;
}

static void say_version(char *to, size_t bytes, uint64_t version)
{
    snprintf(to, bytes, "%u.%u.%u", (unsigned)(version >> 32 & 0xFFFF),
             (unsigned)(version >> 16 & 0xFFFF), (unsigned)(version & 0xFFFF));
}

/* Says which function the server lacks; an answer that counts more than were asked for is none. */
static service_error_t lacking(const service_interface_t *interface, uint64_t label,
                               uint64_t version, char *why, size_t why_bytes)
{
    const service_function_t *function = find(interface, label);
    char ours[24], theirs[24];
    say_version(ours, sizeof ours, interface->version);
    say_version(theirs, sizeof theirs, version);
    snprintf(why, why_bytes,
             "the client was built for %s@%s, the server for %s@%s, which has no function `%s` of "
             "the same types; build both from one interface",
             interface->name, ours, interface->name, theirs, function ? function->name : "");
    return SERVICE_UNKNOWN;
}

service_error_t service_bind(const service_client_t *client, const service_interface_t *interface,
                             const uint64_t *uses, size_t count, char *why, size_t why_bytes)
{
    const service_limits_t limits = { SERVICE_NEVER, SERVICE_NEVER };
    size_t done = 0, part, index;
    bool offers = false;
    if (uses == NULL)
        count = interface->count;
    while (done < count) {
        service_message_t message;
        service_out_t out;
        service_error_t error;
        part = count - done < SERVICE_WORDS - 2 ? count - done : SERVICE_WORDS - 2;
        out = service_begin(&message, SERVICE_LABEL_BIND, 2 + part, NULL, 0);
        service_put_word(&out, interface->id);
        service_put_word(&out, interface->version);
        for (index = done; index < done + part; index++)
            service_put_word(&out, uses ? uses[index] : interface->functions[index].label);
        error = client->call(client, &message, NULL, 0, limits);
        if (error == SERVICE_OK)
            error = service_answered(&message);
        if (error == SERVICE_OK && (message.tag & SHAPE) != 2)
            error = SERVICE_BAD_ANSWER;
        if (error != SERVICE_OK) {
            if (error == SERVICE_UNKNOWN)
                snprintf(why, why_bytes, "the server does not serve %s", interface->name);
            else
                snprintf(why, why_bytes, "%s", service_sentence(error));
            return error;
        }
        if (message.words[1] < part) {
            index = done + message.words[1];
            return lacking(interface, uses ? uses[index] : interface->functions[index].label,
                           message.words[0], why, why_bytes);
        }
        done += part;
        offers = (message.words[0] & (SERVICE_OFFERS_CALLS | SERVICE_IS_FAR))
                 == SERVICE_OFFERS_CALLS;
    }
    if (offers && client->offered != NULL)
        client->offered(client);
    return SERVICE_OK;
}
