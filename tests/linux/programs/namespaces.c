// Namespaces of the system's names: who sees which, and files that are namespaces.
#include "probe.h"

#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>

static void host(const char *who)
{
    struct utsname names;
    char told[80] = "";
    FILE *file = fopen("/proc/sys/kernel/hostname", "r");
    uname(&names);
    if (!file || !fgets(told, sizeof told, file))
        printf("no name in /proc\n");
    if (file)
        fclose(file);
    told[strcspn(told, "\n")] = 0;
    printf("%s: %s, %s\n", who, names.nodename, strcmp(told, names.nodename) ? "another in /proc" : "in /proc, too");
}

static ino_t number(void)
{
    struct stat state = {0};
    stat("/proc/self/ns/uts", &state);
    return state.st_ino;
}

static void names(int first)
{
    ino_t before = number();
    SHOW(unshare(CLONE_NEWUTS));
    FACT(number() != before);
    SHOW(sethostname("second", 6));
    host("second");
    int second = open("/proc/self/ns/uts", O_RDONLY);
    CHILD("heir", host("heir"));
    SHOW(setns(first, 0));
    FACT(number() == before);
    host("first again");
    SHOW(setns(second, CLONE_NEWUTS));
    host("second again");
    pid_t parent = getppid();
    int pidfd = RAW(pidfd_open, parent, 0);
    SHOW(setns(pidfd, 0));
    SHOW(setns(pidfd, CLONE_NEWUTS));
    host("by a process");
}

static void refusals(int first)
{
    int file = open("file", O_RDWR | O_CREAT, 0600), users = open("/proc/self/ns/user", O_RDONLY);
    char byte;
    SHOW(setns(-1, CLONE_NEWUTS));
    SHOW(setns(file, CLONE_NEWUTS));
    SHOW(setns(file, 0));
    SHOW(setns(first, CLONE_NEWUSER));
    SHOW(setns(first, -1));
    SHOW(setns(users, 0));
    SHOW(open("/proc/self/ns/uts", O_RDWR));
    SHOW(read(first, &byte, 1));
    SHOW(ioctl(first, NS_GET_PARENT));
    SHOW(ioctl(first, NS_GET_OWNER_UID, &byte));
    FACT(ioctl(first, NS_GET_NSTYPE) == CLONE_NEWUTS);
    FACT(ioctl(users, NS_GET_NSTYPE) == CLONE_NEWUSER);
    WORKS(ioctl(first, NS_GET_USERNS));
    SHOW(ioctl(users, NS_GET_USERNS));
    SHOW(ioctl(users, NS_GET_PARENT));
    uid_t owner = 1;
    SHOW(ioctl(users, NS_GET_OWNER_UID, &owner));
    FACT(owner == 0);
    SHOW(unshare(-1));
    if (setresuid(1000, 1000, 1000))
        return;
    SHOW(unshare(CLONE_NEWUTS));
    SHOW(unshare(CLONE_NEWNS));
    SHOW(RAW(clone, CLONE_NEWUTS | SIGCHLD, 0, 0, 0, 0));
    SHOW(setns(first, 0));
}

int main(void)
{
    char link[80] = "";
    SHOW(unshare(CLONE_NEWUTS));
    SHOW(sethostname("first", 5));
    host("first");
    WORKS(readlink("/proc/self/ns/uts", link, sizeof link - 1));
    printf("a link: %.5s\n", link);
    int first = open("/proc/self/ns/uts", O_RDONLY);
    section("names");
    CHILD("names", names(first));
    host("first");
    section("a child of its own");
    fflush(stdout);
    pid_t child = RAW(clone, CLONE_NEWUTS | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        sethostname("third", 5);
        host("third");
        _exit(0);
    }
    ended("third", child);
    host("first");
    section("refused");
    CHILD("refused", refusals(first));
    return 0;
}
