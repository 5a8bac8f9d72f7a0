// Local IPC in user mode (Wenske 2002, section 4.1 and 5.2; decision 0044) in an ordinary
// process, in real cycles of the machine at hand, beside a plain function call, `swapcontext`,
// and a futex ping-pong of two kernel threads.
//
// The path is the kernel's own text: PATH_MACROS is made from the macro in the kernel's
// `stubs.S` (`xtask/lab/src/bench/native.rs`). Two threads of the user level share this
// process's one kernel thread; each has the words of a UTCB that the path reads and writes, and
// GS base points to the word that says whose turn it is. Message words stay in registers.
//
// How it returns matters: RET is predicted by the processor's stack of return addresses,
// which is the other thread's after the switch, so each RET costs a misprediction. POP and JMP
// are predicted from history. The same text with RET is measured beside it.
//
// Cycles are those of the time stamp counter. Prints `row NAME MEDIAN low=.. high=..
// samples=..` where low and high are the 5th and 95th percentile.
#define _GNU_SOURCE
#include <asm/prctl.h>
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

__asm__(".include \"" PATH_MACROS "\"");
// The words below a UTCB's address U; LIPC_WAIT and so on are the interface's numbers.
enum { UTCB_WORDS = 64, U = 63 };

uint64_t utcbs[2][UTCB_WORDS] __attribute__((aligned(64)));
uint64_t *current_word[1];

static uint64_t *utcb(int thread)
{
    return &utcbs[thread][U];
}

// Where the path goes when the kernel would have to be asked: here, nowhere.
__asm__("stub_slow:      mov r9, -1\n"
        "                ret\n"
        ".balign 64\n"
        "stub_call:      local_path path_call, r11, rsi, stub_slow\n"
        ".balign 64\n"
        "stub_reply:     local_path path_reply, rdi, r11, stub_slow, rdx\n"
        ".balign 64\n"
        "stub_call_ret:  local_path_ret path_call_ret, r11, rsi, stub_slow\n"
        ".balign 64\n"
        "stub_reply_ret: local_path_ret path_reply_ret, rdi, r11, stub_slow, rdx\n");

// The exchange as a thread sees it: all that the path and the partner may destroy is declared,
// but for RBP, which cannot be. (Compiled without a red zone: the stack is in use.)
#define EXCHANGE(function, stub)                                                        \
    static inline uint64_t function(uint64_t *from, uint64_t *to, uint64_t wait,        \
                                    uint64_t message)                                   \
    {                                                                                   \
        register uint64_t tag __asm__("r9") = 1;                                        \
        register uint64_t timeouts __asm__("r8") = 0;                                   \
        __asm__ volatile("push rbp\n call " stub "\n pop rbp"                           \
                         : "+a"(message), "+D"(from), "+S"(to), "+d"(wait), "+r"(tag),  \
                           "+r"(timeouts)                                               \
                         :                                                              \
                         : "rcx", "rbx", "r10", "r11", "r12", "r13", "r14", "r15",      \
                           "memory", "cc");                                             \
        return tag == UINT64_MAX ? UINT64_MAX : message;                                \
    }
EXCHANGE(call, "stub_call")
EXCHANGE(reply_wait, "stub_reply")
EXCHANGE(call_ret, "stub_call_ret")
EXCHANGE(reply_wait_ret, "stub_reply_ret")

static const uint64_t ANYBODY = UINT64_MAX;

static void serve(void)
{
    uint64_t message = 0;
    for (;;)
        message = reply_wait(utcb(1), utcb(0), ANYBODY, message + 1);
}

static void serve_ret(void)
{
    for (;;)
        reply_wait_ret(utcb(1), utcb(0), ANYBODY, 0);
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
        message = call(utcb(0), utcb(1), 0, message);
}

static void lipc_ret_rounds(int rounds)
{
    for (int i = 0; i < rounds; i++)
        call_ret(utcb(0), utcb(1), 0, 0);
}

static void check_lipc(void)
{
    uint64_t answer = 0;
    for (int i = 0; i < 1000; i++)
        answer = call(utcb(0), utcb(1), 0, answer);
    if (answer != 1000 || current_word[0] != utcb(0)) {
        printf("bench FAILED: 1000 local IPCs gave %llu\n", (unsigned long long)answer);
        exit(1);
    }
    // A partner that waits for somebody else is left alone.
    uint64_t waits_for = utcb(1)[LIPC_WAIT];
    utcb(1)[LIPC_WAIT] = (uint64_t)utcb(1);
    if (call(utcb(0), utcb(1), 0, 5) != UINT64_MAX) {
        printf("bench FAILED: a local IPC to a thread that does not wait went through\n");
        exit(1);
    }
    utcb(1)[LIPC_WAIT] = waits_for;
}

static void begin_lipc(void (*server)(void))
{
    static char stack[STACK_BYTES] __attribute__((aligned(64)));
    uint64_t *top = (uint64_t *)(stack + sizeof stack - 72);
    *top = (uint64_t)server; // where it returns to when it is called
    for (int thread = 0; thread < 2; thread++)
        utcb(thread)[LIPC_STATE] = LIPC_OPEN;
    utcb(1)[LIPC_SP] = (uint64_t)top;
    utcb(1)[LIPC_WAIT] = LIPC_OPEN;
    current_word[0] = utcb(0);
    if (syscall(SYS_arch_prctl, ARCH_SET_GS, current_word) != 0) {
        printf("bench FAILED: GS base cannot be set\n");
        exit(1);
    }
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
