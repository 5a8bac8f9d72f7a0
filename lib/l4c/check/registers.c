/*
 * registers.c - checks on a Linux host that the inline system calls use the registers of the binding:
 * values go in and come out where they belong, and nothing else of the caller's is lost although the
 * stub in stub.S destroys every register. The UTCB is an ordinary buffer that %gs:0 leads to, and
 * `lock nop` raises SIGILL, whose handler answers as a kernel does.
 */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include <asm/prctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "stub.h"

L4_Word_t check_utcb[128] __attribute__((aligned(1024)));
static volatile L4_Word_t volatile_seed = 77;

/* Registers that carry MR0..MR7. */
static const int mr_register[8] = { R9, RAX, RBX, R10, R12, R13, R14, R15 };

void prepare(void)
{
    int i;
    memset(check_in, 0, sizeof check_in);
    for (i = 0; i < 16; i++)
        check_out[i] = OUT(i);
    check_out[RDI] = (L4_Word_t)U;
    check_calls = 0;
    for (i = 0; i < 64; i++)
        U[i] = 0x1100 + (L4_Word_t)i;
}

/* Values that live across a call; the compiler has to keep them somewhere. */
#define LIVE(n) L4_Word_t live##n = seed * (n) + (n)
#define LIVE_CHECK(n) EXPECT(live##n, seed * (n) + (n), "a value that lives across the call")
#define KEEP_LIVE                                                            \
    L4_Word_t seed = volatile_seed;                                          \
    LIVE(1); LIVE(2); LIVE(3); LIVE(4); LIVE(5); LIVE(6); LIVE(7); LIVE(8);   \
    __asm__ __volatile__("" : "+g"(live1), "+g"(live2), "+g"(live3), "+g"(live4)); \
    __asm__ __volatile__("" : "+g"(live5), "+g"(live6), "+g"(live7), "+g"(live8)); \
    prepare()
#define CHECK_LIVE                                                                     \
    LIVE_CHECK(1); LIVE_CHECK(2); LIVE_CHECK(3); LIVE_CHECK(4); LIVE_CHECK(5);         \
    LIVE_CHECK(6); LIVE_CHECK(7); LIVE_CHECK(8); EXPECT(check_calls, 1, "the number of calls")

/* The message registers went in through registers. */
#define CHECK_MRS_IN(pointer)                                                    \
    do {                                                                         \
        int check_i;                                                             \
        for (check_i = 0; check_i < 8; check_i++)                                \
            EXPECT(check_in[mr_register[check_i]], 0x1100 + (L4_Word_t)check_i,  \
                   "a message register on entry");                              \
        EXPECT(check_in[RDI], pointer, "RDI, the UTCB pointer");                 \
    } while (0)

/* Bit 0 of RDI: the compiler keeps nothing in vector registers across the call. */
#define DEAD_REGISTERS ((L4_Word_t)U | 1)

/* They came back through registers, and the others stayed in memory. */
#define CHECK_MRS_OUT                                                            \
    do {                                                                         \
        int check_i;                                                             \
        for (check_i = 0; check_i < 8; check_i++)                                \
            EXPECT(U[check_i], OUT(mr_register[check_i]),                        \
                   "a message register on return");                             \
        for (; check_i < 64; check_i++)                                          \
            EXPECT(U[check_i], 0x1100 + (L4_Word_t)check_i, "a message register in memory"); \
    } while (0)

static void ipc(void)
{
    L4_ThreadId_t from;
    L4_MsgTag_t tag;
    KEEP_LIVE;
    tag = L4_Ipc(id(1), id(2), 3, &from);
    EXPECT(check_in[RSI], 1, "RSI, the receiver");
    EXPECT(check_in[RDX], 2, "RDX, the from-specifier");
    EXPECT(check_in[R8], 3, "R8, the timeouts");
    CHECK_MRS_IN(DEAD_REGISTERS);
    EXPECT(from.raw, OUT(RSI), "the sender");
    EXPECT(tag.raw, OUT(R9), "the tag");
    CHECK_MRS_OUT;
    CHECK_LIVE;
}

static void lipc(void)
{
    L4_ThreadId_t from;
    L4_MsgTag_t tag;
    KEEP_LIVE;
    tag = L4_LreplyWait(id(5), &from);
    EXPECT(check_in[RSI], 5, "RSI, the receiver");
    EXPECT(check_in[RDX], ~0UL << 6, "RDX, any local thread");
    EXPECT(check_in[R8], 0x4000000, "R8, the timeouts");
    CHECK_MRS_IN(DEAD_REGISTERS);
    EXPECT(from.raw, OUT(RSI), "the sender");
    EXPECT(tag.raw, OUT(R9), "the tag");
    CHECK_MRS_OUT;
    CHECK_LIVE;
}

static void unmap(void)
{
    KEEP_LIVE;
    L4_Unmap(0x47);
    EXPECT(check_in[RDX], 0x47, "RDX, the control word");
    CHECK_MRS_IN((L4_Word_t)U);
    CHECK_MRS_OUT;
    CHECK_LIVE;
}

