// ptrace: what a tracer is told of another process, call by call, signal by signal and
// instruction by instruction, and what it can change.
#include "probe.h"

#include <elf.h>
#include <linux/ptrace.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/uio.h>
#include <sys/user.h>

// The C library's header of the same name does not go with the kernel's.
extern long ptrace(int request, ...);

static pid_t child;
static int status;

// Tells what the child's stop or end is.
static int told(const char *when)
{
    pid_t who = waitpid(child, &status, __WALL);
    if (who != child) {
        printf("%s: waitpid: %s\n", when, strerrorname_np(errno));
        return 0;
    }
    if (WIFSTOPPED(status))
        printf("%s: stopped, signal %d, event %d\n", when, WSTOPSIG(status), status >> 16);
    else if (WIFSIGNALED(status))
        printf("%s: ended by signal %d\n", when, WTERMSIG(status));
    else
        printf("%s: exited with %d\n", when, WEXITSTATUS(status));
    return WIFSTOPPED(status);
}

static long go(int request, long signal)
{
    return ptrace(request, child, 0, signal);
}

// A child that is traced and has stopped.
static int begins(void (*body)(void))
{
    fflush(stdout);
    child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        body();
        _exit(0);
    }
    return told("begins");
}

static void some_calls(void)
{
    char byte = 'x';
    int ends[2];
    syscall(SYS_getppid);
    syscall(SYS_write, -1, &byte, 1);
    syscall(SYS_pipe2, ends, 0);
    syscall(SYS_write, ends[1], &byte, 1);
    syscall(SYS_read, ends[0], &byte, 1);
    syscall(500);
    syscall(SYS_kill, syscall(SYS_getpid), SIGUSR1);
    syscall(SYS_exit_group, 5);
}

// Every call with its arguments that are the same on every run, and its result.
static void calls(void)
{
    begins(some_calls);
    go(PTRACE_SETOPTIONS, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXIT);
    go(PTRACE_SYSCALL, 0);
    while (told("call")) {
        struct ptrace_syscall_info info = {0};
        long len = ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info);
        printf("  info: %ld bytes, op %d, arch %x\n", len, info.op, info.arch);
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
            printf("  call %llu\n", (unsigned long long)info.entry.nr);
        if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
            long value = info.exit.rval;
            int is_id = value == getpid() || value == child;
            printf("  result %ld, error %d\n", is_id ? 0 : value, info.exit.is_error);
        }
        siginfo_t about;
        if (go(PTRACE_GETSIGINFO, (long)&about) == 0)
            printf("  signal %d, code %d\n", about.si_signo, about.si_code);
        unsigned long message = 0;
        if (status >> 16 == PTRACE_EVENT_EXIT && go(PTRACE_GETEVENTMSG, (long)&message) == 0)
            printf("  message %lx\n", message);
        go(PTRACE_SYSCALL, 0);
    }
}

static void one_call(void)
{
    long result = syscall(SYS_getppid);
    syscall(SYS_exit_group, (int)result);
}

// A call is made another, its result another, and none at all.
static void changes(void)
{
    begins(one_call);
    struct user_regs_struct registers;
    go(PTRACE_SYSCALL, 0);
    told("entry");
    go(PTRACE_GETREGS, (long)&registers);
    printf("entry: %ld of %ld\n", (long)registers.rax, (long)registers.orig_rax);
    registers.orig_rax = SYS_getuid;
    SHOW(go(PTRACE_SETREGS, (long)&registers));
    go(PTRACE_SYSCALL, 0);
    told("exit");
    go(PTRACE_GETREGS, (long)&registers);
    printf("exit: %ld of %ld\n", (long)registers.rax, (long)registers.orig_rax);
    SHOW(ptrace(PTRACE_POKEUSR, child, offsetof(struct user_regs_struct, rax), 9));
    go(PTRACE_SYSCALL, 0);
    told("entry");
    errno = 0;
    SHOW(ptrace(PTRACE_PEEKUSR, child, offsetof(struct user_regs_struct, rdi), 0));
    SHOW(ptrace(PTRACE_POKEUSR, child, offsetof(struct user_regs_struct, orig_rax), -1L));
    go(PTRACE_SYSCALL, 0);
    told("none");
    go(PTRACE_GETREGS, (long)&registers);
    printf("none: %ld of %ld\n", (long)registers.rax, (long)registers.orig_rax);
    SHOW(go(PTRACE_KILL, 0));
    told("killed");
}

extern char stepped_start[], stepped_end[];

