// Random system calls with random arguments: `fuzz SEED COUNT [MIB]`. A watcher beside
// it forks, pipes and allocates all the time and must notice nothing. What the
// calls return is not printed, since it differs between systems by its nature.
// Between them an ordinary user's deeds: using up all that the system keeps for it,
// lengths that wrap around, and a set-id program that must not gain anything. MIB of
// memory are touched at a time; more than there is gets the program killed. With MIB every
// piece does such a deed.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include "probe.h"

enum { CALLS = 451, PIECE = 2000, PATIENCE_MS = 3000 };
// What a piece or its successor ends with when it got what nobody may get.
enum { WRAPPED = 76, GAINED = 77 };
static const char set_id[] = "set-id";

static uint64_t state;
static char arena[1 << 16];
static size_t most_memory = 16 << 20;
// One piece in so many does a deed.
static unsigned deed_one_in = 4;

static uint64_t next(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

// Calls that would end the fuzzing rather than test anything: they stop the
// process or the machine, wait for ever, or leave its directory.
static int unwanted(long number)
{
    static const short list[] = {
        SYS_exit, SYS_exit_group, SYS_pause, SYS_rt_sigsuspend, SYS_reboot, SYS_fork, SYS_vfork,
        SYS_clone, SYS_clone3, SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo,
        SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal, SYS_chroot, SYS_pivot_root, SYS_mount,
        SYS_umount2, SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module,
        SYS_rt_sigreturn, SYS_rt_sigtimedwait, SYS_iopl, SYS_ioperm, SYS_sethostname,
        SYS_setdomainname, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime,
        SYS_vhangup, SYS_ptrace, SYS_seccomp, SYS_prctl, SYS_arch_prctl, SYS_setuid, SYS_setsid,
        SYS_setrlimit, SYS_prlimit64, SYS_syslog, SYS_personality, SYS_sync, SYS_execve, SYS_execveat,
        SYS_munmap, SYS_mremap, SYS_brk, SYS_mprotect, SYS_pkey_mprotect, SYS_mmap, SYS_shmat,
        SYS_shmdt, SYS_remap_file_pages, SYS_rseq, SYS_set_robust_list, SYS_alarm, SYS_setitimer,
        SYS_swapon, SYS_swapoff, SYS_acct, SYS_delete_module, SYS_quotactl, SYS_nfsservctl,
        SYS_unshare, SYS_setns, SYS_move_mount, SYS_open_tree, SYS_mount_setattr, SYS_fsmount,
        SYS_fsopen, SYS_bpf, SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr,
        SYS_landlock_restrict_self, SYS_userfaultfd, SYS_io_uring_setup, SYS_io_uring_enter,
        SYS_process_madvise, SYS_mlockall, SYS_madvise, SYS_capset, SYS_process_vm_writev,
        SYS_timer_create, SYS_clock_nanosleep, SYS_nanosleep, SYS_wait4, SYS_waitid,
        SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_sigaltstack, SYS_modify_ldt, SYS_setpgid,
        335, // uretprobe, which newer kernels answer with a signal
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i] == number)
            return 1;
    return 0;
}

static long argument(void)
{
    switch (next() % 10) {
    case 0: return 0;
    case 1: return -(long)(next() % 3);
    case 2: return (long)(next() % 20);
    case 3: return (long)(next() % 65537);
    case 4: return (long)next();
    case 5: return (long)(next() & 0x7fffffffffff);
    case 6: return (long)(0xffff800000000000 | next());
    case 7: return 1L << next() % 64;
    default: return (long)(arena + next() % sizeof arena);
    }
}

static void on_alarm(int number)
{
    (void)number;
}

// Waits for a piece; one that has blocked the alarm and waits for ever is killed.
static int finished(pid_t child, int *status)
{
    struct timespec moment = {0, 1000000};
    for (int tries = 0; tries < PATIENCE_MS; tries++) {
        pid_t got = waitpid(child, status, WNOHANG);
        if (got != 0)
            return got == child;
        nanosleep(&moment, NULL);
    }
    kill(child, SIGKILL);
    return waitpid(child, status, 0) == child;
}

