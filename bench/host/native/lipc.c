// Local IPC in user mode (Wenske 2002, section 4.1 and 5.2) in an ordinary process, in
// real cycles of the machine at hand, beside a plain function call, `swapcontext`, and
// a futex ping-pong of two kernel threads.
//
// Two threads of the user level share this process's one kernel thread. Each has a UTCB
// with its status, stack pointer and instruction pointer; the IPC checks that the
// partner waits for the caller, exchanges the states, switches stacks. Message words
// stay in registers. What is missing beside a real kernel is the lazy fix-up, which
// costs the path nothing.
//
// Cycles are those of the time stamp counter. Prints `row NAME MEDIAN low=.. high=..
// samples=..` where low and high are the 5th and 95th percentile.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { SAMPLES = 201, ROUNDS = 10000, FEW_ROUNDS = 300, STACK_BYTES = 65536 };

struct utcb {
    struct utcb *status; // whom this thread waits for; itself while it runs
    void *sp, *ip;
    uint64_t global_id;
    uint64_t padding[4];
} __attribute__((aligned(64)));

struct utcb utcbs[2];
struct utcb *current_utcb;

// lipc(RDI from, RSI to, RDX message) -> RAX message: the caller's own UTCB is RDI, as
// it is at every system call of Baton. Falls back (here: reports) unless the partner
// waits for exactly this thread. The callee-saved registers are the stub's business.
//
// How it returns matters: RET is predicted by the processor's stack of return
// addresses, which is the other thread's after the switch, so each RET costs a
// misprediction. POP and JMP are predicted from history. Both are measured.
#define LIPC(name, leave)                                           \
    __asm__(".globl " name "\n"                                     \
            ".balign 64\n"                                          \
            name ":\n"                                              \
            "    cmp  [rsi], rdi\n"      /* the partner waits for us */ \
            "    jne  2f\n"                                         \
            "    lea  rax, [rip + 1f]\n" /* from here on the kernel would complete it */ \
            "    mov  [rdi + 16], rax\n"                            \
            "    mov  [rdi + 8], rsp\n"                             \
            "    mov  [rdi], rsi\n"      /* we wait for it */        \
            "    mov  [rsi], rsi\n"      /* it runs */               \
            "    mov  [rip + current_utcb], rsi\n"                  \
            "    mov  rsp, [rsi + 8]\n"                             \
            "    mov  rax, rdx\n"                                   \
            "    jmp  [rsi + 16]\n"                                 \
            "1:  " leave "\n"                                       \
            "2:  mov  rax, -1\n"         /* fall back to the kernel */ \
            "    ret\n")
LIPC("lipc", "pop rcx\n jmp rcx");
LIPC("lipc_ret", "ret");

// The exchange as a thread sees it: what the switch may destroy is declared, but for
// RBP, which cannot be. (Compiled without a red zone: the stack is in use.)
#define EXCHANGE(function, name)                                                   \
    static inline uint64_t function(struct utcb *from, struct utcb *to, uint64_t message) \
    {                                                                              \
        uint64_t answer;                                                           \
        __asm__ volatile("push rbp\n call " name "\n pop rbp"                      \
                         : "=a"(answer), "+D"(from), "+S"(to), "+d"(message)       \
                         :                                                         \
                         : "rcx", "rbx", "r8", "r9", "r10", "r11", "r12", "r13",   \
                           "r14", "r15", "memory", "cc");                          \
        return answer;                                                             \
    }
EXCHANGE(exchange, "lipc")
EXCHANGE(exchange_ret, "lipc_ret")

static void serve(void)
{
    uint64_t message = 0;
    for (;;)
        message = exchange(&utcbs[1], &utcbs[0], message + 1);
}

static void serve_ret(void)
{
    for (;;)
        exchange_ret(&utcbs[1], &utcbs[0], 0);
}

