/*
 * thread.c - ThreadControl, ExchangeRegisters, Schedule, exceptions.
 */
#include <stdio.h>
#include <l4/ipc.h>
#include <l4/kip.h>
#include <l4/protocols.h>
#include <l4/schedule.h>
#include "partner.h"
#include "test.h"

#define NOT_CHANGED ((void *)~0UL)
#define SLOT 3

static char stack[STACK];
static volatile L4_Word_t counter, seen_tag, seen_error;
static L4_ThreadId_t root;

static void spin(void)
{
    for (;;)
        counter++;
}

static void wait_for_root(void)
{
    for (;;) {
        seen_tag = L4_Receive(root).raw;
        seen_error = L4_ErrorCode();
        counter++;
    }
}

static void fault(void)
{
    L4_Set_ExceptionHandler(root);
    __asm__ __volatile__("movq $0x1234, %%rbx\n\tud2\n\tmovq %%rbx, %0"
                         : "=m"(counter) : : "rbx", "memory");
    for (;;)
        L4_Sleep(L4_Never);
}

/* On a stack that is a multiple of 16 where a function begins, as many X.2 programs have it. */
static void print_on_any_stack(void)
{
    char text[40];
    counter = (L4_Word_t)snprintf(text, sizeof text, "%s %d %lx", "abc", -5, 0x1234UL);
    for (;;)
        L4_Sleep(L4_Never);
}

/* Lets threads of lower priority run for a while. */
static void rest(void)
{
    L4_Sleep(L4_TimePeriod(20000));
}

static L4_Word_t create(L4_ThreadId_t t, void (*entry)(void))
{
    counter = seen_tag = seen_error = 0;
    root = L4_Myself();
    return l4c_create_thread(t, SLOT, stack, STACK, entry);
}

static void stop_and_start(void)
{
    L4_ThreadId_t t = spare(1, 1);
    L4_Word_t sp, ip, flags, then;
    L4_ThreadState_t state;
    EXPECT(create(t, spin), 1, "creating a thread");
    rest();
    REQUIRE(counter > 0, "The new thread did not run.");
    state = L4_Stop_SpIpFlags(t, &sp, &ip, &flags);
    then = counter;
    EXPECT(state.raw & 7, 0, "the state of a running thread");
    REQUIRE(ip >= (L4_Word_t)spin && ip < (L4_Word_t)spin + 64, "The thread's IP is not in its code.");
    REQUIRE(sp > (L4_Word_t)stack && sp <= (L4_Word_t)stack + STACK, "The thread's SP is not in its stack.");
    rest();
    EXPECT(counter, then, "the counter of a stopped thread");
    EXPECT(L4_ThreadWasHalted(L4_Stop(t)), 1, "the state of a stopped thread: halted,");
    L4_Start(t);
    rest();
    REQUIRE(counter > then, "The thread did not go on after L4_Start.");
    EXPECT(l4c_delete_thread(t), 1, "deleting a running thread");
}

static void printing_needs_no_aligned_stack(void)
{
    L4_ThreadId_t t = spare(1, 3);
    EXPECT(create(t, spin), 1, "creating a thread");
    L4_Stop(t);
    counter = 0;
    L4_Start_SpIp(t, ((L4_Word_t)stack + STACK) & ~15UL, (L4_Word_t)print_on_any_stack);
    rest();
    EXPECT(counter, 11, "the length of what was printed");
    EXPECT(l4c_delete_thread(t), 1, "deleting the thread");
}