// Pipes, as full as they get.
static void fill_pipes(void)
{
    int ends[2];
    while (pipe2(ends, O_NONBLOCK) == 0)
        while (write(ends[1], arena, sizeof arena) > 0)
            ;
}

// Sockets whose messages carry sockets, until nothing more is taken.
static void pass_files(void)
{
    int pair[2];
    char room[CMSG_SPACE(2 * sizeof(int))] = {0};
    struct iovec text = {arena, 1 + next() % 4096};
    while (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) == 0) {
        struct msghdr msg = {.msg_iov = &text, .msg_iovlen = 1, .msg_control = room,
                             .msg_controllen = sizeof room};
        struct cmsghdr *rights = CMSG_FIRSTHDR(&msg);
        *rights = (struct cmsghdr){CMSG_LEN(sizeof pair), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(rights), pair, sizeof pair);
        int sent = 0;
        while (sent < 64 && sendmsg(pair[next() & 1], &msg, MSG_DONTWAIT) > 0)
            sent++;
        if (next() & 1)
            close(pair[0]), close(pair[1]);
        if (sent == 0)
            return;
    }
}

// Memory that is shared, and there.
static void share_memory(void)
{
    size_t bytes = 4096 << next() % 10;
    for (size_t all = 0; all < most_memory; all += bytes) {
        char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            return;
        for (size_t offset = 0; offset < bytes; offset += 4096)
            at[offset] = 1;
        if (next() % 4 == 0)
            munmap(at + (next() % bytes & ~4095UL), 4096);
    }
}

// Files of all lengths in a directory that is everybody's.
static void litter(void)
{
    for (int i = 0; i < 40; i++) {
        char name[40];
        snprintf(name, sizeof name, "/tmp/litter-%d", (int)(next() % 64));
        if (next() % 4 == 0)
            unlink(name);
        int file = open(name, O_CREAT | O_RDWR, 0600);
        pwrite(file, arena, 1 + next() % sizeof arena, (off_t)(next() % (1 << 20)));
        close(file);
    }
}

// Old lengths that reach beyond the end of all addresses: nothing may come of it.
static void wrap_around(void)
{
    char *at = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; at != MAP_FAILED && i < 16; i++) {
        char *from = at + (next() % 4 << 12);
        size_t old = -(size_t)from - (next() % 3 << 12) + (next() % 3 << 12) * 3;
        if ((uintptr_t)from + old >= (uintptr_t)from)
            old = -4096UL;
        size_t new = (1 + next() % 4) << 12 << (next() & 1 ? 0 : 8);
        if (mremap(from, old, new, next() & 1 ? MREMAP_MAYMOVE : 0) != MAP_FAILED)
            _exit(WRAPPED);
    }
}

// What an ordinary user does; the set-id program comes last, in the place of this one.
static void deed(void)
{
    switch (next() % 5) {
    case 0: fill_pipes(); break;
    case 1: pass_files(); break;
    case 2: share_memory(); break;
    case 3: litter(); break;
    default: wrap_around(); break;
    }
}

// Runs the program that would give user 0's rights, after having renounced them.
static void try_to_gain(void)
{
    char *const words[] = {(char *)set_id, NULL};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        execv(set_id, words);
}

