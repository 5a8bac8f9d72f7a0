/*
 * baton.c - the tasks of the system below, from the Linux prompt: an ordinary Linux program
 * that asks the root task through /srv/tasks, as far as the Unix server's description allows.
 */
#include "service_socket.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <system.h>

#define SOCKET "/srv/tasks"
/* What Inspect is asked (docs/calls), and the states in its record of a thread. */
#define INSPECT_THREAD 0
#define INSPECT_SPACE 1
static const char *const thread_states[] = {
    "ready", "sending", "waiting", "transfer", "inactive", "halted",
};
static const char *const task_states[] = {
    "ready", "running", "exited", "crashed", "killed", "waiting",
};
/* Tasks whose names are remembered. */
#define TASKS 64

static service_client_t root;

static const char *refusal(common_refusal_t why)
{
    switch (why) {
    case COMMON_REFUSAL_NOT_ALLOWED:
        return "the Unix server's description does not allow it; it needs control = true";
    case COMMON_REFUSAL_UNKNOWN:
        return "there is nothing of that name; `baton tasks` lists what there is";
    case COMMON_REFUSAL_EXHAUSTED:
        return "there is no room left; end something";
    case COMMON_REFUSAL_TAKEN:
        return "it runs already";
    case COMMON_REFUSAL_BAD_ARGUMENT:
        return "the arguments make no sense";
    case COMMON_REFUSAL_KERNEL:
        return "the kernel refused";
    case COMMON_REFUSAL_NO_ANSWER:
        return "the root task does not answer";
    case COMMON_REFUSAL_NEEDED:
        return "running tasks depend on it; restart it, or end them first";
    case COMMON_REFUSAL_IDLE:
        return "it does not run; `baton start` starts it";
    }
    return "it gives no reason that is known here";
}

/* Ends the program if the call itself failed. */
static void check(service_error_t error)
{
    if (error == SERVICE_OK)
        return;
    fprintf(stderr, "baton: the root task was asked through " SOCKET ", but %s.\n",
            service_sentence(error));
    exit(1);
}

static int refused(const char *what, common_refusal_t why)
{
    fprintf(stderr, "baton: nothing was done to %s: %s.\n", what, refusal(why));
    return 1;
}

/* The task in a slot; false behind the last. Its name lies in `room`. */
static bool task(uint64_t index, tasks_task_t *found, uint8_t *room)
{
    service_result_tasks_task_common_refusal_t result;
    check(tasks_describe(&root, index, &result, room, TASKS_ROOM));
    if (!result.is_err)
        *found = result.as.ok;
    return !result.is_err;
}

static int list_tasks(void)
{
    static uint8_t room[TASKS_ROOM];
    tasks_task_t found;
    uint64_t index;
    puts("name              state     thread      restarts  exit code");
    for (index = 0; task(index, &found, room); index++) {
        printf("%-16.*s  %-8s  %6" PRIu64 "  %12" PRIu64 "  %9" PRIu64, (int)found.name.len,
               found.name.at, task_states[found.state], found.main >> 32, found.restarts,
               found.exit_code);
        if (found.again_us != 0)
            printf("  again in %" PRIu64 " ms", (found.again_us + 999) / 1000);
        putchar('\n');
    }
    return 0;
}

/* One record of the kernel's; false behind the last. */
static bool inspect(uint64_t what, uint64_t index, uint64_t words[8])
{
    service_result_tuple8_u64_u64_u64_u64_u64_u64_u64_u64_common_refusal_t result;
    check(tasks_inspect(&root, what, index, 0, &result));
    if (result.is_err)
        return false;
    memcpy(words, &result.as.ok, 8 * sizeof words[0]);
    return true;
}

/* The spaces of tasks, and whose they are. The kernel makes the first two itself. */
static struct {
    uint64_t space;
    char name[17];
} spaces[TASKS] = { { 0, "sigma0" }, { 1, "root" } };
static size_t space_count = 2;

static const char *task_of(uint64_t space)
{
    size_t i;
    for (i = 0; i < space_count; i++)
        if (spaces[i].space == space)
            return spaces[i].name;
    return NULL;
}

/* The task that has the space, or that has made it. */
static const char *space_name(uint64_t space, char made[24])
{
    const char *name = task_of(space);
    uint64_t words[8];
    if (name != NULL)
        return name;
    if (inspect(INSPECT_SPACE, space, words) && words[0] == space)
        name = task_of(words[6]);
    if (name != NULL)
        snprintf(made, 24, "(%s)", name);
    else
        snprintf(made, 24, "space %" PRIu64, space);
    return made;
}

static void read_spaces(void)
{
    static uint8_t room[TASKS_ROOM];
    uint64_t words[8], index;
    tasks_task_t found;
    for (index = 0; task(index, &found, room) && space_count < TASKS; index++) {
        if (!inspect(INSPECT_THREAD, found.main >> 32, words) || words[0] != found.main)
            continue;
        spaces[space_count].space = words[2];
        snprintf(spaces[space_count].name, sizeof spaces[0].name, "%.*s", (int)found.name.len,
                 found.name.at);
        space_count++;
    }
}

