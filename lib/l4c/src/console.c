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

/* Requests to the console, and one to the root task (docs/user-level.md). */
#define CONSOLE_WRITE 0x200UL
#define CONSOLE_READ_CHAR 0x203UL
#define ROOT_LOG 0x10AUL
/* How often, and how far apart, a driver is looked for that is being started. */
#define TRIES 60
#define PAUSE_US 5000
/* How long the root task and the driver have to answer. */
static const service_limits_t SOON = { 500000, 2000000 };
/* The driver lets a client wait while its earlier text goes out. */
static const service_limits_t PATIENT = { 500000, 10000000 };

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

/* Sends text in words; whether it was taken. */
static int send(L4_ThreadId_t to, L4_Word_t label, const struct text *text, service_limits_t limits)
{
    service_client_t server = service_at(to);
    service_message_t message;
    size_t words = (text->length + 7) / 8;
    memset(message.words, 0, sizeof message.words);
    message.tag = label << 16 | (1 + words);
    message.string = NULL;
    message.words[0] = text->length;
    memcpy(message.words + 1, text->bytes, text->length);
    return server.call(&server, &message, NULL, 0, limits) == SERVICE_OK && message.tag >> 16 == 0;
}

/* Text for a task; 0 if it has to print by itself. */
static int say(const struct text *text)
{
    int found = find();
    if (found == 1) {
        L4_ThreadId_t to;
        to.raw = driver;
        if (send(to, CONSOLE_WRITE, text, PATIENT))
            return 1;
        driver = 0; /* it is gone, perhaps to come back */
    }
    if (found < 0)
        return 0;
    (void)send(service_root(), ROOT_LOG, text, SOON);
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
    service_message_t message;
    if (l4c_is_root_task())
        return serial_get();
    for (;;) {
        int found = find();
        service_client_t server;
        L4_ThreadId_t from;
        if (found < 0)
            return serial_get();
        from.raw = driver;
        server = service_at(from);
        message.tag = CONSOLE_READ_CHAR << 16;
        message.string = NULL;
        /* A driver that dies takes the request with it: ask again from time to time. */
        if (found != 1 || server.call(&server, &message, NULL, 0, SOON) != SERVICE_OK)
            driver = 0;
        else if (message.tag >> 16 != 0)
            return -1; /* what is typed is another task's */
        else
            return (int)(message.words[0] & 0xFF);
        L4_Sleep(L4_TimePeriod(PAUSE_US));
    }
}
