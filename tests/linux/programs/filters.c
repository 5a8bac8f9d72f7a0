// seccomp's filters: what programs are accepted, what they do to calls, who has them.
#include "probe.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/ptrace.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <ucontext.h>

// The C library's header of the same name does not go with the kernel's.
extern long ptrace(int request, ...);

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static long install(unsigned flags, struct sock_filter *code, unsigned len)
{
    struct sock_fprog program = {.len = len, .filter = code};
    return RAW(seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

// A filter that says VERDICT to call NUMBER.
static long about(unsigned flags, int number, unsigned verdict)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, verdict),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return install(flags, code, COUNT(code));
}

// Every code of one instruction that never runs, with others that make it whole: which are accepted.
static void accepted(void)
{
    section("programs");
    for (unsigned code = 0; code < 0x200; code++) {
        struct sock_filter program[] = {
            {BPF_ST, 0, 0, 4}, {BPF_RET, 0, 0, SECCOMP_RET_ALLOW}, {code, 1, 0, 4},
            {BPF_RET, 0, 0, 0}, {BPF_RET, 0, 0, 0}, {BPF_RET, 0, 0, 0}, {BPF_RET, 0, 0, 0},
            {BPF_RET, 0, 0, 0},
        };
        if (install(0, program, COUNT(program)) == 0)
            printf("code %#x\n", code);
    }
    static const struct sock_filter wrong[] = {
        {BPF_LD | BPF_ABS, 0, 0, 2},  {BPF_LD | BPF_ABS, 0, 0, 64}, {BPF_LD | BPF_MEM, 0, 0, 0},
        {BPF_LD | BPF_MEM, 0, 0, 16}, {BPF_ST, 0, 0, 16},           {BPF_JMP, 0, 0, 1},
        {BPF_JMP, 0, 0, 0xffffffff},  {BPF_JMP | BPF_JEQ, 1, 0, 0}, {BPF_ALU | BPF_DIV, 0, 0, 0},
        {BPF_ALU | BPF_LSH, 0, 0, 32},
    };
    for (unsigned at = 0; at < COUNT(wrong); at++) {
        struct sock_filter program[] = {wrong[at], {BPF_RET, 0, 0, SECCOMP_RET_ALLOW}};
        SHOW(install(0, program, 2));
    }
    struct sock_filter store = {BPF_ST, 0, 0, 0};
    SHOW(install(0, &store, 1));
    SHOW(install(0, &store, 0));
    SHOW(install(0, &store, 4097));
    SHOW(install(0, BAD, 1));
    SHOW(RAW(seccomp, SECCOMP_SET_MODE_FILTER, 0, BAD));
    SHOW(RAW(seccomp, SECCOMP_SET_MODE_FILTER, 1 << 20, BAD));
    SHOW(RAW(seccomp, 99, 0, 0));
    SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, BAD));
    SHOW(prctl(PR_SET_SECCOMP, 3, BAD));
}

static void available(void)
{
    section("actions");
    static const unsigned actions[] = {
        SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP, SECCOMP_RET_ERRNO,
        SECCOMP_RET_TRACE,        SECCOMP_RET_LOG,         SECCOMP_RET_ALLOW, 1,
    };
    for (unsigned at = 0; at < COUNT(actions); at++)
        SHOW(RAW(seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &actions[at]));
    SHOW(RAW(seccomp, SECCOMP_GET_ACTION_AVAIL, 1, &actions[0]));
    SHOW(RAW(seccomp, SECCOMP_GET_ACTION_AVAIL, 0, BAD));
}

static void errors(void)
{
    about(0, SYS_getppid, SECCOMP_RET_ERRNO | ENOTTY);
    SHOW(RAW(getppid));
    about(0, SYS_getpgid, SECCOMP_RET_ERRNO);
    SHOW(RAW(getpgid, 0));
    about(0, 500, SECCOMP_RET_ERRNO | EBUSY);
    SHOW(syscall(500));
    about(0, 100000, SECCOMP_RET_ERRNO | EXDEV);
    SHOW(syscall(100000));
    SHOW(syscall(100001));
    // What restricts more counts, and of two alike the newer one.
    about(0, SYS_getppid, SECCOMP_RET_LOG);
    SHOW(RAW(getppid));
    about(0, SYS_getppid, SECCOMP_RET_ERRNO | EDOM);
    SHOW(RAW(getppid));
    about(0, SYS_getsid, SECCOMP_RET_TRACE);
    SHOW(RAW(getsid, 0));
    about(0, SYS_getuid, SECCOMP_RET_USER_NOTIF);
    SHOW(RAW(getuid));
    SHOW(prctl(PR_GET_SECCOMP));
    SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
    CHILD("heir", SHOW(RAW(getppid)));
    char line[200];
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (strncmp(line, "Seccomp", 7) == 0 || strncmp(line, "NoNew", 5) == 0)
            fputs(line, stdout);
}

