// Eats memory until it is refused or killed; others do not notice.
#include <sys/resource.h>
#include "probe.h"

enum { PIECE = 1 << 20 };

static void eat(long pieces)
{
    for (long i = 0; i < pieces; i++) {
        char *piece = malloc(PIECE);
        if (piece == NULL) {
            printf("refused: %s\n", strerrorname_np(errno));
            _exit(3);
        }
        memset(piece, 1, PIECE);
    }
    puts("had enough");
}

static void by_break(void)
{
    while (sbrk(PIECE) != (void *)-1)
        ;
    printf("brk: %s\n", strerrorname_np(errno));
}

// Touches everything that it is given: in the end SIGKILL, or ENOMEM before.
static void all(void)
{
    for (;;) {
        char *piece = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (piece == MAP_FAILED)
            raise(SIGKILL);
        memset(piece, 1, PIECE);
    }
}

int main(int argc, char **argv)
{
    struct rlimit limit = {64 << 20, 64 << 20};
    CHILD("moderate", eat(16));
    CHILD("limited", setrlimit(RLIMIT_AS, &limit); eat(1000));
    CHILD("limited brk", setrlimit(RLIMIT_DATA, &limit); by_break());
    if (argc > 1 && strcmp(argv[1], "all") == 0)
        CHILD("everything", all());
    CHILD("afterwards", eat(16));
    return 0;
}
