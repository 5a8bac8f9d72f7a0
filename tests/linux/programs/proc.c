// /proc and /dev: that the files are there and have the form that programs expect.
#include <ctype.h>
#include <dirent.h>
#include <sys/sysmacros.h>
#include "probe.h"

static char text[65536];

static ssize_t slurp(const char *path)
{
    int fd = open(path, O_RDONLY);
    ssize_t total = 0, got;
    memset(text, 0, sizeof text);
    if (fd == -1)
        return -1;
    while ((got = read(fd, text + total, sizeof text - 1 - (size_t)total)) > 0)
        total += got;
    close(fd);
    return total;
}

static int has(const char *path, const char *words)
{
    return slurp(path) > 0 && strstr(text, words) != NULL;
}

static void self(const char *name)
{
    section("/proc/self");
    char path[256], target[256] = "";
    FACT(readlink("/proc/self", target, sizeof target) > 0 && atoi(target) == getpid());
    memset(target, 0, sizeof target);
    FACT(readlink("/proc/self/exe", target, sizeof target) > 0);
    printf("exe %s\n", target);
    memset(target, 0, sizeof target);
    SHOW(readlink("/proc/self/cwd", target, sizeof target) > 0);
    puts(target);
    SHOW(slurp("/proc/self/cmdline") == (ssize_t)strlen(name) + 1);
    puts(text);
    FACT(slurp("/proc/self/comm") > 0);
    printf("%s", text);
    int pid, parent, fields = 0;
    char state, word[64];
    slurp("/proc/self/stat");
    printf("stat %d\n", sscanf(text, "%d (%63[^)]) %c %d", &pid, word, &state, &parent));
    FACT(pid == getpid() && parent == getppid() && state == 'R');
    for (char *at = strtok(text, " "); at; at = strtok(NULL, " "))
        fields++;
    printf("fields %d\n", fields);
    FACT(has("/proc/self/status", "\nPid:\t") && has("/proc/self/status", "\nVmRSS:\t"));
    FACT(has("/proc/self/status", "\nState:\tR (running)\n") && has("/proc/self/status", "\nThreads:\t1\n"));
    FACT(has("/proc/self/maps", "[stack]") && has("/proc/self/maps", "r-xp"));
    FACT(has("/proc/self/maps", strrchr(name, '/')));
    int fd = open("/etc/passwd", O_RDONLY);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    memset(target, 0, sizeof target);
    SHOW(readlink(path, target, sizeof target));
    puts(target);
    int again = open(path, O_RDONLY);
    FACT(again != -1 && read(again, text, 5) == 5 && memcmp(text, "root:", 5) == 0);
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    printf("entries %d\n", count);
    SHOW(open("/proc/self/missing", O_RDONLY));
    SHOW(open("/proc/99999", O_RDONLY));
    SHOW(open("/proc/self/stat", O_WRONLY | O_CREAT | O_EXCL, 0600));
    SHOW(mkdir("/proc/x", 0700));
    SHOW(unlink("/proc/uptime"));
}

static void whole(void)
{
    section("/proc");
    FACT(has("/proc/meminfo", "MemTotal:") && has("/proc/meminfo", "MemAvailable:"));
    FACT(has("/proc/meminfo", " kB\n"));
    FACT(has("/proc/cpuinfo", "processor\t: 0\n"));
    double up = 0, idle = 0;
    slurp("/proc/uptime");
    printf("uptime %d\n", sscanf(text, "%lf %lf", &up, &idle));
    FACT(up > 0);
    FACT(has("/proc/mounts", " / "));
    FACT(has("/proc/stat", "cpu  ") && has("/proc/stat", "btime "));
    FACT(has("/proc/version", "version"));
    FACT(slurp("/proc/loadavg") > 0 && isdigit((unsigned char)text[0]));
    FACT(has("/proc/1/status", "Pid:\t1\n"));
    int numbers = 0, me = 0;
    DIR *dir = opendir("/proc");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        numbers += isdigit((unsigned char)entry->d_name[0]) != 0;
        me += atoi(entry->d_name) == getpid();
    }
    FACT(numbers >= 2 && me == 1);
    struct stat stat;
    SHOW(lstat("/proc/self/fd", &stat));
    FACT(S_ISDIR(stat.st_mode));
    SHOW(lstat("/proc/uptime", &stat));
    printf("mode %o size %ld\n", stat.st_mode, (long)stat.st_size);
}

static void device(const char *path)
{
    struct stat stat;
    if (lstat(path, &stat) == -1)
        printf("%s: %s\n", path, strerrorname_np(errno));
    else
        printf("%s: type %o %u:%u\n", path, stat.st_mode & S_IFMT, major(stat.st_rdev), minor(stat.st_rdev));
}

static void devices(void)
{
    section("/dev");
    const char *paths[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"};
    for (int i = 0; i < 7; i++)
        device(paths[i]);
    int null = open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDWR), full = open("/dev/full", O_RDWR);
    SHOW(read(null, text, 10));
    SHOW(write(null, text, 10));
    SHOW(write(null, BAD, 10));
    SHOW(lseek(null, 100, SEEK_SET));
    memset(text, 'x', 10);
    SHOW(read(zero, text, 10));
    FACT(text[0] == 0 && text[9] == 0 && text[10] != 'x');
    SHOW(read(zero, BAD, 10));
    SHOW(write(zero, text, 10));
    SHOW(read(full, text, 10));
    SHOW(write(full, text, 10));
    SHOW(ftruncate(null, 0));
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
    FACT(memory != MAP_FAILED && memory[5] == 0);
    int random = open("/dev/urandom", O_RDONLY);
    SHOW(read(random, text, 1000));
    SHOW(open("/dev/null", O_WRONLY | O_TRUNC | O_CREAT, 0600) > 0);
    SHOW(open("/dev/missing", O_RDONLY));
}

int main(int argc, char **argv)
{
    (void)argc;
    self(argv[0]);
    whole();
    devices();
    return 0;
}