static void trapped(int signal, siginfo_t *info, void *context)
{
    ucontext_t *state = context;
    greg_t *registers = state->uc_mcontext.gregs;
    printf("signal %d, code %d, errno %d, call %d, arch %x\n", signal, info->si_code, info->si_errno,
           info->si_syscall, info->si_arch);
    FACT((greg_t)(uintptr_t)info->si_call_addr == registers[REG_RIP]);
    printf("rax %lld\n", registers[REG_RAX]);
    registers[REG_RAX] = 1234;
}

static void traps(void)
{
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, 0);
    about(0, SYS_getppid, SECCOMP_RET_TRAP | 77);
    SHOW(RAW(getppid));
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, 0);
    RAW(getppid);
}

static void *calls(void *unused)
{
    (void)unused;
    RAW(getppid);
    printf("the thread goes on\n");
    return 0;
}

static void kills(unsigned verdict)
{
    pthread_t thread;
    about(0, SYS_getppid, verdict);
    pthread_create(&thread, 0, calls, 0);
    pthread_join(thread, 0);
    printf("the first goes on\n");
    RAW(getppid);
}

static volatile int told;

static void *own_filter(void *flags)
{
    if (flags)
        about(0, SYS_getpgid, SECCOMP_RET_ERRNO | EDOM);
    told = 1;
    while (told != 2)
        usleep(1000);
    WORKS(RAW(getppid));
    return 0;
}

static void together(int own)
{
    pthread_t thread;
    told = 0;
    pthread_create(&thread, 0, own_filter, own ? "" : 0);
    while (told != 1)
        usleep(1000);
    long result = about(SECCOMP_FILTER_FLAG_TSYNC, SYS_getppid, SECCOMP_RET_ERRNO | ENOTTY);
    printf("synchronized: %s\n", result == 0 ? "yes" : result > 0 ? "a thread's id" : "error");
    SHOW(about(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH, SYS_getsid, SECCOMP_RET_ALLOW));
    told = 2;
    pthread_join(thread, 0);
}

static void unprivileged(void)
{
    if (setresuid(1000, 1000, 1000))
        return;
    SHOW(about(0, SYS_getppid, SECCOMP_RET_ERRNO));
    SHOW(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    SHOW(about(0, SYS_getppid, SECCOMP_RET_ERRNO));
    SHOW(RAW(getppid));
}

static void traced(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        about(0, SYS_getppid, SECCOMP_RET_TRACE | 5);
        raise(SIGSTOP);
        RAW(getppid);
        RAW(getppid);
        _exit(3);
    }
    int status;
    waitpid(child, &status, 0);
    ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD);
    for (int request = PTRACE_CONT;; request = request == PTRACE_CONT ? PTRACE_SYSCALL : PTRACE_CONT) {
        ptrace(request, child, 0, 0);
        waitpid(child, &status, 0);
        if (!WIFSTOPPED(status))
            break;
        struct ptrace_syscall_info info = {0};
        unsigned long message = 0;
        long len = ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info);
        printf("stopped: %#x, info %ld bytes, op %d\n", status >> 8, len, info.op);
        if (info.op == PTRACE_SYSCALL_INFO_SECCOMP) {
            ptrace(PTRACE_GETEVENTMSG, child, 0, &message);
            printf("call %llu, %u, message %lu\n", info.seccomp.nr, info.seccomp.ret_data, message);
        }
    }
    printf("ended: %#x\n", status);
}

static void recursion(void)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    int filters = 0;
    while (filters < 100 && install(0, &allow, 1) == 0)
        filters++;
    SHOW(filters);
}

int main(void)
{
    CHILD("programs", accepted());
    available();
    section("errors");
    CHILD("errors", errors());
    section("traps");
    CHILD("traps", traps());
    section("ends");
    CHILD("a thread", kills(SECCOMP_RET_KILL_THREAD));
    CHILD("the process", kills(SECCOMP_RET_KILL_PROCESS));
    CHILD("unknown", kills(0x12340000));
    section("threads");
    CHILD("together", together(0));
    CHILD("apart", together(1));
    section("rights");
    CHILD("unprivileged", unprivileged());
    section("tracer");
    traced();
    section("many");
    CHILD("many", recursion());
    return 0;
}
