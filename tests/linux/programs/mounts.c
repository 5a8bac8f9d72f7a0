// Mounts: bound directories and files, namespaces of them, who hears of what, and a new root.
#include "probe.h"

#include <sched.h>
#include <sys/mount.h>

#ifndef MNT_DETACH
#define MNT_DETACH 2
#endif

// What mountinfo says of the places below the directory that all this is in, without numbers.
static void mounts(const char *below)
{
    char line[1024];
    FILE *file = fopen("/proc/self/mountinfo", "r");
    size_t length = strlen(below);
    while (file && fgets(line, sizeof line, file)) {
        char root[256], place[256], options[256], rest[512] = "";
        if (sscanf(line, "%*d %*d %*s %255s %255s %255s %511[^\n]", root, place, options, rest) < 3)
            continue;
        if (strncmp(place, below, length) || (place[length] && place[length] != '/'))
            continue;
        char *kind = strstr(rest, "- ");
        printf("mount %s (%s) %s%s%s, %s\n", place + length, strncmp(root, below, length) ? root : root + length,
               options, strstr(rest, "shared:") ? " shared" : "", strstr(rest, "master:") ? " master" : "",
               kind && !strncmp(kind, "- tmpfs", 7) ? "tmpfs" : "another");
    }
    if (file)
        fclose(file);
}

static int make(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    return fd < 0 ? fd : close(fd);
}

static int is_there(const char *path)
{
    struct stat state;
    return !stat(path, &state);
}

static void binding(const char *here)
{
    SHOW(mkdir("a", 0755));
    SHOW(mkdir("a/in", 0755));
    SHOW(mkdir("b", 0755));
    SHOW(make("a/in/file"));
    SHOW(make("over"));
    SHOW(mount("a/in", "b", "", MS_BIND, NULL));
    FACT(is_there("b/file"));
    mounts(here);
    SHOW(mount("none", "b", "", MS_REMOUNT | MS_BIND | MS_RDONLY, NULL));
    SHOW(make("b/new"));
    SHOW(open("b/file", O_RDWR));
    SHOW(chmod("b/file", 0600));
    SHOW(unlink("b/file"));
    SHOW(access("b/file", W_OK));
    SHOW(rename("b/file", "a/in/file2"));
    SHOW(link("b/file", "a/in/file2"));
    SHOW(chmod("a/in/file", 0600));
    SHOW(rmdir("b"));
    SHOW(rename("b", "c"));
    mounts(here);
    int fd = open("b/file", O_RDONLY);
    SHOW(umount("b"));
    close(fd);
    SHOW(umount("b"));
    SHOW(umount("b"));
    SHOW(mount("a/in/file", "b", "", MS_BIND, NULL));
    SHOW(mount("a", "over", "", MS_BIND, NULL));
    SHOW(mount("a/in/file", "over", "", MS_BIND, NULL));
    SHOW(unlink("over"));
    SHOW(umount("over"));
}

static void trees(const char *here)
{
    SHOW(mount("none", "a/in", "tmpfs", MS_NOSUID | MS_NODEV, NULL));
    SHOW(make("a/in/inner"));
    SHOW(mount("a", "b", "", MS_BIND, NULL));
    FACT(is_there("b/in/inner"));
    SHOW(umount("b"));
    SHOW(mount("a", "b", "", MS_BIND | MS_REC, NULL));
    FACT(is_there("b/in/inner"));
    SHOW(umount("b"));
    SHOW(mkdir("c", 0755));
    SHOW(mount("b", "c", "", MS_MOVE, NULL));
    FACT(is_there("c/in/inner"));
    SHOW(mount("c", "c/in", "", MS_MOVE, NULL));
    SHOW(mount("a/in/inner", "c", "", MS_MOVE, NULL));
    mounts(here);
    SHOW(umount2("c", MNT_DETACH));
    FACT(is_there("c/in"));
    SHOW(umount2("c", 0x100));
    SHOW(umount("a/in"));
}

