// Locks on files: fcntl between processes, open file descriptions, flock.
#include <sys/file.h>
#include "probe.h"

static struct flock lock(short type, off_t start, off_t length)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
}

static void ask(int fd, short type, off_t start, off_t length)
{
    struct flock wanted = lock(type, start, length);
    if (fcntl(fd, F_GETLK, &wanted) == -1)
        printf("%ld+%ld: %s\n", (long)start, (long)length, strerrorname_np(errno));
    else if (wanted.l_type == F_UNLCK)
        printf("%ld+%ld: free\n", (long)start, (long)length);
    else
        printf("%ld+%ld: type %d at %ld+%ld, by my parent: %d\n", (long)start, (long)length, wanted.l_type,
               (long)wanted.l_start, (long)wanted.l_len, wanted.l_pid == getppid());
}

static void other(int fd)
{
    ask(fd, F_WRLCK, 0, 10);
    ask(fd, F_RDLCK, 0, 10);
    ask(fd, F_RDLCK, 20, 10);
    ask(fd, F_WRLCK, 20, 0);
    ask(fd, F_WRLCK, 1000, 0);
    struct flock mine = lock(F_WRLCK, 0, 10);
    SHOW(fcntl(fd, F_SETLK, &mine));
    mine = lock(F_RDLCK, 20, 5);
    SHOW(fcntl(fd, F_SETLK, &mine));
    mine = lock(F_WRLCK, 500, 5);
    SHOW(fcntl(fd, F_SETLK, &mine));
}

static void waiting(int fd)
{
    int ready[2];
    char byte;
    pipe(ready);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct flock mine = lock(F_WRLCK, 0, 1);
        write(ready[1], "r", 1);
        int got = fcntl(fd, F_SETLKW, &mine);
        printf("child has the lock: %d\n", got);
        _exit(0);
    }
    read(ready[0], &byte, 1);
    usleep(100000);
    puts("parent lets go");
    struct flock free = lock(F_UNLCK, 0, 0);
    fcntl(fd, F_SETLK, &free);
    ended("child", child);
}

static void deadlock(int fd)
{
    struct flock first = lock(F_WRLCK, 0, 1), second = lock(F_WRLCK, 1, 1), none = lock(F_UNLCK, 0, 0);
    int ready[2];
    char byte;
    pipe(ready);
    fcntl(fd, F_SETLK, &first);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        fcntl(fd, F_SETLK, &second);
        write(ready[1], "r", 1);
        _exit(fcntl(fd, F_SETLKW, &first) == 0 ? 0 : 1);
    }
    read(ready[0], &byte, 1);
    usleep(100000);
    SHOW(fcntl(fd, F_SETLKW, &second));
    SHOW(fcntl(fd, F_SETLK, &none));
    ended("child", child);
}

static void descriptions(void)
{
    section("open file descriptions");
    int one = open("locked", O_RDWR), two = open("locked", O_RDWR);
    struct flock wanted = lock(F_WRLCK, 0, 10);
    SHOW(fcntl(one, F_OFD_SETLK, &wanted));
    SHOW(fcntl(two, F_OFD_SETLK, &wanted));
    SHOW(fcntl(dup(one), F_OFD_SETLK, &wanted));
    wanted.l_pid = 1;
    SHOW(fcntl(two, F_OFD_SETLK, &wanted));
    close(one);
    section("flock");
    int three = open("locked", O_RDONLY);
    SHOW(flock(two, LOCK_EX));
    SHOW(flock(three, LOCK_SH | LOCK_NB));
    SHOW(flock(two, LOCK_SH));
    SHOW(flock(three, LOCK_SH | LOCK_NB));
    SHOW(flock(three, LOCK_UN));
    SHOW(flock(two, 77));
    SHOW(flock(99, LOCK_SH));
}

int main(void)
{
    int fd = open("locked", O_RDWR | O_CREAT, 0600);
    struct flock wanted = lock(F_WRLCK, 0, 10);
    section("between processes");
    SHOW(fcntl(fd, F_SETLK, &wanted));
    wanted = lock(F_RDLCK, 20, 10);
    SHOW(fcntl(fd, F_SETLK, &wanted));
    CHILD("other", other(fd));
    wanted = lock(F_UNLCK, 4, 2);
    SHOW(fcntl(fd, F_SETLK, &wanted));
    CHILD("other", ask(fd, F_WRLCK, 4, 2); ask(fd, F_WRLCK, 6, 1));
    waiting(fd);
    deadlock(fd);
    section("mistakes");
    wanted = lock(77, 0, 1);
    SHOW(fcntl(fd, F_SETLK, &wanted));
    wanted = lock(F_WRLCK, -1, 1);
    SHOW(fcntl(fd, F_SETLK, &wanted));
    SHOW(fcntl(fd, F_SETLK, BAD));
    SHOW(fcntl(99, F_SETLK, &wanted));
    int reader = open("locked", O_RDONLY);
    wanted = lock(F_WRLCK, 0, 1);
    SHOW(fcntl(reader, F_SETLK, &wanted));
    wanted = lock(F_WRLCK, 50, 1);
    SHOW(fcntl(fd, F_SETLK, &wanted));
    close(reader); // any descriptor of the file: all locks of the process go
    CHILD("other", ask(fd, F_WRLCK, 50, 1));
    descriptions();
    return 0;
}
