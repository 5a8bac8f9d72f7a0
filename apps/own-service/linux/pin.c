/*
 * pin.c - a Linux program that is a client of the service in apps/own-service:
 *
 *     pin TEXT...     pins each, and says its number
 *     pin -r NUMBER   says what a note says
 *
 * `own-service.h` is what `./baton idl apps/own-service/wit --c` prints, as for tasks in C
 * (apps/ask-in-c); only what carries the messages is another: a socket in /srv.
 */
#include <errno.h>
#include <service_socket.h>
#include <stdio.h>
#include <stdlib.h>
#include "own-service.h"

#define SOCKET "/srv/own-service"

/* Why the board refuses, as a sentence. */
static const char *trouble(own_service_trouble_t why)
{
    switch (why) {
    case OWN_SERVICE_TROUBLE_NO_NOTE:
        return "there is no such note";
    case OWN_SERVICE_TROUBLE_TOO_MANY:
        return "the Unix server has pinned as many notes as one task may";
    case OWN_SERVICE_TROUBLE_NOT_ALLOWED:
        return "the Unix server's description does not use the service";
    }
    return "of something that is not known here";
}

static int refused(const char *what)
{
    fprintf(stderr, "pin: the board refuses: %s.\n", what);
    return 1;
}

/* Ends the program if the call itself failed. */
static void check(service_error_t error)
{
    if (error != SERVICE_OK) {
        fprintf(stderr, "pin: %s.\n", service_sentence(error));
        exit(1);
    }
}

static int read_note(const service_client_t *board, uint32_t number)
{
    static uint8_t room[OWN_SERVICE_ROOM];
    service_result_string_own_service_trouble_t note;
    check(own_service_read(board, number, &note, room, sizeof room));
    if (note.is_err)
        return refused(trouble(note.as.err));
    printf("%.*s\n", (int)note.as.ok.len, note.as.ok.at);
    return 0;
}

static int pin_note(const service_client_t *board, const char *text)
{
    service_result_u32_own_service_trouble_t pinned;
    check(own_service_pin(board, service_string(text), &pinned));
    if (pinned.is_err)
        return refused(trouble(pinned.as.err));
    printf("note %u\n", pinned.as.ok);
    return 0;
}

int main(int argc, char **argv)
{
    char why[300];
    service_client_t board;
    int result = 0, i, fd = service_open(SOCKET);
    if (fd < 0) {
        fprintf(stderr, "pin: cannot reach the board at " SOCKET ": %s.\n", strerror(errno));
        return 1;
    }
    board = service_over(fd);
    if (service_bind(&board, &own_service_interface, NULL, 0, why, sizeof why) != SERVICE_OK) {
        fprintf(stderr, "pin: %s.\n", why);
        return 1;
    }
    if (argc == 3 && strcmp(argv[1], "-r") == 0)
        return read_note(&board, (uint32_t)strtoul(argv[2], NULL, 10));
    for (i = 1; i < argc && result == 0; i++)
        result = pin_note(&board, argv[i]);
    return result;
}
