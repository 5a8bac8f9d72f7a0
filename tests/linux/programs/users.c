// Namespaces of users: what an ordinary user is and may do in one of its own.
#include "probe.h"

#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/ptrace.h>

static int set(const char *path, const char *text)
{
    int file = open(path, O_WRONLY), result = -1;
    if (file >= 0)
        result = write(file, text, strlen(text));
    int error = errno;
    close(file);
    errno = error;
    return result;
}

static void say(const char *path)
{
    char text[400];
    int file = open(path, O_RDONLY), size = file < 0 ? 0 : read(file, text, sizeof text);
    printf("%s: %.*s", path, size < 0 ? 0 : size, text);
    close(file);
}

static void ids(void)
{
    printf("ids: %d %d %d %d\n", getuid(), geteuid(), getgid(), getegid());
}

static void owner(const char *path)
{
    struct stat state = {0};
    SHOW(stat(path, &state));
    printf("%s is of %d, %d\n", path, state.st_uid, state.st_gid);
}

static void maps(void)
{
    SHOW(unshare(CLONE_NEWUSER));
    ids();
    owner("/");
    SHOW(set("/proc/self/uid_map", "0 0 1"));
    SHOW(set("/proc/self/uid_map", "0 1000 2"));
    SHOW(set("/proc/self/uid_map", "0 1000"));
    SHOW(set("/proc/self/uid_map", "0 1000 0"));
    SHOW(set("/proc/self/gid_map", "0 1000 1"));
    SHOW(set("/proc/self/setgroups", "deny"));
    SHOW(set("/proc/self/setgroups", "allow"));
    SHOW(set("/proc/self/gid_map", "0 1000 1"));
    SHOW(unshare(CLONE_NEWUSER));
    SHOW(set("/proc/self/uid_map", "0 1000 1\n"));
    SHOW(set("/proc/self/uid_map", "0 1000 1\n"));
    say("/proc/self/uid_map");
    say("/proc/self/gid_map");
    say("/proc/self/setgroups");
    ids();
    owner("mine");
    SHOW(setuid(1));
    SHOW(setgid(1));
    SHOW(setresuid(0, 0, 0));
    SHOW(setgroups(0, NULL));
    SHOW(chown("mine", 0, 0));
    SHOW(chown("mine", 1, 0));
    SHOW(chown("/", 0, 0));
    SHOW(chmod("/", 0777));
    SHOW(mknod("device", S_IFCHR | 0666, 0x101));
    SHOW(sethostname("other", 5));
    SHOW(kill(1, 0));
    SHOW(ptrace(PTRACE_ATTACH, getppid(), 0, 0));
    SHOW(open("/proc/1/ns/user", O_RDONLY));
    SHOW(unshare(CLONE_NEWUSER));
    SHOW(set("/proc/self/uid_map", "5 0 1"));
    say("/proc/self/uid_map");
    printf("user %d\n", getuid());
}

static void mounts(void)
{
    int outside = open("/proc/self/ns/user", O_RDONLY);
    SHOW(mount("none", "place", "tmpfs", 0, ""));
    SHOW(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWPID));
    SHOW(setns(outside, 0));
    SHOW(sethostname("other", 5));
    SHOW(mount("none", "place", "tmpfs", 0, ""));
    SHOW(umount2("place", 0));
    SHOW(mount("none", "place", "proc", 0, ""));
    SHOW(umount2("/proc", 0));
    SHOW(umount2("/proc", MNT_DETACH));
    SHOW(mount("/proc", "place", "", MS_MOVE, ""));
    SHOW(mount("/", "place", "", MS_BIND, ""));
    SHOW(mount("/", "place", "", MS_BIND | MS_REC, ""));
    SHOW(umount2("place", MNT_DETACH));
    SHOW(mount("none", "place", "devtmpfs", 0, ""));
    CHILD("init", {
        SHOW(getpid());
        SHOW(mount("proc", "place", "proc", 0, ""));
        SHOW(access("place/1/stat", F_OK));
        SHOW(access("place/2/stat", F_OK));
    });
}

static void as_user(void (*what)(void))
{
    if (setgroups(0, NULL) || setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000))
        printf("not an ordinary user\n");
    // Its files in /proc are its own only then.
    RAW(prctl, 4, 1, 0, 0, 0);
    close(open("mine", O_RDWR | O_CREAT, 0600));
    mkdir("place", 0700);
    what();
}

int main(void)
{
    chmod(".", 0777);
    section("maps");
    CHILD("maps", as_user(maps));
    section("mounts");
    CHILD("mounts", as_user(mounts));
    section("root");
    CHILD("root", {
        SHOW(unshare(CLONE_NEWUSER));
        SHOW(set("/proc/self/uid_map", "0 0 1\n5 100000 10"));
        SHOW(set("/proc/self/gid_map", "0 0 1\n5 100000 10"));
        say("/proc/self/uid_map");
        SHOW(setgroups(0, NULL));
        SHOW(setresuid(7, 7, 7));
        ids();
    });
    return 0;
}