static int list_threads(const char *only)
{
    uint64_t words[8], index = 0;
    char made[24];
    size_t shown = 0;
    read_spaces();
    puts("task              thread  state     prio  at (ip)");
    while (inspect(INSPECT_THREAD, index, words)) {
        const char *name = space_name(words[2], made);
        uint64_t thread = words[0] >> 32;
        if (only == NULL || strcmp(only, name) == 0) {
            size_t states = sizeof thread_states / sizeof thread_states[0];
            printf("%-16s  %6" PRIu64 "  %-8s  %4" PRIu64 "  %" PRIx64 "\n", name, thread,
                   words[1] < states ? thread_states[words[1]] : "unknown", words[3], words[5]);
            shown++;
        }
        if (thread + 1 <= index)
            break;
        index = thread + 1;
    }
    if (shown > 0)
        return 0;
    fprintf(stderr, "baton: no thread is shown; %s.\n",
            only == NULL ? refusal(COMMON_REFUSAL_NOT_ALLOWED) : refusal(COMMON_REFUSAL_UNKNOWN));
    return 1;
}

static int show_memory(void)
{
    tasks_memory_t memory;
    check(tasks_memory_use(&root, &memory));
    printf("root's pool: %" PRIu64 " of %" PRIu64 " pages in use\n", memory.in_use, memory.frames);
    printf("blocks given on request: %" PRIu64 " KiB\n", memory.blocks / 1024);
    printf("pager's pool: %" PRIu64 " MiB\n", memory.pager >> 20);
    return 0;
}

typedef service_error_t change_t(const service_client_t *, service_string_t,
                                 service_result_bool_common_refusal_t *);

static int change(change_t *call, const char *name)
{
    service_result_bool_common_refusal_t result;
    check(call(&root, service_string(name), &result));
    if (result.is_err)
        return refused(name, result.as.err);
    if (call == tasks_kill && result.as.ok)
        printf("%s is supervised: it is started again.\n", name);
    return 0;
}

static int wait_for(const char *name)
{
    service_result_u64_common_refusal_t result;
    check(tasks_wait(&root, service_string(name), &result));
    if (result.is_err)
        return refused(name, result.as.err);
    printf("%s ended with code %" PRIu64 ".\n", name, result.as.ok);
    return 0;
}

static int halt(void)
{
    service_result_void_common_refusal_t result;
    check(tasks_halt(&root, 0, &result));
    return refused("the machine", result.as.err);
}

static int help(void)
{
    puts("baton asks the system below: its tasks, its threads, its memory.\n"
         "\n"
         "  baton tasks          all tasks and what they are doing\n"
         "  baton ps [TASK]      all threads, or those of one task; (TASK): of a space that it made\n"
         "  baton start TASK     starts a task\n"
         "  baton kill TASK      ends a task; supervised ones are started again\n"
         "  baton restart TASK   ends a task and starts it afresh\n"
         "  baton wait TASK      waits until a task is over, and says its exit code\n"
         "  baton mem            memory of the pools and on request\n"
         "  baton halt           ends the machine");
    return 0;
}

/* Connects to the root task, or ends the program. */
static void connect_to_root(void)
{
    char why[400];
    int fd = service_open(SOCKET);
    if (fd < 0) {
        fprintf(stderr, "baton: cannot ask the root task: " SOCKET ": %s; %s.\n", strerror(errno),
                errno == ENOENT ? "add srv/tasks to the `args` of the task `unix`"
                                : "its permissions say who may");
        exit(1);
    }
    root = service_over(fd);
    if (service_bind(&root, &tasks_interface, NULL, 0, why, sizeof why) != SERVICE_OK) {
        fprintf(stderr, "baton: %s.\n", why);
        exit(1);
    }
}

static const struct {
    const char *name;
    change_t *call;
} changes[] = { { "start", tasks_start }, { "kill", tasks_kill }, { "restart", tasks_restart } };

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "help";
    size_t i;
    if (argc > 3 || strcmp(verb, "help") == 0 || strcmp(verb, "--help") == 0)
        return help();
    connect_to_root();
    if (strcmp(verb, "tasks") == 0 && argc == 2)
        return list_tasks();
    if (strcmp(verb, "ps") == 0)
        return list_threads(argc == 3 ? argv[2] : NULL);
    if (strcmp(verb, "mem") == 0 && argc == 2)
        return show_memory();
    if (strcmp(verb, "halt") == 0 && argc == 2)
        return halt();
    if (strcmp(verb, "wait") == 0 && argc == 3)
        return wait_for(argv[2]);
    for (i = 0; i < sizeof changes / sizeof changes[0]; i++)
        if (strcmp(verb, changes[i].name) == 0 && argc == 3)
            return change(changes[i].call, argv[2]);
    fprintf(stderr, "baton: there is no `%s` of that form; `baton help` lists what there is.\n",
            verb);
    return 2;
}