// One piece of the work, in a process of its own that may die of it.
static void piece(long count)
{
    struct rlimit files = {64, 64}, size = {1 << 20, 1 << 20}, processes = {0, 0};
    setrlimit(RLIMIT_NOFILE, &files);
    setrlimit(RLIMIT_FSIZE, &size);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int number = 1; number < 32; number++)
        signal(number, SIG_IGN);
    signal(SIGSEGV, SIG_DFL), signal(SIGBUS, SIG_DFL);
    setgid(1000), setuid(1000);
    setrlimit(RLIMIT_NPROC, &processes);
    for (int fd = 0; fd < 64; fd++)
        close(fd);
    open("/dev/null", O_RDWR), open("/dev/zero", O_RDWR), open(".", O_RDONLY);
    int ends[2];
    pipe2(ends, O_NONBLOCK);
    // A call that waits is part of the game, but not for long.
    struct sigaction nothing = {.sa_handler = on_alarm};
    struct itimerval often = {{0, 20000}, {0, 20000}};
    sigaction(SIGALRM, &nothing, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (long i = 0; i < count; i++) {
        if (i % 64 == 0)
            for (size_t at = 0; at < sizeof arena; at += 8)
                *(uint64_t *)(arena + at) = next() % 3 == 0 ? next() : next() % 100;
        long number = (long)(next() % (CALLS + 3));
        long a = argument(), b = argument(), c = argument(), d = argument(), e = argument(), f = argument();
        if (!unwanted(number))
            syscall(number, a, b, c, d, e, f);
        if (i == count / 2 && next() % deed_one_in == 0)
            deed();
    }
    if (next() % 2)
        try_to_gain();
    _exit(0);
}

// Does ordinary things until it is told to end; its status says whether all of
// them came out as they should.
static void watcher(int told)
{
    char text[16];
    int good = 1;
    struct timespec pause_ms = {0, 20000000};
    while (read(told, text, 1) == -1) {
        int ends[2];
        good &= pipe(ends) == 0;
        pid_t child = fork();
        if (child == 0) {
            char *memory = calloc(1, 100000);
            good &= memory != NULL && memory[99999] == 0;
            write(ends[1], "watched", 7);
            _exit(good ? 7 : 1);
        }
        int status = 0;
        good &= child > 0 && waitpid(child, &status, 0) == child;
        good &= WIFEXITED(status) && WEXITSTATUS(status) == 7;
        good &= read(ends[0], text, 16) == 7 && memcmp(text, "watched", 7) == 0;
        close(ends[0]), close(ends[1]);
        nanosleep(&pause_ms, NULL);
    }
    _exit(good ? 0 : 1);
}

// A copy of this program that runs as user 0, whoever starts it.
static void prepare_set_id(const char *self)
{
    char text[4096];
    int from = open(self, O_RDONLY), to = open(set_id, O_WRONLY | O_CREAT | O_EXCL, 0700);
    for (ssize_t got; to != -1 && (got = read(from, text, sizeof text)) > 0;)
        if (write(to, text, (size_t)got) != got)
            break;
    fchmod(to, 04755);
    close(from), close(to);
}

int main(int argc, char **argv)
{
    if (argc == 1 && strcmp(argv[0], set_id) == 0)
        _exit(geteuid() == 0 && getuid() != 0 ? GAINED : 0);
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    long count = argc > 2 ? atol(argv[2]) : 100000;
    if (argc > 3)
        most_memory = strtoull(argv[3], NULL, 0) << 20, deed_one_in = 1;
    int told[2];
    pipe2(told, O_NONBLOCK);
    mkdir("room", 0777);
    chdir("room");
    prepare_set_id("/proc/self/exe");
    pid_t watch = fork();
    if (watch == 0)
        watcher(told[0]);
    for (long done = 0; done < count; done += PIECE) {
        state = (seed + (uint64_t)done) * 0x9e3779b97f4a7c15 | 1;
        pid_t child = fork();
        if (child == 0)
            piece(PIECE);
        int status = 0;
        if (child == -1 || !finished(child, &status))
            printf("piece %ld was lost\n", done);
        if (WIFEXITED(status) && WEXITSTATUS(status) == WRAPPED)
            printf("watcher: lengths that wrap around were taken\n");
        if (WIFEXITED(status) && WEXITSTATUS(status) == GAINED)
            printf("watcher: a set-id program gained rights that were renounced\n");
    }
    write(told[1], "x", 1);
    ended("watcher", watch);
    printf("fuzzed with seed %lu: %ld calls\n", (unsigned long)seed, count);
    return 0;
}