__attribute__((noinline)) static void stepped(void)
{
    __asm__ volatile(".globl stepped_start, stepped_end\n"
                     "stepped_start:\n nop\n mov $39, %%eax\n syscall\n pushfq\n pop %%rax\n nop\n"
                     "stepped_end:\n nop\n" ::: "rax", "rcx", "r11", "memory");
}

// From a breakpoint on, instruction by instruction.
static void steps(void)
{
    begins(stepped);
    long text = ptrace(PTRACE_PEEKTEXT, child, stepped_start, 0);
    printf("text: %lx\n", text & 0xFFFFFFFF);
    SHOW(ptrace(PTRACE_POKETEXT, child, stepped_start, (text & ~0xFFL) | 0xCC));
    FACT(*(unsigned char *)stepped_start == 0x90);
    go(PTRACE_CONT, 0);
    told("breakpoint");
    siginfo_t about;
    go(PTRACE_GETSIGINFO, (long)&about);
    printf("code %d\n", about.si_code);
    struct user_regs_struct registers;
    go(PTRACE_GETREGS, (long)&registers);
    FACT(registers.rip == (unsigned long)stepped_start + 1);
    registers.rip--;
    ptrace(PTRACE_POKETEXT, child, stepped_start, text);
    go(PTRACE_SETREGS, (long)&registers);
    for (int at = 0; at < 6; at++) {
        go(PTRACE_SINGLESTEP, 0);
        told("step");
        go(PTRACE_GETREGS, (long)&registers);
        printf("  at %ld, trap flag %d\n", (long)(registers.rip - (unsigned long)stepped_start),
               (int)(registers.eflags >> 8 & 1));
    }
    SHOW(go(PTRACE_CONT, 0));
    told("end");
}

static void handle(int signal)
{
    (void)signal;
    syscall(SYS_getpid);
}

static void signals_itself(void)
{
    signal(SIGUSR1, handle);
    signal(SIGUSR2, SIG_IGN);
    raise(SIGUSR1);
    raise(SIGUSR2);
    raise(SIGWINCH);
    raise(SIGTSTP);
    raise(SIGTERM);
}

// Which signals are told, and what comes of those that are let through, and of others instead.
static void signals(void)
{
    begins(signals_itself);
    SHOW(go(PTRACE_CONT, 0));
    told("caught");
    SHOW(go(PTRACE_SINGLESTEP, SIGUSR1));
    told("handler");
    sigset_t mask = {0};
    SHOW(ptrace(PTRACE_GETSIGMASK, child, 8, &mask));
    printf("mask %lx\n", *(unsigned long *)&mask);
    go(PTRACE_CONT, 0);
    told("ignored");
    go(PTRACE_CONT, SIGUSR2);
    told("harmless");
    go(PTRACE_CONT, SIGWINCH);
    told("stop");
    go(PTRACE_CONT, 0);
    told("term");
    go(PTRACE_CONT, SIGKILL);
    told("end");
}

static int ready[2];

static void waits_for_byte(void)
{
    char byte;
    if (read(ready[0], &byte, 1) == 1)
        _exit(byte);
    _exit(1);
}

// A process that did not ask for it, in the middle of a call.
static void strangers(void)
{
    struct user_regs_struct registers;
    if (pipe(ready) != 0)
        return;
    fflush(stdout);
    child = fork();
    if (child == 0)
        waits_for_byte();
    usleep(100000);
    SHOW(go(PTRACE_SEIZE, PTRACE_O_TRACESYSGOOD));
    SHOW(go(PTRACE_ATTACH, 0));
    SHOW(go(PTRACE_CONT, 0));
    SHOW(go(PTRACE_INTERRUPT, 0));
    told("interrupted");
    go(PTRACE_GETREGS, (long)&registers);
    printf("%ld of %ld\n", (long)registers.rax, (long)registers.orig_rax);
    SHOW(go(PTRACE_LISTEN, 0));
    SHOW(go(PTRACE_CONT, 0));
    SHOW(go(PTRACE_INTERRUPT, 0));
    told("interrupted");
    SHOW(go(PTRACE_CONT, 0));
    kill(child, SIGSTOP);
    told("stop signal");
    SHOW(go(PTRACE_CONT, SIGSTOP));
    told("group stop");
    siginfo_t about;
    SHOW(go(PTRACE_GETSIGINFO, (long)&about));
    SHOW(go(PTRACE_LISTEN, 0));
    kill(child, SIGCONT);
    told("continued");
    SHOW(go(PTRACE_DETACH, 0));
    SHOW(write(ready[1], "*", 1));
    told("end");
    // And by the old way.
    fflush(stdout);
    child = fork();
    if (child == 0)
        waits_for_byte();
    SHOW(go(PTRACE_ATTACH, 0));
    told("attached");
    SHOW(go(PTRACE_INTERRUPT, 0));
    SHOW(go(PTRACE_DETACH, SIGTERM));
    told("end");
    SHOW(go(PTRACE_ATTACH, 0));
    SHOW(ptrace(PTRACE_ATTACH, getpid(), 0, 0));
}

