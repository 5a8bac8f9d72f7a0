// answers PROGRAM [ARGUMENT...]: runs the program and, beside it, a command of the shell each
// second. Prints the longest time, in milliseconds, from when the second is over to the command's
// end, and exits as the program does.
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_MS = 1000, AGAIN_MS = 10 };

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void rest(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

// Whether the shell did as it was told; a process that cannot be had, or is killed, is no answer.
static int ask(void)
{
    pid_t shell = fork();
    if (shell == 0) {
        dup2(open("/dev/null", O_WRONLY), 1);
        execl("/bin/sh", "sh", "-c", "/bin/ls /", NULL);
        _exit(127);
    }
    int status = -1;
    return shell > 0 && waitpid(shell, &status, 0) == shell && status == 0;
}

int main(int count, char **words)
{
    if (count < 2)
        return 2;
    pid_t program = fork();
    if (program == 0) {
        execvp(words[1], words + 1);
        _exit(127);
    }
    if (program < 0)
        return 127;
    int status, asked = 0;
    long longest = 0;
    while (waitpid(program, &status, WNOHANG) == 0) {
        long due = now_ms() + PAUSE_MS;
        rest(PAUSE_MS);
        while (!ask())
            rest(AGAIN_MS);
        long took = now_ms() - due;
        longest = took > longest ? took : longest;
        asked++;
    }
    printf("answers: %d, the longest took %ld ms\n", asked, longest);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
