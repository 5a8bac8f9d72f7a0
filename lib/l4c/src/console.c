/*
 * console.c - where printed text goes: from the root task to the serial port; from any other
 * task to the console's driver, by way of the root task if there is none, and to the serial port
 * only under a root task that is not Baton's.
 */
#include "plain.h"
#include "text.h"
#include <l4/schedule.h>
#include <service_ipc.h>
#include <system.h>

/* How often, and how far apart, a driver is looked for that is being started. */
#define TRIES 60
#define PAUSE_US 5000
/* How long the root task has to answer. */
static const service_limits_t SOON = { 500000, 2000000 };

/* The driver's id; 0 before it is known, and after a search in vain. */
static uint64_t driver;
/* Whether a driver was looked for in vain. */
static int absent;

/* As the client's own call, but not without a limit. */
static service_error_t call_soon(const service_client_t *client, service_message_t *message,
                                 void *room, size_t bytes, service_limits_t limits)
{
    service_client_t root = service_at(service_root());
    (void)client;
    (void)limits;
    return root.call(&root, message, room, bytes, SOON);
}

/* Looks for the driver: 1 found, 0 not there, -1 the root task does not know what a name is. */
static int look(void)
{
    service_client_t root = service_at(service_root());
    service_result_thread_common_refusal_t found;
    root.call = call_soon;
    if (names_lookup(&root, service_string("console"), &found) != SERVICE_OK)
        return -1;
    driver = found.is_err ? 0 : found.as.ok;
    return !found.is_err;
}

static int find(void)
{
    int tries = absent ? 1 : TRIES, result = 0;
    if (driver != 0)
        return 1;
    while (tries-- > 0 && (result = look()) == 0 && tries > 0)
        L4_Sleep(L4_TimePeriod(PAUSE_US));
    absent = result != 1;
    return result;
}

/* The driver, once it is found. */
static service_client_t console(void)
{
    L4_ThreadId_t id;
    id.raw = driver;
    return service_at(id);
}

/* Text for a task; 0 if it has to print by itself. */
static int say(const struct text *text)
{
    service_bytes_t bytes = { (const uint8_t *)text->bytes, text->length };
    service_result_void_common_refusal_t result;
    service_client_t server;
    int found = find();
    if (found == 1) {
        server = console();
        if (console_write(&server, bytes, &result) != SERVICE_OK)
            driver = 0; /* it is gone, perhaps to come back */
        else if (!result.is_err)
            return 1;
    }
    if (found < 0)
        return 0;
    server = service_at(service_root());
    server.call = call_soon;
    (void)parent_log(&server, bytes, &result);
    return 1;
}

void text_flush(struct text *text)
{
    size_t at;
    if (text->length != 0 && (l4c_is_root_task() || !say(text)))
        for (at = 0; at < text->length; at++)
            serial_put(text->bytes[at]);
    text->length = 0;
}

void text_put(struct text *text, char c)
{
    int goes_on = ((unsigned char)c & 0xC0) == 0x80; /* inside of a character */
    if (text->length == sizeof text->bytes || (text->length > sizeof text->bytes - 4 && !goes_on))
        text_flush(text);
    text->bytes[text->length++] = c;
}

int putchar(int c)
{
    struct text text = { 0, { 0 } };
    text_put(&text, (char)c);
    text_flush(&text);
    return (unsigned char)c;
}

int puts(const char *s)
{
    struct text text = { 0, { 0 } };
    while (*s)
        text_put(&text, *s++);
    text_put(&text, '\n');
    text_flush(&text);
    return '\n';
}

int getchar(void)
{
    service_result_u8_common_refusal_t typed;
    if (l4c_is_root_task())
        return serial_get();
    for (;;) {
        int found = find();
        service_client_t server = console();
        if (found < 0)
            return serial_get();
        /* A driver that dies takes the request with it: ask again from time to time. */
        if (found == 1 && console_read_char(&server, &typed) == SERVICE_OK)
            return typed.is_err ? -1 : typed.as.ok; /* else what is typed is another task's */
        driver = 0;
        L4_Sleep(L4_TimePeriod(PAUSE_US));
    }
}