static void abort_receive(void)
{
    L4_ThreadId_t t = spare(1, 2);
    L4_ThreadState_t state;
    EXPECT(create(t, wait_for_root), 1, "creating a thread");
    rest();
    state = L4_AbortReceive_and_stop(t);
    EXPECT(L4_ThreadWasReceiving(state), 1, "the state of a waiting thread: receiving,");
    EXPECT(L4_ThreadWasSending(state), 0, "the state of a waiting thread: sending,");
    L4_Start(t);
    rest();
    EXPECT(counter, 1, "the number of ended receives");
    EXPECT(seen_tag & 0x8000, 0x8000, "the failure of the receive");
    EXPECT(seen_error, L4_IpcErrCancelled << 1 | 1, "the error: cancelled while receiving,");
    L4_Set_MsgTag(L4_Niltag);
    EXPECT(L4_IpcFailed(L4_Send_Timeout(t, L4_TimePeriod(100000))), 0, "failure of a later send");
    EXPECT(l4c_delete_thread(t), 1, "deleting a waiting thread");
}

static void redirected(void)
{
    counter = 1000;
    spin();
}

static void start_elsewhere(void)
{
    L4_ThreadId_t t = spare(1, 3);
    EXPECT(create(t, wait_for_root), 1, "creating a thread");
    rest();
    REQUIRE(!L4_IsNilThread(L4_Start_SpIp(t, l4c_stack_top(stack, STACK), (L4_Word_t)redirected)),
            "Starting a waiting thread at another place was refused.");
    rest();
    REQUIRE(counter > 1000, "The thread did not run at the other place.");
    EXPECT(L4_Set_UserDefinedHandleOf(t, 55).raw, L4_LocalIdOf(t).raw, "the id that setting a handle returns");
    EXPECT(L4_UserDefinedHandleOf(t), 55, "the handle");
    EXPECT(L4_PagerOf(t).raw, L4_Pager().raw, "the pager");
    L4_Set_PagerOf(t, pager);
    EXPECT(L4_PagerOf(t).raw, pager.raw, "the pager after setting it");
    EXPECT(l4c_delete_thread(t), 1, "deleting the thread");
}

static void exchange_refused(void)
{
    L4_ThreadId_t absent = spare(2, 1);
    EXPECT(L4_Start(absent).raw, 0, "starting a thread that is not there");
    EXPECT(L4_ErrorCode(), L4_ErrInvalidThread, "the error");
    EXPECT(L4_ThreadControl(absent, absent, L4_Myself(), L4_nilthread, NOT_CHANGED), 1, "creating a space");
    EXPECT(L4_Start(absent).raw, 0, "starting an inactive thread");
    EXPECT(L4_ErrorCode(), L4_ErrInvalidThread, "the error");
    EXPECT(l4c_delete_thread(absent), 1, "deleting an inactive thread");
}

static void control_refused(void)
{
    L4_ThreadId_t t = spare(2, 1), me = L4_Myself();
    L4_ThreadId_t of_kernel = L4_GlobalId(L4_ThreadIdUserBase(L4_GetKernelInterface()) - 1, 1);
    EXPECT(L4_ThreadControl(t, me, me, me, (char *)l4c_utcb_location(SLOT) + 64), 0,
           "creating a thread with a misaligned UTCB");
    EXPECT(L4_ErrorCode(), L4_ErrUtcbArea, "the error");
    EXPECT(L4_ThreadControl(t, me, me, me, (void *)0x1000UL), 0,
           "creating a thread with a UTCB outside the area");
    EXPECT(L4_ErrorCode(), L4_ErrUtcbArea, "the error");
    EXPECT(L4_ThreadControl(t, spare(3, 1), me, L4_nilthread, NOT_CHANGED), 0,
           "creating a thread in a space that is not there");
    EXPECT(L4_ErrorCode(), L4_ErrInvalidSpace, "the error");
    EXPECT(L4_ThreadControl(of_kernel, me, me, me, NOT_CHANGED), 0, "changing a kernel thread");
    EXPECT(L4_ErrorCode(), L4_ErrInvalidThread, "the error");
    EXPECT(l4c_delete_thread(me), 0, "deleting oneself");
    EXPECT(L4_ErrorCode(), L4_ErrInvalidThread, "the error");
    EXPECT(l4c_delete_thread(t), 1, "deleting a thread that is not there");
}

