/*
 * ask-in-c - a client in C of the service in apps/own-service, and what else an ordinary task in
 * C has: printf through the console's driver, names, the tasks of the system.
 * `own-service.h` is what `./baton idl apps/own-service/wit --c` prints.
 */
#include <service_ipc.h>
#include <stdio.h>
#include <stdlib.h>
#include <system.h>
#include "own-service.h"

/* Finds a service by its name, or ends the program. */
static service_client_t find(const char *name)
{
    service_client_t root = service_at(service_root());
    service_result_thread_common_refusal_t found;
    service_error_t error = names_lookup(&root, service_string(name), &found);
    L4_ThreadId_t thread;
    if (error != SERVICE_OK || found.is_err) {
        printf("ask-in-c: there is no %s.\n", name);
        exit(1);
    }
    thread.raw = found.as.ok;
    return service_at(thread);
}

/* Pins a note, and reads it again. */
static void pin_and_read(const service_client_t *board, const char *text)
{
    static uint8_t room[OWN_SERVICE_ROOM];
    service_result_u32_own_service_trouble_t pinned;
    service_result_string_own_service_trouble_t note;
    service_error_t error = own_service_pin(board, service_string(text), &pinned);
    if (error == SERVICE_OK && !pinned.is_err)
        error = own_service_read(board, pinned.as.ok, &note, room, sizeof room);
    if (error != SERVICE_OK)
        printf("ask-in-c: %s.\n", service_sentence(error));
    else if (pinned.is_err || note.is_err)
        printf("ask-in-c: the board refuses.\n");
    else
        printf("Note %u has %lu bytes: %.*s\n", pinned.as.ok, note.as.ok.len, (int)note.as.ok.len,
               note.as.ok.at);
}

/* Says what runs in this system. */
static void list_tasks(void)
{
    static uint8_t room[TASKS_ROOM];
    service_client_t root = service_at(service_root());
    service_result_tasks_task_common_refusal_t task;
    uint64_t index;
    for (index = 0;; index++) {
        if (tasks_describe(&root, index, &task, room, sizeof room) != SERVICE_OK)
            break;
        if (task.is_err)
            break;
        printf("%s%.*s", index == 0 ? "Tasks: " : ", ", (int)task.as.ok.name.len,
               task.as.ok.name.at);
    }
    printf(".\n");
}

int main(void)
{
    char why[200];
    service_client_t board = find("own-service");
    if (service_bind(&board, &own_service_interface, NULL, 0, why, sizeof why) != SERVICE_OK) {
        printf("ask-in-c: %s\n", why);
        return 1;
    }
    pin_and_read(&board, "Written in C, for 3 €.");
    list_tasks();
    return 0;
}
