// Limits and facts: rlimits, uname, getrandom, sysinfo, usage, identity.
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include "probe.h"

static char buffer[512];

static void resources(void)
{
    section("rlimits");
    struct rlimit limit, wrong = {5, 4};
    SHOW(getrlimit(RLIMIT_NOFILE, &limit));
    FACT(limit.rlim_cur >= 256 && limit.rlim_max >= limit.rlim_cur);
    SHOW(getrlimit(RLIMIT_STACK, &limit));
    printf("stack %lu\n", limit.rlim_cur);
    SHOW(getrlimit(77, &limit));
    SHOW(getrlimit(RLIMIT_CORE, BAD));
    SHOW(setrlimit(RLIMIT_CORE, &wrong));
    limit = (struct rlimit){10, 20};
    SHOW(setrlimit(RLIMIT_NOFILE, &limit));
    SHOW(dup2(0, 10));
    SHOW(dup2(0, 9));
    for (int fd = 3; fd < 9; fd++)
        dup2(0, fd);
    SHOW(open("/dev/null", O_RDONLY));
    int ends[2];
    SHOW(pipe(ends));
    SHOW(RAW(prlimit64, 0, RLIMIT_NOFILE, NULL, &limit));
    printf("%lu %lu\n", limit.rlim_cur, limit.rlim_max);
    SHOW(RAW(prlimit64, 99999, RLIMIT_NOFILE, NULL, &limit));
    for (int fd = 3; fd < 10; fd++)
        close(fd);
    limit = (struct rlimit){1000, 1000};
    SHOW(setrlimit(RLIMIT_FSIZE, &limit));
    int fd = open("small", O_RDWR | O_CREAT, 0600);
    signal(SIGXFSZ, SIG_IGN);
    SHOW(pwrite(fd, buffer, 512, 600));
    SHOW(pwrite(fd, buffer, 1, 1000));
    SHOW(ftruncate(fd, 2000));
    signal(SIGXFSZ, SIG_DFL);
    CHILD("file size", pwrite(fd, buffer, 1, 1000));
    limit = (struct rlimit){64 << 20, 64 << 20};
    CHILD("address space", setrlimit(RLIMIT_AS, &limit);
          WORKS((long)mmap(NULL, 128 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
    limit = (struct rlimit){1, 2};
    CHILD("processor time", setrlimit(RLIMIT_CPU, &limit); for (;;));
}

static void facts(void)
{
    section("facts");
    struct utsname name;
    SHOW(uname(&name));
    printf("%s %s %s\n", name.sysname, name.nodename, name.machine);
    SHOW(RAW(uname, BAD));
    SHOW(sethostname("other", 5));
    uname(&name);
    puts(name.nodename);
    SHOW(sethostname("baton", 5));
    SHOW(sethostname("x", 1000));
    SHOW(getrandom(buffer, 100, 0));
    SHOW(getrandom(buffer, 100, GRND_NONBLOCK));
    SHOW(getrandom(BAD, 100, 0));
    SHOW(getrandom(buffer, 100, 0x777));
    char other[16];
    getrandom(buffer, 16, 0), getrandom(other, 16, 0);
    FACT(memcmp(buffer, other, 16) != 0);
    struct sysinfo info;
    SHOW(sysinfo(&info));
    FACT(info.totalram > info.freeram && info.procs > 0 && info.mem_unit == 1);
    SHOW(sysinfo(BAD));
    struct rusage usage;
    SHOW(getrusage(RUSAGE_SELF, &usage));
    FACT(usage.ru_maxrss > 0);
    SHOW(getrusage(77, &usage));
    cpu_set_t set;
    CPU_ZERO(&set);
    SHOW(RAW(sched_getaffinity, 0, sizeof set, &set) > 0);
    printf("processors %d\n", CPU_COUNT(&set));
    SHOW(RAW(sched_getaffinity, 0, 1, &set));
    unsigned cpu = 77;
    SHOW(RAW(getcpu, &cpu, NULL, NULL));
    printf("cpu %u\n", cpu);
    SHOW(sched_getscheduler(0));
    SHOW(sysconf(_SC_PAGESIZE));
    SHOW(sysconf(_SC_NPROCESSORS_ONLN));
    SHOW(sysconf(_SC_CLK_TCK));
    gid_t list[4];
    SHOW(getgroups(0, list));
    SHOW(setgroups(2, (gid_t[]){5, 6}));
    SHOW(getgroups(4, list));
    printf("%u %u\n", list[0], list[1]);
    SHOW(getgroups(1, list));
    SHOW(syscall(9999));
    SHOW(syscall(-1));
    SHOW(prctl(PR_GET_DUMPABLE));
    SHOW(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    SHOW(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

int main(void)
{
    CHILD("resources", resources());
    facts();
    return 0;
}