static inline uint64_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("lfence\n rdtsc\n lfence" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

// Runs `operation` for `rounds` rounds, SAMPLES times; `per_round` operations each.
static void measure(const char *name, void (*operation)(int rounds), int rounds, int per_round)
{
    static double cycles[SAMPLES];
    operation(rounds);
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t from = ticks();
        operation(rounds);
        cycles[i] = (double)(ticks() - from) / rounds / per_round;
    }
    qsort(cycles, SAMPLES, sizeof *cycles, by_value);
    printf("row %s %.2f low=%.2f high=%.2f samples=%d\n", name, cycles[SAMPLES / 2],
           cycles[SAMPLES / 20], cycles[SAMPLES - 1 - SAMPLES / 20], SAMPLES);
}

static void lipc_rounds(int rounds)
{
    uint64_t message = 0;
    for (int i = 0; i < rounds; i++)
        message = exchange(&utcbs[0], &utcbs[1], message);
}

static void lipc_ret_rounds(int rounds)
{
    for (int i = 0; i < rounds; i++)
        exchange_ret(&utcbs[0], &utcbs[1], 0);
}

static void check_lipc(void)
{
    uint64_t answer = 0;
    for (int i = 0; i < 1000; i++)
        answer = exchange(&utcbs[0], &utcbs[1], answer);
    if (answer != 1000 || current_utcb != &utcbs[0]) {
        printf("bench FAILED: 1000 local IPCs gave %llu\n", (unsigned long long)answer);
        exit(1);
    }
    // A partner that waits for somebody else is left alone.
    struct utcb *waits_for = utcbs[1].status;
    utcbs[1].status = &utcbs[1];
    if (exchange(&utcbs[0], &utcbs[1], 5) != UINT64_MAX) {
        printf("bench FAILED: a local IPC to a thread that does not wait went through\n");
        exit(1);
    }
    utcbs[1].status = waits_for;
}

static void begin_lipc(void (*server)(void))
{
    static char stack[STACK_BYTES] __attribute__((aligned(64)));
    utcbs[1].sp = stack + sizeof stack - 72;
    utcbs[1].ip = (void *)server;
    utcbs[1].status = &utcbs[0];
    utcbs[0].status = &utcbs[0];
    current_utcb = &utcbs[0];
}

__attribute__((noinline, noclone)) static uint64_t plain(uint64_t value)
{
    __asm__ volatile("" : "+r"(value));
    return value + 1;
}

static void call_rounds(int rounds)
{
    uint64_t value = 0;
    for (int i = 0; i < rounds; i++)
        value = plain(value);
    __asm__ volatile("" : : "r"(value));
}

static ucontext_t contexts[2];

static void swap_server(void)
{
    for (;;)
        swapcontext(&contexts[1], &contexts[0]);
}

static void swap_rounds(int rounds)
{
    for (int i = 0; i < rounds; i++)
        swapcontext(&contexts[0], &contexts[1]);
}

static void begin_swap(void)
{
    static char stack[STACK_BYTES];
    getcontext(&contexts[1]);
    contexts[1].uc_stack.ss_sp = stack;
    contexts[1].uc_stack.ss_size = sizeof stack;
    makecontext(&contexts[1], swap_server, 0);
}

static volatile int turn;

static void hand_over(int mine)
{
    turn = !mine;
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    while (turn != mine)
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, !mine, NULL, NULL, 0);
}

static void *futex_server(void *unused)
{
    while (turn != 1)
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    for (;;)
        hand_over(1);
    return unused;
}

static void futex_rounds(int rounds)
{
    for (int i = 0; i < rounds; i++)
        hand_over(0);
}

int main(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one); // both kernel threads on one processor
    begin_lipc(serve);
    check_lipc();
    measure("native/lipc-cycles", lipc_rounds, ROUNDS, 2);
    begin_lipc(serve_ret);
    measure("native/lipc-with-ret-cycles", lipc_ret_rounds, ROUNDS, 2);
    measure("native/function-call-cycles", call_rounds, ROUNDS, 1);
    begin_swap();
    measure("native/swapcontext-cycles", swap_rounds, ROUNDS / 10, 2);
    pthread_t server;
    if (pthread_create(&server, NULL, futex_server, NULL) == 0)
        measure("native/futex-cycles", futex_rounds, FEW_ROUNDS, 2);
    printf("bench done\n");
    return 0;
}
