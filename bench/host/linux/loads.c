// Real work by Debian's own programs, from fork to wait: the only program of a small system, run as init under the
// tally, on Linux and, unchanged, on Baton's Unix server. Each load is a script in /loads and runs as often as
// ROUNDS says; the first sample is a loop of known length.
//
// Prints `load NAME` before a load's samples and `bench done`, then stops the machine.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 2 };

#define MARK(which) __asm__ volatile(".byte 0x0F, 0x1F, 0x84, 0, 0x42, 0x54, 0x4E, " #which ::: "memory")

static void stop(int code)
{
    fflush(stdout);
    usleep(10000);
    ioperm(0xF4, 4, 1);
    outl((unsigned)code, 0xF4);
    for (;;)
        pause();
}

// Runs a script with its output in /tmp/said; its status.
static int run(const char *script)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        int said = open("/tmp/said", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(said, 1), dup2(said, 2), close(said);
        execl("/bin/bash", "bash", script, NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return status;
}

static void must(int status, const char *script)
{
    char line[256];
    if (status == 0)
        return;
    FILE *said = fopen("/tmp/said", "r");
    printf("bench FAILED: %s ended with %#x and said:\n", script, status);
    while (said && fgets(line, sizeof line, said))
        fputs(line, stdout);
    stop(0x11);
}

// Preparing is no load.
static int is_load(const struct dirent *entry)
{
    return strstr(entry->d_name, ".sh") != NULL && strcmp(entry->d_name, "prepare.sh") != 0;
}

int main(void)
{
    mkdir("/dev", 0755);
    mknod("/dev/console", S_IFCHR | 0600, makedev(5, 1));
    mknod("/dev/null", S_IFCHR | 0666, makedev(1, 3));
    mknod("/dev/urandom", S_IFCHR | 0666, makedev(1, 9));
    mkdir("/tmp", 0700);
    mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
    int console = open("/dev/console", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(console, fd);
    setenv("PATH", "/usr/bin:/bin", 1), setenv("HOME", "/tmp", 1), setenv("LC_ALL", "C", 1);
    must(run("/loads/prepare.sh"), "prepare.sh");
    uint64_t rounds = 1000;
    MARK(1);
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(rounds));
    MARK(2);
    struct dirent **loads;
    int count = scandir("/loads", &loads, is_load, alphasort);
    for (int load = 0; load < count; load++) {
        char script[300];
        snprintf(script, sizeof script, "/loads/%s", loads[load]->d_name);
        *strstr(loads[load]->d_name, ".sh") = 0;
        printf("load %s\n", loads[load]->d_name);
        fflush(stdout);
        for (int round = 0; round < ROUNDS; round++) {
            MARK(1);
            int status = run(script);
            MARK(2);
            must(status, script);
        }
    }
    printf("bench done\n");
    stop(0x10);
}
