// Names: directories, the calls with "at", links, renaming, removal, attributes.
#include <dirent.h>
#include <linux/stat.h>
#include "probe.h"

static char name[5000];

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list(const char *path)
{
    DIR *dir = opendir(path);
    char *names[64];
    int count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir)) && count < 64;)
        asprintf(&names[count++], "%s/%d", entry->d_name, entry->d_type);
    qsort(names, (size_t)count, sizeof *names, by_name);
    printf("%s:", path);
    for (int i = 0; i < count; i++)
        printf(" %s", names[i]);
    printf("\n");
    if (dir)
        closedir(dir);
}

static void directories(void)
{
    section("directories");
    SHOW(mkdir("a", 0755));
    SHOW(mkdir("a", 0755));
    SHOW(mkdir("a/b/c", 0755));
    SHOW(mkdir("a/b/", 0700));
    SHOW(mkdir("", 0755));
    SHOW(mkdir(BAD, 0755));
    SHOW(mkdir("/", 0755));
    SHOW(mkdirat(99, "x", 0755));
    SHOW(rmdir("a"));
    SHOW(rmdir("a/."));
    SHOW(rmdir("a/b/.."));
    SHOW(rmdir("missing"));
    SHOW(rmdir("/"));
    close(open("a/file", O_CREAT | O_WRONLY, 0600));
    SHOW(rmdir("a/file"));
    SHOW(mkdir("a/file/x", 0700));
    list("a");
    SHOW(chdir("a/b"));
    SHOW(chdir("../file"));
    SHOW(chdir("nowhere"));
    SHOW(chdir(BAD));
    SHOW(getcwd(name, sizeof name) == name);
    puts(strstr(name, "/case"));
    SHOW(RAW(getcwd, name, 3));
    SHOW(RAW(getcwd, BAD, 100));
    SHOW(rmdir("../b"));
    SHOW(RAW(getcwd, name, sizeof name));
    SHOW(open("x", O_CREAT | O_WRONLY, 0600));
    list(".");
    SHOW(chdir(".."));
    SHOW(chdir(".."));
    int fd = open("a", O_RDONLY);
    SHOW(fchdir(fd));
    SHOW(fchdir(99));
    SHOW(chdir(".."));
    SHOW(RAW(getdents64, fd, BAD, 1000));
    SHOW(RAW(getdents64, fd, name, 10));
    SHOW(RAW(getdents64, fd, name, sizeof name) > 0);
    SHOW(RAW(getdents64, fd, name, sizeof name));
    SHOW(RAW(getdents64, 99, name, sizeof name));
    SHOW(lseek(fd, 0, SEEK_SET));
    SHOW(RAW(getdents64, fd, name, sizeof name) > 0);
    int file = open("a/file", O_RDONLY);
    SHOW(RAW(getdents64, file, name, sizeof name));
    close(fd), close(file);
}

static void links(void)
{
    section("links");
    struct stat stat;
    SHOW(link("a/file", "hard"));
    SHOW(link("a/file", "hard"));
    SHOW(link("a", "hard2"));
    SHOW(link("missing", "hard2"));
    lstat("hard", &stat);
    printf("links %ld\n", (long)stat.st_nlink);
    SHOW(symlink("a/file", "soft"));
    SHOW(symlink("x", "soft"));
    SHOW(symlink("", "soft2"));
    SHOW(symlink("loop2", "loop1"));
    SHOW(symlink("loop1", "loop2"));
    SHOW(open("loop1", O_RDONLY));
    SHOW(open("soft", O_RDONLY | O_NOFOLLOW));
    SHOW(symlink("target-to-be", "dangling"));
    SHOW(open("dangling", O_RDONLY));
    SHOW(open("dangling", O_CREAT | O_EXCL | O_WRONLY, 0600));
    WORKS(open("dangling", O_CREAT | O_WRONLY, 0600));
    SHOW(access("target-to-be", F_OK));
    SHOW(readlink("soft", name, sizeof name));
    SHOW(readlink("soft", name, 3));
    SHOW(readlink("soft", name, 0));
    SHOW(readlink("hard", name, 10));
    SHOW(readlink("missing", name, 10));
    SHOW(readlink("soft", BAD, 10));
    lstat("soft", &stat);
    printf("link: %d, size %ld\n", S_ISLNK(stat.st_mode), (long)stat.st_size);
    SHOW(symlink("a", "dirlink"));
    SHOW(rmdir("dirlink"));
    SHOW(unlink("dirlink/"));
    SHOW(access("dirlink/file", R_OK));
    SHOW(unlink("dirlink"));
    SHOW(linkat(AT_FDCWD, "soft", AT_FDCWD, "hardsoft", 0));
    SHOW(linkat(AT_FDCWD, "soft", AT_FDCWD, "hardfile", AT_SYMLINK_FOLLOW));
    SHOW(linkat(AT_FDCWD, "soft", AT_FDCWD, "hardfile", 0xF000));
}