static void *second(void *unused)
{
    return unused;
}

static void family(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(3);
    waitpid(pid, NULL, 0);
    pid = vfork();
    if (pid == 0)
        _exit(4);
    waitpid(pid, NULL, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, second, NULL);
    pthread_join(thread, NULL);
    execl("/bin/true", "true", (char *)NULL);
}

// Children, threads and programs of a traced process. Who stops when is not the same on every run;
// what is told of the first one is.
static void births(void)
{
    begins(family);
    pid_t first = child;
    go(PTRACE_SETOPTIONS, PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                              PTRACE_O_TRACEEXEC | PTRACE_O_TRACEVFORKDONE | PTRACE_O_EXITKILL);
    go(PTRACE_CONT, 0);
    int stops = 0, ends = 0, sum = 0;
    for (;;) {
        pid_t who = waitpid(-1, &status, __WALL);
        if (who < 0)
            break;
        int event = status >> 16, stop = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
        if (who == first && event)
            printf("event %d\n", event);
        if (who != first && WIFSTOPPED(status))
            stops++;
        if (who != first && WIFEXITED(status)) {
            ends++;
            sum += WEXITSTATUS(status);
        }
        if (who == first && WIFEXITED(status))
            printf("first exited with %d\n", WEXITSTATUS(status));
        if (WIFSTOPPED(status))
            ptrace(PTRACE_CONT, who, 0, event || stop == SIGSTOP || stop == SIGTRAP ? 0 : stop);
    }
    printf("others: %d stops, %d ends, sum %d\n", stops, ends, sum);
}

static const char shared_text[] = "text that nobody writes";

static void nothing(void)
{
    _exit(shared_text[0]);
}

// Memory and registers, and what is refused.
static void looks(void)
{
    begins(nothing);
    char copy[8] = "", path[32];
    struct iovec own = {copy, 8}, other = {(void *)shared_text, 8};
    SHOW(process_vm_readv(child, &own, 1, &other, 1, 0));
    SHOW(process_vm_writev(child, &own, 1, &other, 1, 0));
    snprintf(path, sizeof path, "/proc/%d/mem", child);
    int memory = open(path, O_RDWR);
    FACT(memory >= 0);
    SHOW(pread(memory, copy, 8, (off_t)shared_text));
    SHOW(pwrite(memory, "TEXT", 4, (off_t)shared_text));
    SHOW(pread(memory, copy, 8, 8));
    FACT(shared_text[0] == 't');
    close(memory);
    errno = 0;
    SHOW(ptrace(PTRACE_PEEKDATA, child, 8, 0));
    SHOW(ptrace(PTRACE_POKEDATA, child, 8, 0));
    SHOW(ptrace(PTRACE_PEEKUSR, child, 3, 0));
    SHOW(ptrace(PTRACE_PEEKUSR, child, 2000, 0));
    SHOW(ptrace(PTRACE_GETREGS, child, 0, BAD));
    SHOW(ptrace(PTRACE_SETREGS, child, 0, BAD));
    SHOW(ptrace(PTRACE_SETOPTIONS, child, 0, 1L << 40));
    SHOW(ptrace(PTRACE_CONT, child, 0, 1000));
    SHOW(ptrace(PTRACE_GETREGSET, child, 77, BAD));
    SHOW(ptrace(12345, child, 0, 0));
    struct user_regs_struct registers;
    struct iovec set = {&registers, sizeof registers};
    SHOW(ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &set));
    FACT(set.iov_len == sizeof registers);
    printf("selectors %lx %lx\n", (long)registers.cs, (long)registers.ss);
    static char vector[8192];
    set = (struct iovec){vector, sizeof vector};
    SHOW(ptrace(PTRACE_GETREGSET, child, NT_X86_XSTATE, &set));
    FACT(set.iov_len > 512);
    SHOW(ptrace(PTRACE_SETREGSET, child, NT_X86_XSTATE, &set));
    SHOW(ptrace(PTRACE_CONT, child, 0, 0));
    told("end");
    SHOW(ptrace(PTRACE_CONT, child, 0, 0));
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    calls();
    changes();
    steps();
    signals();
    strangers();
    births();
    looks();
    return 0;
}
