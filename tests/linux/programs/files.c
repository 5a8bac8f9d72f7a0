// Regular files: open, read, write, seek, holes, truncation, vectors, descriptors.
#include <sys/sendfile.h>
#include <sys/uio.h>
#include "probe.h"

static char buffer[8192];

static void opening(void)
{
    section("open");
    SHOW(open("missing", O_RDONLY));
    SHOW(open("", O_RDONLY));
    SHOW(open(BAD, O_RDONLY));
    SHOW(open(FAR, O_RDONLY));
    SHOW(open("/", O_WRONLY));
    SHOW(open("/test/bin/init/x", O_RDONLY));
    SHOW(open("new", O_RDWR | O_CREAT | O_EXCL, 0640));
    SHOW(open("new", O_RDWR | O_CREAT | O_EXCL, 0640));
    SHOW(open("new", O_RDONLY | O_DIRECTORY));
    SHOW(open(".", O_RDWR));
    SHOW(open(".", O_RDONLY | O_CREAT, 0600));
    memset(buffer, 'n', 256);
    buffer[256] = 0;
    SHOW(open(buffer, O_RDWR | O_CREAT, 0600));
    buffer[255] = 0;
    SHOW(open(buffer, O_RDWR | O_CREAT, 0600));
    memset(buffer, '/', 4096);
    buffer[4096] = 0;
    SHOW(open(buffer, O_RDONLY));
    SHOW(openat(99, "new", O_RDONLY));
    SHOW(openat(3, "new", O_RDONLY));
    SHOW(openat(-5, "/dev/null", O_RDONLY));
    SHOW(creat("created", 0600));
    SHOW(close(3));
    SHOW(close(3));
    SHOW(close(-1));
    SHOW(open("new", O_WRONLY));
    SHOW(read(3, buffer, 10));
    SHOW(open("new", O_PATH));
}

static void reading(void)
{
    section("read and write");
    int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0644);
    SHOW(write(fd, "0123456789", 10));
    SHOW(write(fd, "", 0));
    SHOW(write(fd, BAD, 0));
    SHOW(write(fd, BAD, 5));
    SHOW(write(fd, FAR, 5));
    SHOW(write(99, "x", 1));
    SHOW(read(fd, buffer, 10));
    SHOW(lseek(fd, 3, SEEK_SET));
    SHOW(read(fd, BAD, 5));
    SHOW(read(fd, buffer, 0));
    SHOW(read(fd, buffer, 100));
    SHOW(memcmp(buffer, "3456789", 7));
    SHOW(pread(fd, buffer, 4, 8));
    SHOW(pread(fd, buffer, 4, 10));
    SHOW(pread(fd, buffer, 4, -1));
    SHOW(pwrite(fd, "xy", 2, 12));
    SHOW(pwrite(fd, "xy", 2, -2));
    SHOW(lseek(fd, 0, SEEK_CUR));
    SHOW(lseek(fd, 0, SEEK_END));
    SHOW(lseek(fd, -20, SEEK_END));
    SHOW(lseek(fd, 0, 77));
    SHOW(lseek(fd, 1L << 62, SEEK_SET));
    SHOW(write(fd, "x", 1));
    SHOW(lseek(99, 0, SEEK_SET));
    int directory = open(".", O_RDONLY);
    SHOW(read(directory, buffer, 10));
    SHOW(write(directory, "x", 1));
    int reader = open("data", O_RDONLY);
    SHOW(write(reader, "x", 1));
    SHOW(ftruncate(reader, 1));
    int appender = open("data", O_WRONLY | O_APPEND);
    SHOW(write(appender, "end", 3));
    SHOW(lseek(appender, 0, SEEK_CUR));
    SHOW(pwrite(appender, "at", 2, 0));
    SHOW(lseek(fd, 0, SEEK_END));
    close(fd), close(directory), close(reader), close(appender);
}

static void vectors(void)
{
    section("vectors");
    int fd = open("vectors", O_RDWR | O_CREAT, 0644);
    char a[4], b[8];
    struct iovec out[3] = {{"one", 3}, {NULL, 0}, {"three", 5}};
    struct iovec in[2] = {{a, 4}, {b, 8}};
    struct iovec bad[2] = {{"good", 4}, {BAD, 4}};
    struct iovec negative[1] = {{a, -1}};
    SHOW(writev(fd, out, 3));
    SHOW(preadv(fd, in, 2, 0));
    SHOW(memcmp(a, "onet", 4));
    SHOW(memcmp(b, "hree", 4));
    SHOW(pwritev(fd, out, 1, 100));
    SHOW(writev(fd, bad, 2));
    SHOW(writev(fd, bad + 1, 1));
    SHOW(writev(fd, BAD, 2));
    SHOW(writev(fd, out, 0));
    volatile int too_few = -1, too_many = 1025;
    SHOW(writev(fd, out, too_few));
    SHOW(writev(fd, out, too_many));
    SHOW(readv(fd, negative, 1));
    SHOW(preadv(fd, in, 2, -1));
    SHOW(lseek(fd, 0, SEEK_END));
    close(fd);
}