static void ids_are_not_reused(void)
{
    L4_ThreadId_t old = spare(1, 4), new = spare(1, 5);
    EXPECT(create(old, wait_for_root), 1, "creating a thread");
    EXPECT(l4c_delete_thread(old), 1, "deleting it");
    EXPECT(create(new, wait_for_root), 1, "creating it with another version");
    L4_Set_MsgTag(L4_Niltag);
    EXPECT(L4_IpcFailed(L4_Send(old)), 1, "failure of sending to the old version");
    EXPECT(L4_ErrorCode(), L4_IpcErrNonExisting << 1, "the error");
    L4_Set_MsgTag(L4_Niltag);
    EXPECT(L4_IpcFailed(L4_Send(new)), 0, "failure of sending to the new version");
    EXPECT(l4c_delete_thread(new), 1, "deleting the thread");
}

static void scheduling(void)
{
    L4_ThreadId_t t = spare(1, 6);
    L4_Time_t slice, quantum;
    EXPECT(create(t, wait_for_root), 1, "creating a thread");
    rest();
    EXPECT(L4_Set_Priority(t, 120), L4_SCHEDRESULT_WAITING, "the state: waiting to receive,");
    EXPECT(L4_Set_Timeslice(t, L4_TimePeriod(4000), L4_Never), L4_SCHEDRESULT_WAITING, "the state");
    EXPECT(L4_Timeslice(t, &slice, &quantum), L4_SCHEDRESULT_WAITING, "the state");
    EXPECT(L4_Set_PreemptionDelay(t, 200, 100), L4_SCHEDRESULT_WAITING, "the state");
    EXPECT(l4c_delete_thread(t), 1, "deleting the thread");
    EXPECT(L4_Set_Priority(t, 120), 0, "scheduling a thread that is not there");
    EXPECT(L4_ErrorCode(), L4_ErrInvalidThread, "the error");
    EXPECT(L4_Set_Priority(L4_Myself(), 255), L4_SCHEDRESULT_RUNNING, "the own state: running,");
}

/* A reply to an exception message sets the registers; IP moves behind the instruction. */
static void exception(void)
{
    L4_ThreadId_t t = spare(1, 7), from;
    L4_Word_t words[L4_ExceptionWords + 1];
    L4_MsgTag_t tag;
    EXPECT(create(t, fault), 1, "creating a thread");
    tag = L4_Wait_Timeout(L4_TimePeriod(1000000), &from);
    REQUIRE(L4_IpcSucceeded(tag), "No exception message came.");
    L4_StoreMRs(0, L4_ExceptionWords + 1, words);
    EXPECT(L4_IsArchException(tag), 1, "the message being an exception");
    EXPECT(L4_UntypedWords(tag), L4_ExceptionWords, "its number of words");
    EXPECT(L4_SameThreads(from, t), 1, "the sender being the thread");
    EXPECT(words[L4_ExceptionVector], 6, "the vector: invalid opcode,");
    EXPECT(words[L4_ExceptionRbx], 0x1234, "RBX");
    EXPECT(*(unsigned short *)words[L4_ExceptionIp], 0x0B0F, "the instruction at IP");
    words[L4_ExceptionIp] += 2;
    words[L4_ExceptionRbx] = 0x5678;
    words[0] = L4_ExceptionWords;
    L4_LoadMRs(0, L4_ExceptionWords + 1, words);
    REQUIRE(L4_IpcSucceeded(L4_Reply(from)), "Replying to the exception failed.");
    rest();
    EXPECT(counter, 0x5678, "RBX after the reply");
    EXPECT(l4c_delete_thread(t), 1, "deleting the thread");
}

void run_thread_tests(void)
{
    test_run("stop_and_start", stop_and_start);
    test_run("printing_needs_no_aligned_stack", printing_needs_no_aligned_stack);
    test_run("abort_receive", abort_receive);
    test_run("start_elsewhere", start_elsewhere);
    test_run("exchange_refused", exchange_refused);
    test_run("control_refused", control_refused);
    test_run("ids_are_not_reused", ids_are_not_reused);
    test_run("scheduling", scheduling);
    test_run("exception", exception);
}
