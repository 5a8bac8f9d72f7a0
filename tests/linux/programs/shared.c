// Memory that processes share: anonymous, of a file, copied on write; and that
// what is private stays so through three generations.
#include "probe.h"

enum { PAGE = 4096, PAGES = 64 };

static char private[PAGES * PAGE];

static void *anonymous(size_t bytes, int kind)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
}

static int differs(const char *memory, char value)
{
    int count = 0;
    for (int i = 0; i < PAGES * PAGE; i++)
        count += memory[i] != value;
    return count;
}

static void generations(void)
{
    section("copy on write");
    char *heap = malloc(PAGES * PAGE), *mapped = anonymous(PAGES * PAGE, MAP_PRIVATE);
    memset(private, 'a', PAGES * PAGE), memset(heap, 'a', PAGES * PAGE), memset(mapped, 'a', PAGES * PAGE);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        memset(heap, 'b', PAGES * PAGE);
        CHILD("grandchild", printf("%d %d %d\n", differs(private, 'a'), differs(heap, 'b'), differs(mapped, 'a'));
              memset(mapped, 'c', PAGES * PAGE); memset(heap, 'c', PAGES * PAGE));
        printf("%d %d %d\n", differs(private, 'a'), differs(heap, 'b'), differs(mapped, 'a'));
        _exit(0);
    }
    memset(private, 'd', PAGES * PAGE);
    ended("child", child);
    printf("%d %d %d\n", differs(private, 'd'), differs(heap, 'a'), differs(mapped, 'a'));
}

static void sharing(void)
{
    section("shared");
    volatile long *counter = anonymous(PAGE, MAP_SHARED);
    for (int round = 0; round < 4; round++)
        if (fork() == 0) {
            for (int i = 0; i < 10000; i++)
                __atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    printf("counter %ld\n", *counter);
    int fd = open("shared", O_RDWR | O_CREAT, 0600);
    ftruncate(fd, 2 * PAGE);
    char *here = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    here[0] = 'x';
    CHILD("other mapping", int again = open("shared", O_RDWR);
          char *there = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
          FACT(there[0] == 'x'); there[PAGE] = 'y'; munmap(there, 2 * PAGE));
    FACT(here[PAGE] == 'y');
    CHILD("unmap", munmap(here, 2 * PAGE); here[0] = 'z');
    FACT(here[0] == 'x');
    CHILD("protect", mprotect(here, PAGE, PROT_READ); here[PAGE] = 'w'; here[0] = 'w');
    FACT(here[0] == 'x' && here[PAGE] == 'w');
    ftruncate(fd, PAGE);
    ftruncate(fd, 2 * PAGE);
    FACT(here[0] == 'x' && here[PAGE] == 0);
}

// The kernel's own writes go to the writer's copy alone.
static void by_call(void)
{
    section("copies made by calls");
    int fd = open("/dev/zero", O_RDONLY);
    memset(private, 'k', PAGES * PAGE);
    CHILD("read", read(fd, private + 100, 3 * PAGE); printf("%d\n", differs(private, 'k')));
    printf("%d\n", differs(private, 'k'));
}

int main(void)
{
    generations();
    sharing();
    by_call();
    return 0;
}
