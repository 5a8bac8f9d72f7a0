// Forks until it is refused, in a limit of its own and then in the system's;
// afterwards everything is as before.
#include <sys/resource.h>
#include "probe.h"

enum { LIMIT = 40, MOST = 5000 };

static int bomb(int most)
{
    static pid_t children[MOST];
    int count = 0;
    while (count < most) {
        pid_t child = fork();
        if (child == 0) {
            for (;;)
                pause();
        }
        if (child == -1)
            break;
        children[count++] = child;
    }
    int error = errno;
    for (int i = 0; i < count; i++)
        kill(children[i], SIGKILL);
    for (int i = 0; i < count; i++)
        waitpid(children[i], NULL, 0);
    errno = error;
    return count;
}

static void limited(void)
{
    struct rlimit limit = {LIMIT, LIMIT};
    setrlimit(RLIMIT_NPROC, &limit);
    setuid(1000);
    int count = bomb(MOST);
    printf("refused by %s, some went through: %d\n", strerrorname_np(errno), count > 10 && count <= LIMIT);
    printf("again %d\n", bomb(5));
}

int main(int argc, char **argv)
{
    CHILD("limited", limited());
    // `forkbomb whole`: up to the system's own limit.
    if (argc > 1 && strcmp(argv[1], "whole") == 0)
        printf("stopped %d\n", bomb(MOST) <= MOST);
    CHILD("afterwards", execl("/bin/echo", "echo", "alive", NULL));
    return 0;
}