static void exchange_registers(void)
{
    L4_Word_t control, sp, ip, flags, handle;
    L4_ThreadId_t result, pager;
    KEEP_LIVE;
    check_out[RDI] = OUT(RDI);
    result = L4_ExchangeRegisters(id(1), 2, 3, 4, 5, 6, id(7), &control, &sp, &ip, &flags,
                                  &handle, &pager);
    EXPECT(check_in[RAX], 1, "RAX, the destination");
    EXPECT(check_in[RSI], 2, "RSI, the control word");
    EXPECT(check_in[RDX], 3, "RDX, the stack pointer");
    EXPECT(check_in[R8], 4, "R8, the instruction pointer");
    EXPECT(check_in[R9], 5, "R9, the flags");
    EXPECT(check_in[R10], 6, "R10, the handle");
    EXPECT(check_in[RDI], 7, "RDI, the pager");
    EXPECT(result.raw, OUT(RAX), "the result");
    EXPECT(control, OUT(RSI), "the old control word");
    EXPECT(sp, OUT(RDX), "the old stack pointer");
    EXPECT(ip, OUT(R8), "the old instruction pointer");
    EXPECT(flags, OUT(R9), "the old flags");
    EXPECT(handle, OUT(R10), "the old handle");
    EXPECT(pager.raw, OUT(RDI), "the old pager");
    CHECK_LIVE;
}

static void thread_control(void)
{
    L4_Word_t result;
    KEEP_LIVE;
    result = L4_ThreadControl(id(1), id(2), id(3), id(4), (void *)5);
    EXPECT(check_in[RDI], 1, "RDI, the destination");
    EXPECT(check_in[RSI], 4, "RSI, the pager");
    EXPECT(check_in[RDX], 3, "RDX, the scheduler");
    EXPECT(check_in[R8], 2, "R8, the space specifier");
    EXPECT(check_in[R9], 5, "R9, the UTCB location");
    EXPECT(result, OUT(RAX), "the result");
    CHECK_LIVE;
}

static void space_control(void)
{
    L4_Word_t result, old;
    KEEP_LIVE;
    result = L4_SpaceControl(id(1), 2, fpage(3), fpage(4), id(5), &old);
    EXPECT(check_in[RDI], 1, "RDI, the space specifier");
    EXPECT(check_in[RSI], 2, "RSI, the control word");
    EXPECT(check_in[RDX], 3, "RDX, the KIP area");
    EXPECT(check_in[R8], 4, "R8, the UTCB area");
    EXPECT(check_in[R9], 5, "R9, the redirector");
    EXPECT(result, OUT(RAX), "the result");
    EXPECT(old, OUT(RDX), "the old control word");
    CHECK_LIVE;
}

static void schedule(void)
{
    L4_Word_t result, old;
    KEEP_LIVE;
    result = L4_Schedule(id(1), 2, 3, 4, 5, &old);
    EXPECT(check_in[RDI], 1, "RDI, the destination");
    EXPECT(check_in[RSI], 4, "RSI, the priority");
    EXPECT(check_in[RDX], 2, "RDX, the time control");
    EXPECT(check_in[R8], 3, "R8, the processor control");
    EXPECT(check_in[R9], 5, "R9, the preemption control");
    EXPECT(result, OUT(RAX), "the result");
    EXPECT(old, OUT(RDX), "the old time control");
    CHECK_LIVE;
}

static void thread_switch(void)
{
    KEEP_LIVE;
    L4_ThreadSwitch(id(9));
    EXPECT(check_in[RDI], 9, "RDI, the destination");
    CHECK_LIVE;
}

static void system_clock(void)
{
    L4_Clock_t clock;
    KEEP_LIVE;
    clock = L4_SystemClock();
    EXPECT(clock.raw, OUT(RAX), "the clock");
    CHECK_LIVE;
}

static void processor_control(void)
{
    L4_Word_t result;
    KEEP_LIVE;
    result = L4_ProcessorControl(1, 2, 3, 4);
    EXPECT(check_in[RDI], 1, "RDI, the processor");
    EXPECT(check_in[RSI], 2, "RSI, the internal frequency");
    EXPECT(check_in[RDX], 3, "RDX, the external frequency");
    EXPECT(check_in[R8], 4, "R8, the voltage");
    EXPECT(result, OUT(RAX), "the result");
    CHECK_LIVE;
}

static void memory_control(void)
{
    const L4_Word_t attributes[4] = { 21, 22, 23, 24 };
    L4_Word_t result;
    KEEP_LIVE;
    result = L4_MemoryControl(2, attributes);
    EXPECT(check_in[RDX], 2, "RDX, the control word");
    EXPECT(check_in[RCX], 21, "RCX, attribute 0");
    EXPECT(check_in[RSI], 22, "RSI, attribute 1");
    EXPECT(check_in[R8], 23, "R8, attribute 2");
    EXPECT(check_in[R11], 24, "R11, attribute 3");
    CHECK_MRS_IN((L4_Word_t)U);
    EXPECT(result, OUT(RDX), "the result");
    CHECK_LIVE;
}

