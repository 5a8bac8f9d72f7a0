/*
 * services-in-c - the service of tests/services, asked by stubs in C over messages and procedure calls, and
 * what a link sees of a server that ends.  `carried.in` is what `./baton idl tests/services/wit --c` prints.
 */
#include <service_link.h>
#include <stdio.h>
#include <string.h>
#include <system.h>
#include "carried.in"

#define PATIENCE_MS 2000
#define ENSURE(right, otherwise)  \
    do {                          \
        if (!(right))             \
            return otherwise;     \
    } while (0)

static uint8_t room[CARRIED_ROOM];

/* The sentences say what went wrong; NULL: nothing. */
static void show(const char *name, const char *why)
{
    if (why == NULL)
        printf("test services_in_c::%s ... ok\n", name);
    else
        printf("test services_in_c::%s ... FAILED: %s\n", name, why);
}

/* Functions of words, and few others. */
static const char *some(const service_client_t *server)
{
    carried_wide_t wide = { 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 }, other;
    service_option_string_t name;
    uint32_t sum;
    uint64_t number;
    ENSURE(carried_null(server) == SERVICE_OK, "null fails");
    ENSURE(carried_add(server, 3, 4, &sum) == SERVICE_OK && sum == 7, "a sum is wrong");
    ENSURE(carried_seven(server, 1, 2, 3, 4, 5, 6, 7, &number) == SERVICE_OK && number == 1234567,
           "seven words are others");
    ENSURE(carried_widen(server, 5, &other) == SERVICE_OK
               && memcmp(&wide, &other, sizeof wide) == 0,
           "ten words of an answer are others");
    ENSURE(carried_narrow(server, wide, 1000, &number) == SERVICE_OK && number == 1095,
           "eleven words of a request are others");
    ENSURE(carried_perhaps(server, false, CARRIED_KIND_SMALL, &name, room, sizeof room)
                   == SERVICE_OK
               && !name.some,
           "nothing is something");
    ENSURE(carried_perhaps(server, true, CARRIED_KIND_LARGE, &name, room, sizeof room)
                   == SERVICE_OK
               && name.some && name.value.len == 5 && memcmp(name.value.at, "large", 5) == 0,
           "a name is another");
    return NULL;
}

/* What has a text or bytes, with every length. */
static const char *all(const service_client_t *server)
{
    static uint8_t bytes[1000];
    service_string_t text = { (const char *)bytes, 0 }, string;
    service_bytes_t part = { bytes, 0 }, long_one;
    const char *why = some(server);
    size_t index;
    uint32_t count;
    ENSURE(why == NULL, why);
    for (index = 0; index < sizeof bytes; index++)
        bytes[index] = (uint8_t)('a' + index % 23);
    for (text.len = 0; text.len <= 200; text.len++) {
        ENSURE(carried_echo_text(server, text, &string, room, sizeof room) == SERVICE_OK
                   && string.len == text.len && memcmp(string.at, text.at, text.len) == 0,
               "a text is not the same again");
        ENSURE(carried_count(server, 'a', text, &count) == SERVICE_OK
                   && count == (text.len + 22) / 23,
               "a text is counted wrong");
        ENSURE(text.len == 0
                   || carried_echo_text(server, text, &string, room, text.len - 1) != SERVICE_OK,
               "no room is enough");
    }
    for (part.len = 0; part.len <= sizeof bytes; part.len += 17)
        ENSURE(carried_echo_long(server, part, &long_one, room, sizeof room) == SERVICE_OK
                   && long_one.len == part.len && memcmp(long_one.at, bytes, part.len) == 0,
               "bytes are not the same again");
    for (text.len = 0; text.len <= 100; text.len++)
        ENSURE(carried_lengthen(server, text, &long_one, room, sizeof room) == SERVICE_OK
                   && long_one.len == 10 * text.len
                   && (text.len == 0 || memcmp(long_one.at + 9 * text.len, bytes, text.len) == 0),
               "a text is lengthened wrong");
    text.len = 100;
    ENSURE(carried_lengthen(server, text, &long_one, room, 999) != SERVICE_OK,
           "a string is longer than its room");
    return NULL;
}

static const char *by_messages(void)
{
    service_link_t link;
    ENSURE(service_link_find(&link, "carried", PATIENCE_MS) == SERVICE_OK,
           "the server cannot be found");
    return all(&link.client);
}

/* A link that is bound, by procedure calls. */
static const char *bind(service_link_t *link)
{
    char why[200];
    ENSURE(service_link_find(link, "carried", PATIENCE_MS) == SERVICE_OK,
           "the server cannot be found");
    ENSURE(service_bind(&link->client, &carried_interface, NULL, 0, why, sizeof why) == SERVICE_OK,
           "the server does not fit");
    ENSURE(service_link_transport(link) == SERVICE_BY_CALLS, "there are no procedure calls");
    return NULL;
}

static const char *by_calls(void)
{
    service_link_t link;
    const char *why = bind(&link);
    ENSURE(why == NULL, why);
    why = all(&link.client);
    ENSURE(why == NULL, why);
    ENSURE(service_link_transport(&link) == SERVICE_BY_CALLS, "the binding was given up");
    service_link_take_messages(&link);
    ENSURE(service_link_transport(&link) == SERVICE_BY_MESSAGES,
           "a link that was told to take messages takes none");
    return some(&link.client);
}

/* More links one after the other than there are places for A-stacks. */
static const char *many(void)
{
    int round;
    for (round = 0; round < 70; round++) {
        service_link_t link;
        const char *why = bind(&link);
        ENSURE(why == NULL, why);
        ENSURE(carried_null(&link.client) == SERVICE_OK, "null fails");
        service_link_end(&link);
    }
    return NULL;
}

/* The thread of the server that runs the call ends; others serve. */
static const char *failed(void)
{
    service_link_t link;
    const char *why = bind(&link);
    ENSURE(why == NULL, why);
    ENSURE(carried_fail(&link.client) == SERVICE_LOST, "a call whose host failed is not lost");
    why = some(&link.client);
    service_link_end(&link);
    return why;
}

/* The first call after a restart looks the server up, binds, and is made once more. */
static const char *found_again(void)
{
    service_client_t root = service_at(service_root());
    service_result_bool_common_refusal_t restarted;
    service_link_t link;
    const char *why = bind(&link);
    ENSURE(why == NULL, why);
    ENSURE(tasks_restart(&root, service_string("carried"), &restarted) == SERVICE_OK
               && !restarted.is_err,
           "the server cannot be started again");
    why = some(&link.client);
    ENSURE(why == NULL, why);
    ENSURE(service_link_transport(&link) == SERVICE_BY_CALLS, "it has not bound again");
    why = all(&link.client);
    service_link_end(&link);
    return why;
}

int main(void)
{
    show("every_form_by_messages", by_messages());
    show("every_form_by_procedure_calls", by_calls());
    show("places_of_a_stacks_are_given_back", many());
    show("a_host_that_fails_is_an_error_of_its_caller", failed());
    show("a_server_that_starts_again_is_found_again", found_again());
    printf("tests done\n");
    return 0;
}
