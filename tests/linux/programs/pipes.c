// Pipes and fifos: ends, capacity, what a missing reader does, waiting.
#include <poll.h>
#include <sys/ioctl.h>
#include "probe.h"

static char buffer[1 << 17];
static volatile int broken;

static void on_pipe(int number)
{
    broken += number == SIGPIPE;
}

static void basics(void)
{
    section("basics");
    int ends[2], waiting = -1;
    SHOW(pipe(BAD));
    SHOW(pipe2(ends, 0x1234));
    SHOW(pipe(ends));
    SHOW(write(ends[1], "abc", 3));
    SHOW(ioctl(ends[0], FIONREAD, &waiting));
    printf("waiting %d\n", waiting);
    SHOW(read(ends[0], buffer, 2));
    SHOW(read(ends[0], BAD, 1));
    SHOW(read(ends[0], buffer, 10));
    SHOW(read(ends[1], buffer, 1));
    SHOW(write(ends[0], "x", 1));
    SHOW(write(ends[1], BAD, 1));
    SHOW(write(ends[1], buffer, 0));
    SHOW(lseek(ends[0], 0, SEEK_SET));
    SHOW(pread(ends[0], buffer, 1, 0));
    SHOW(fcntl(ends[0], F_GETPIPE_SZ));
    SHOW(fcntl(ends[0], F_GETFL));
    SHOW(fcntl(ends[1], F_GETFL));
    struct stat stat;
    fstat(ends[0], &stat);
    FACT(S_ISFIFO(stat.st_mode));
    SHOW(close(ends[1]));
    SHOW(read(ends[0], buffer, 10));
    close(ends[0]);
}

static void limits(void)
{
    section("capacity");
    int ends[2];
    pipe2(ends, O_NONBLOCK | O_CLOEXEC);
    SHOW(read(ends[0], buffer, 1));
    SHOW(write(ends[1], buffer, sizeof buffer));
    SHOW(write(ends[1], buffer, 1));
    SHOW(read(ends[0], buffer, 4095));
    SHOW(write(ends[1], buffer, 4096));
    SHOW(read(ends[0], buffer, 1));
    SHOW(write(ends[1], buffer, 4096));
    SHOW(write(ends[1], buffer, 1));
    SHOW(fcntl(ends[1], F_GETFD));
    SHOW(close(ends[0]));
    signal(SIGPIPE, on_pipe);
    SHOW(write(ends[1], "x", 1));
    printf("SIGPIPE %d\n", broken);
    signal(SIGPIPE, SIG_DFL);
    CHILD("writer without reader", write(ends[1], "x", 1));
    close(ends[1]);
}

// More than fits: the writer waits, and everything arrives in order.
static void stream(void)
{
    section("stream");
    int ends[2];
    pipe(ends);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        for (uint32_t i = 0; i < 100000; i++)
            if (write(ends[1], &i, 4) != 4)
                _exit(1);
        _exit(0);
    }
    close(ends[1]);
    uint32_t next = 0, total = 0;
    for (ssize_t got; (got = read(ends[0], buffer, 4000)) > 0; total += (uint32_t)got)
        for (ssize_t at = 0; at + 4 <= got; at += 4)
            next += *(uint32_t *)(buffer + at) == next;
    printf("numbers in order %u, bytes %u\n", next, total);
    ended("writer", child);
}

static void polling(void)
{
    section("poll");
    int ends[2];
    pipe(ends);
    struct pollfd both[2] = {{ends[0], POLLIN, 0}, {ends[1], POLLOUT, 0}};
    SHOW(poll(both, 2, 0));
    printf("%#x %#x\n", both[0].revents, both[1].revents);
    write(ends[1], "x", 1);
    SHOW(poll(both, 2, 0));
    printf("%#x %#x\n", both[0].revents, both[1].revents);
    read(ends[0], buffer, 1);
    close(ends[1]);
    SHOW(poll(both, 1, -1));
    printf("%#x\n", both[0].revents);
    close(ends[0]);
    pipe(ends);
    close(ends[0]);
    both[0] = (struct pollfd){ends[1], POLLOUT, 0};
    SHOW(poll(both, 1, 0));
    printf("%#x\n", both[0].revents);
    close(ends[1]);
}

static void fifos(void)
{
    section("fifo");
    SHOW(mkfifo("fifo", 0600));
    SHOW(mkfifo("fifo", 0600));
    SHOW(open("fifo", O_WRONLY | O_NONBLOCK));
    int reader = open("fifo", O_RDONLY | O_NONBLOCK);
    WORKS(reader);
    SHOW(read(reader, buffer, 1));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int writer = open("fifo", O_WRONLY);
        write(writer, "through the fifo", 16);
        _exit(0);
    }
    ended("writer", child);
    SHOW(read(reader, buffer, 100));
    SHOW(read(reader, buffer, 100));
    close(reader);
}

static void splices(void)
{
    section("splice");
    int one[2], two[2], file = open("spliced", O_RDWR | O_CREAT | O_TRUNC, 0600);
    int append = open("appended", O_RDWR | O_CREAT | O_APPEND, 0600);
    pipe(one), pipe(two);
    write(file, "0123456789", 10);
    loff_t at = 2, negative = -1;
    SHOW(splice(file, &at, one[1], NULL, 4, 0));
    printf("%ld %ld\n", (long)at, (long)lseek(file, 0, SEEK_CUR));
    SHOW(splice(file, NULL, one[1], NULL, 4, 0));
    SHOW(tee(one[0], two[1], 100, 0));
    SHOW(splice(one[0], NULL, two[1], NULL, 3, 0));
    char text[64] = "";
    struct iovec ranges[2] = {{text, 4}, {text + 4, 50}};
    SHOW(vmsplice(two[0], ranges, 2, 0));
    printf("%s\n", text);
    SHOW(splice(one[0], NULL, file, NULL, 100, 0));
    SHOW(pread(file, text, sizeof text, 0));
    printf("%.11s\n", text);
    ranges[0].iov_len = 2;
    SHOW(vmsplice(one[1], ranges, 1, 0));
    SHOW(splice(one[0], NULL, append, NULL, 2, 0));
    SHOW(splice(one[0], &at, file, NULL, 2, 0));
    SHOW(splice(one[0], NULL, file, &negative, 2, 0));
    SHOW(splice(file, NULL, append, NULL, 2, 0));
    SHOW(splice(one[0], NULL, one[1], NULL, 2, 0));
    SHOW(splice(one[1], NULL, file, NULL, 2, 0));
    SHOW(splice(one[0], NULL, file, NULL, 2, 77));
    SHOW(splice(99, NULL, 99, NULL, 0, 0));
    SHOW(splice(two[0], NULL, file, NULL, 2, SPLICE_F_NONBLOCK));
    SHOW(tee(file, two[1], 2, 0));
    SHOW(tee(one[0], one[1], 2, 0));
    SHOW(vmsplice(file, ranges, 1, 0));
    SHOW(vmsplice(one[1], ranges, 1, 77));
    SHOW(vmsplice(one[1], BAD, 1, 0));
    close(two[1]);
    SHOW(splice(two[0], NULL, file, NULL, 2, 0));
    SHOW(splice(open("/dev/zero", O_RDONLY), NULL, one[1], NULL, 10, 0));
    SHOW(splice(one[0], NULL, open("/dev/null", O_WRONLY), NULL, 100, 0));
}

int main(void)
{
    basics();
    limits();
    stream();
    polling();
    fifos();
    splices();
    return 0;
}