static void quota_control(void)
{
    L4_Word_t result, limit, used;
    KEEP_LIVE;
    result = L4_QuotaControl(id(1), -2, &limit, &used);
    EXPECT(check_in[RDI], 1, "RDI, the space specifier");
    EXPECT(check_in[RSI], -2UL, "RSI, the number of pages");
    EXPECT(result, OUT(RAX), "the result");
    EXPECT(limit, OUT(RDX), "the limit");
    EXPECT(used, OUT(RSI), "the use");
    CHECK_LIVE;
}

static void task_control(void)
{
    L4_Word_t result, numbers = 2, ceilings = 3;
    KEEP_LIVE;
    result = L4_TaskControl(id(1), &numbers, &ceilings);
    EXPECT(check_in[RDI], 1, "RDI, the space specifier");
    EXPECT(check_in[RSI], 2, "RSI, the numbers");
    EXPECT(check_in[RDX], 3, "RDX, the ceilings");
    EXPECT(result, OUT(RAX), "the result");
    EXPECT(numbers, OUT(RSI), "the numbers in force");
    EXPECT(ceilings, OUT(RDX), "the ceilings in force");
    CHECK_LIVE;
}

static void create_thread(void)
{
    L4_Word_t result;
    KEEP_LIVE;
    result = L4_CreateThread(id(1), id(2), id(3), id(4), (void *)5);
    EXPECT(check_in[RDI], 1, "RDI, the destination");
    EXPECT(check_in[RSI], 4, "RSI, the pager");
    EXPECT(check_in[RDX], 3, "RDX, the scheduler");
    EXPECT(check_in[R8], 2, "R8, the space specifier");
    EXPECT(check_in[R9], 5, "R9, the UTCB location");
    EXPECT(result, OUT(RAX), "the result");
    CHECK_LIVE;
}

static void inspect(void)
{
    static const int word[8] = { RDX, RSI, R9, R10, R12, R13, R14, R15 };
    L4_Word_t result, record[8];
    int i;
    KEEP_LIVE;
    result = L4_Inspect(1, 2, 3, record);
    EXPECT(check_in[RDI], 1, "RDI, what to inspect");
    EXPECT(check_in[RSI], 2, "RSI, the index");
    EXPECT(check_in[RDX], 3, "RDX, the argument");
    EXPECT(result, OUT(RAX), "the result");
    for (i = 0; i < 8; i++)
        EXPECT(record[i], OUT(word[i]), "a word of the record");
    CHECK_LIVE;
}

static void kernel_interface(void)
{
    L4_Word_t version, flags, kernel;
    void *kip = L4_KernelInterface(&version, &flags, &kernel);
    EXPECT((L4_Word_t)kip, OUT(RAX), "the page's address");
    EXPECT(version, OUT(RCX), "ApiVersion");
    EXPECT(flags, OUT(RDX), "ApiFlags");
    EXPECT(kernel, OUT(RSI), "KernelId");
}

/* A leaf function with locals in its red zone. */
static __attribute__((noinline)) L4_Word_t leaf(L4_Word_t a)
{
    volatile L4_Word_t locals[8];
    int i;
    for (i = 0; i < 8; i++)
        locals[i] = a + (L4_Word_t)i;
    L4_ThreadSwitch(id(a));
    for (i = 0; i < 8; i++)
        a += locals[i] == 1000 + (L4_Word_t)i;
    return a;
}

static void red_zone(void)
{
    prepare();
    EXPECT(leaf(1000), 1008, "the number of intact locals, plus 1000,");
}

static void answer_lock_nop(int signal, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)r[REG_RIP];
    (void)signal;
    (void)info;
    if (code[0] != 0xF0 || code[1] != 0x90)
        abort();
    r[REG_RIP] += 2;
    r[REG_RAX] = (greg_t)OUT(RAX);
    r[REG_RCX] = (greg_t)OUT(RCX);
    r[REG_RDX] = (greg_t)OUT(RDX);
    r[REG_RSI] = (greg_t)OUT(RSI);
}

int main(void)
{
    static L4_Word_t self;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = answer_lock_nop;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, NULL);
    self = (L4_Word_t)U;
    if (syscall(SYS_arch_prctl, ARCH_SET_GS, &self) != 0) {
        perror("setting the base of GS failed");
        return 1;
    }
    test_run("kernel_interface", kernel_interface);
    test_run("ipc", ipc);
    test_run("lipc", lipc);
    test_run("unmap", unmap);
    test_run("exchange_registers", exchange_registers);
    test_run("thread_control", thread_control);
    test_run("space_control", space_control);
    test_run("schedule", schedule);
    test_run("thread_switch", thread_switch);
    test_run("system_clock", system_clock);
    test_run("processor_control", processor_control);
    test_run("memory_control", memory_control);
    test_run("quota_control", quota_control);
    test_run("inspect", inspect);
    test_run("task_control", task_control);
    test_run("create_thread", create_thread);
    test_run("red_zone", red_zone);
    run_data_tests();
    run_name_tests();
    return test_failures != 0;
}