static void sharing(const char *here)
{
    SHOW(mount("none", "a", "tmpfs", 0, NULL));
    SHOW(mount("none", "a", NULL, MS_SHARED, NULL));
    SHOW(mount("none", "a/none", NULL, MS_SHARED, NULL));
    SHOW(mount("none", "b", NULL, MS_SHARED, NULL));
    SHOW(mount("none", "a", NULL, MS_SHARED | MS_PRIVATE, NULL));
    SHOW(mkdir("a/m", 0755));
    CHILD("slave", {
        SHOW(unshare(CLONE_NEWNS));
        SHOW(mount("none", "a", NULL, MS_SLAVE, NULL));
        SHOW(mount("none", "a/m", "tmpfs", 0, NULL));
        mounts(here);
    });
    FACT(!is_there("a/m/file"));
    mounts(here);
    CHILD("peer", {
        SHOW(unshare(CLONE_NEWNS));
        SHOW(mount("none", "a/m", "tmpfs", 0, NULL));
        SHOW(make("a/m/file"));
    });
    FACT(is_there("a/m/file"));
    mounts(here);
    SHOW(umount("a/m"));
    SHOW(mount("none", "a", NULL, MS_UNBINDABLE, NULL));
    SHOW(mount("a", "b", "", MS_BIND, NULL));
    SHOW(umount("a"));
    SHOW(mount("none", "a", "tmpfs", MS_NOEXEC, NULL));
    SHOW(make("a/program"));
    SHOW(chmod("a/program", 0755));
    SHOW(execl("a/program", "program", NULL));
    SHOW(mount("none", "a", NULL, MS_REMOUNT | MS_BIND, NULL));
    SHOW(execl("a/program", "program", NULL));
    SHOW(umount("a"));
}

static void new_root(void)
{
    SHOW(unshare(CLONE_NEWNS | CLONE_FS));
    SHOW(mount("none", "b", "tmpfs", 0, NULL));
    SHOW(mkdir("b/old", 0755));
    SHOW(RAW(pivot_root, "b", "b/old"));
    SHOW(chroot("b"));
    SHOW(chdir("/"));
    SHOW(mkdir("new", 0755));
    SHOW(mount("none", "new", "tmpfs", 0, NULL));
    SHOW(mkdir("new/put", 0755));
    SHOW(RAW(pivot_root, "/new", "/old"));
    SHOW(RAW(pivot_root, "/old", "/new/put"));
    SHOW(RAW(pivot_root, "/new", "/new/put"));
    FACT(is_there("/put/old"));
    SHOW(umount2("/put", MNT_DETACH));
    FACT(!is_there("/put/old"));
}

int main(void)
{
    char here[256];
    ino_t before;
    struct stat state = {0};
    if (!getcwd(here, sizeof here))
        return 1;
    stat("/proc/self/ns/mnt", &state);
    before = state.st_ino;
    int first = open("/proc/self/ns/mnt", O_RDONLY);
    SHOW(unshare(CLONE_NEWNS));
    stat("/proc/self/ns/mnt", &state);
    FACT(state.st_ino != before);
    SHOW(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
    binding(here);
    trees(here);
    sharing(here);
    CHILD("new root", new_root());
    SHOW(RAW(clone, CLONE_NEWNS | CLONE_FS | SIGCHLD, 0, 0, 0, 0));
    SHOW(setns(first, CLONE_NEWUTS));
    SHOW(setns(first, CLONE_NEWNS));
    stat("/proc/self/ns/mnt", &state);
    FACT(state.st_ino == before);
    if (setresuid(1000, 1000, 1000))
        return 1;
    SHOW(unshare(CLONE_NEWNS));
    SHOW(mount("a", "b", "", MS_BIND, NULL));
    SHOW(umount("/proc"));
    SHOW(RAW(pivot_root, "/", "/"));
    SHOW(setns(first, CLONE_NEWNS));
    return 0;
}