static void holes(void)
{
    section("holes");
    int fd = open("holes", O_RDWR | O_CREAT, 0644);
    struct stat stat;
    SHOW(pwrite(fd, "x", 1, 1 << 20));
    fstat(fd, &stat);
    printf("size %ld, few blocks %d\n", (long)stat.st_size, stat.st_blocks < 100);
    SHOW(pread(fd, buffer, 5, 4096));
    SHOW(memcmp(buffer, "\0\0\0\0\0", 5));
    SHOW(lseek(fd, 0, SEEK_DATA));
    SHOW(lseek(fd, 0, SEEK_HOLE));
    SHOW(lseek(fd, 2 << 20, SEEK_DATA));
    SHOW(ftruncate(fd, 100));
    SHOW(ftruncate(fd, 200));
    SHOW(pread(fd, buffer, 300, 50));
    SHOW(ftruncate(fd, -1));
    SHOW(truncate("holes", 7));
    SHOW(truncate("missing", 7));
    SHOW(truncate(".", 7));
    SHOW(truncate(BAD, 7));
    fstat(fd, &stat);
    printf("size %ld\n", (long)stat.st_size);
    SHOW(fallocate(fd, 0, 0, 10000));
    fstat(fd, &stat);
    printf("size %ld\n", (long)stat.st_size);
    SHOW(fallocate(fd, 0, 0, 0));
    SHOW(fallocate(fd, 0, -1, 10));
    SHOW(fsync(fd));
    SHOW(fdatasync(99));
    close(fd);
}

static void descriptors(void)
{
    section("descriptors");
    int fd = open("data", O_RDWR);
    int copy = dup(fd);
    SHOW(lseek(fd, 5, SEEK_SET));
    SHOW(lseek(copy, 0, SEEK_CUR));
    SHOW(dup2(fd, 50));
    SHOW(dup2(fd, fd) == fd);
    SHOW(dup2(99, 50));
    SHOW(dup2(fd, -1));
    SHOW(dup2(fd, 1 << 30));
    SHOW(dup3(fd, 51, O_CLOEXEC));
    SHOW(dup3(fd, fd, 0));
    SHOW(dup3(fd, 52, 7));
    SHOW(fcntl(51, F_GETFD));
    SHOW(fcntl(50, F_GETFD));
    SHOW(fcntl(50, F_SETFD, FD_CLOEXEC));
    SHOW(fcntl(50, F_GETFD));
    SHOW(fcntl(fd, F_DUPFD, 60));
    SHOW(fcntl(fd, F_DUPFD, -1));
    SHOW(fcntl(fd, F_DUPFD, 1 << 30));
    SHOW(fcntl(fd, F_DUPFD_CLOEXEC, 61));
    SHOW(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK));
    SHOW(fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK));
    SHOW(fcntl(copy, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK));
    SHOW(fcntl(99, F_GETFL));
    SHOW(fcntl(fd, 7777));
    SHOW(RAW(close_range, 50, 61, 0));
    SHOW(fcntl(60, F_GETFD));
    SHOW(RAW(close_range, 5, 3, 0));
    SHOW(fsync(0));
    close(fd), close(copy);
}

static void sending(void)
{
    section("sendfile and copy_file_range");
    int in = open("source", O_RDWR | O_CREAT, 0644), out = open("sink", O_RDWR | O_CREAT, 0644);
    memset(buffer, 's', sizeof buffer);
    SHOW(write(in, buffer, 5000));
    off_t from = 1000;
    SHOW(sendfile(out, in, &from, 10000));
    printf("from %ld\n", (long)from);
    SHOW(lseek(in, 4990, SEEK_SET));
    SHOW(sendfile(out, in, NULL, 100));
    SHOW(sendfile(out, in, NULL, 100));
    SHOW(sendfile(out, in, BAD, 100));
    SHOW(sendfile(99, in, NULL, 1));
    SHOW(sendfile(out, 99, NULL, 1));
    SHOW(lseek(in, 0, SEEK_SET));
    SHOW(copy_file_range(in, NULL, out, NULL, 700, 0));
    SHOW(copy_file_range(in, NULL, out, NULL, 700, 1));
    SHOW(lseek(out, 0, SEEK_END));
}

int main(void)
{
    opening();
    for (int fd = 3; fd < 20; fd++)
        close(fd);
    reading();
    vectors();
    holes();
    descriptors();
    sending();
    return 0;
}