static void renaming(void)
{
    section("rename and unlink");
    struct stat stat;
    SHOW(rename("missing", "x"));
    SHOW(rename("hard", "renamed"));
    SHOW(rename("renamed", "renamed"));
    SHOW(rename("renamed", "a"));
    SHOW(rename("a", "renamed"));
    SHOW(rename("a", "a/inside"));
    SHOW(mkdir("empty", 0700));
    SHOW(mkdir("other", 0700));
    SHOW(rename("empty", "other"));
    SHOW(rename("other", "a"));
    SHOW(rename("a", "."));
    SHOW(rename("renamed", "a/file"));
    SHOW(RAW(renameat2, AT_FDCWD, "renamed", AT_FDCWD, "a/file", 1));
    SHOW(RAW(renameat2, AT_FDCWD, "renamed", AT_FDCWD, "other", 2));
    SHOW(RAW(renameat2, AT_FDCWD, "other", AT_FDCWD, "fresh", 1));
    SHOW(RAW(renameat2, AT_FDCWD, "fresh", AT_FDCWD, "x", 3));
    int fd = open("fresh", O_RDWR);
    SHOW(write(fd, "still here", 10));
    SHOW(unlink("fresh"));
    SHOW(unlink("fresh"));
    SHOW(open("fresh", O_RDONLY));
    SHOW(pread(fd, name, 20, 0));
    fstat(fd, &stat);
    printf("size %ld\n", (long)stat.st_size);
    SHOW(unlink("a"));
    SHOW(unlinkat(AT_FDCWD, "renamed", AT_REMOVEDIR));
    SHOW(unlinkat(AT_FDCWD, "renamed", 77));
    SHOW(unlinkat(99, "x", 0));
    SHOW(unlink(""));
    close(fd);
    list(".");
}

static void attributes(void)
{
    section("attributes");
    struct stat stat, other;
    struct statx wide;
    int fd = open("attributes", O_CREAT | O_RDWR, 0666);
    fstat(fd, &stat);
    printf("mode %o uid %u gid %u links %ld\n", stat.st_mode, stat.st_uid, stat.st_gid, (long)stat.st_nlink);
    SHOW(umask(077));
    close(open("private", O_CREAT | O_RDWR, 0666));
    SHOW(lstat("private", &stat));
    printf("mode %o\n", stat.st_mode);
    SHOW(umask(022));
    SHOW(chmod("attributes", 04755));
    SHOW(fchmod(fd, 01600));
    SHOW(fchmod(99, 0600));
    SHOW(chmod("missing", 0600));
    SHOW(chown("attributes", 12, 34));
    SHOW(fchown(fd, -1, 35));
    SHOW(lchown("soft", 1, 1));
    fstat(fd, &stat);
    printf("mode %o uid %u gid %u\n", stat.st_mode, stat.st_uid, stat.st_gid);
    struct timespec times[2] = {{1000, 5}, {2000, 6}};
    SHOW(futimens(fd, times));
    fstat(fd, &stat);
    printf("times %ld.%09ld %ld.%09ld\n", stat.st_atim.tv_sec, stat.st_atim.tv_nsec, stat.st_mtim.tv_sec,
           stat.st_mtim.tv_nsec);
    times[0].tv_nsec = UTIME_OMIT, times[1].tv_nsec = 1000000000;
    SHOW(futimens(fd, times));
    times[1].tv_nsec = UTIME_OMIT;
    SHOW(utimensat(AT_FDCWD, "missing", times, 0));
    SHOW(lstat("attributes", BAD));
    SHOW(lstat("attributes/x", &other));
    SHOW(fstat(99, &stat));
    SHOW(fstatat(AT_FDCWD, "soft", &stat, 0x8000000));
    SHOW(fstatat(fd, "", &stat, AT_EMPTY_PATH));
    SHOW(RAW(statx, AT_FDCWD, "attributes", 0, STATX_BASIC_STATS, &wide));
    printf("statx mode %o size %llu mask %#x\n", wide.stx_mode, wide.stx_size, wide.stx_mask & STATX_BASIC_STATS);
    SHOW(RAW(statx, AT_FDCWD, "attributes", 0, STATX_BASIC_STATS, BAD));
    SHOW(RAW(statx, AT_FDCWD, "attributes", 0x10000000, STATX_BASIC_STATS, &wide));
    SHOW(access("attributes", R_OK | W_OK));
    SHOW(access("private", X_OK));
    SHOW(access("attributes", 77));
    SHOW(faccessat(AT_FDCWD, "missing", F_OK, 0));
    SHOW(mkfifo("fifo", 0644));
    SHOW(mknod("node", S_IFREG | 0600, 0));
    SHOW(mknod("fifo", S_IFIFO | 0600, 0));
    SHOW(lstat("fifo", &stat));
    printf("fifo: %d\n", S_ISFIFO(stat.st_mode));
    close(fd);
}

// What permissions mean for somebody who is not root.
static void somebody(void)
{
    section("permissions");
    close(open("secret", O_CREAT | O_RDWR, 0600));
    mkdir("closed", 0700);
    SHOW(setgid(1000));
    SHOW(setuid(1000));
    SHOW(open("secret", O_RDONLY));
    SHOW(open("attributes", O_RDONLY));
    SHOW(access("secret", R_OK));
    SHOW(open("closed/x", O_RDONLY));
    SHOW(chmod("secret", 0666));
    SHOW(chown("secret", 1000, 1000));
    SHOW(open("fresh", O_CREAT | O_WRONLY, 0600));
    SHOW(unlink("secret"));
    SHOW(mkdir("more", 0700));
    SHOW(chdir("closed"));
    SHOW(setuid(0));
}

int main(void)
{
    directories();
    links();
    renaming();
    attributes();
    CHILD("somebody", somebody());
    return 0;
}
