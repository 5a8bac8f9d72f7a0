/*
 * kernel.c - the interface page, thread control registers, the clock: what one
 * thread can find out by itself.
 */
#include <l4/baton.h>
#include <l4/ipc.h>
#include <l4/kip.h>
#include <l4/schedule.h>
#include <l4/thread.h>
#include "test.h"

static void interface_page(void)
{
    L4_Word_t version, flags, id;
    const L4_KernelInterfacePage_t *kip =
        (const L4_KernelInterfacePage_t *)L4_KernelInterface(&version, &flags, &id);
    EXPECT(kip->MagicNumber, L4_MAGIC, "the magic number");
    EXPECT(kip->ApiVersion.raw, version, "ApiVersion in the page");
    EXPECT(kip->ApiFlags.raw, flags, "ApiFlags in the page");
    EXPECT(version >> 24, 0x84, "the interface's version");
    EXPECT(flags, 4, "the flags: little endian, 64 bits,");
    EXPECT(L4_KernelId(), id, "the kernel's id");
    EXPECT(__L4_KernDesc(kip)[0], id, "the kernel's id in the descriptor");
    REQUIRE(L4_KernelVersionString(kip)[0], "The kernel's version string is empty.");
    REQUIRE((L4_Word_t)L4_GetKernelInterface() % 4096 == 0,
            "The interface page is not page-aligned.");
}

static void interface_numbers(void)
{
    void *kip = L4_GetKernelInterface();
    L4_Word_t i, conventional = 0;
    REQUIRE(L4_ThreadIdUserBase(kip) > L4_ThreadIdSystemBase(kip),
            "The first user thread number is not above the kernel's.");
    REQUIRE(L4_ThreadIdBits(kip) >= 10, "There are fewer than 1024 thread numbers.");
    EXPECT(L4_UtcbSize(kip) & ((1UL << L4_UtcbAlignmentLog2(kip)) - 1), 0,
           "the UTCB size's remainder by its alignment");
    REQUIRE(L4_UtcbAreaSizeLog2(kip) >= 12, "A UTCB area may be smaller than a page.");
    REQUIRE(L4_PageSizeMask(kip) & 1UL << 12, "There are no 4 KiB pages.");
    REQUIRE(L4_NumProcessors(kip) >= 1, "There is no processor.");
    REQUIRE(L4_ProcDesc(kip, 0), "The first processor has no descriptor.");
    EXPECT((L4_Word_t)L4_ProcDesc(kip, L4_NumProcessors(kip)), 0,
           "the descriptor behind the last processor's");
    for (i = 0; i < L4_NumMemoryDescriptors(kip); i++)
        if (L4_MemoryDescType(L4_MemoryDesc(kip, i)) == L4_ConventionalMemoryType)
            conventional++;
    REQUIRE(conventional > 0, "No memory descriptor is of the conventional type.");
    EXPECT((L4_Word_t)L4_MemoryDesc(kip, i), 0, "the descriptor behind the last");
    EXPECT(L4_HasFeature("no such feature"), 0, "an unknown feature's presence");
}

static void own_ids(void)
{
    L4_ThreadId_t me = L4_Myself(), local = L4_MyLocalId();
    EXPECT(L4_IsGlobalId(me), 1, "my global id being global");
    EXPECT(L4_IsLocalId(local), 1, "my local id being local");
    EXPECT(L4_ThreadNo(me), L4_ThreadIdUserBase(L4_GetKernelInterface()) + 2, "my number");
    EXPECT(L4_GlobalIdOf(local).raw, me.raw, "the global id of my local one");
    EXPECT(L4_LocalIdOf(me).raw, local.raw, "the local id of my global one");
    EXPECT(L4_GlobalIdOf(me).raw, me.raw, "the global id of my global one");
    EXPECT(L4_SameThreads(me, local), 1, "both meaning the same thread");
    EXPECT(local.raw % 1024, 512, "the UTCB pointer's place in its block");
}

static void control_registers(void)
{
    L4_Word_t user_base = L4_ThreadIdUserBase(L4_GetKernelInterface());
    EXPECT(L4_Pager().raw, L4_GlobalId(user_base, 1).raw, "the root task's pager");
    EXPECT(L4_ProcessorNo(), 0, "the processor number");
    L4_Set_UserDefinedHandle(0x12345);
    EXPECT(L4_UserDefinedHandle(), 0x12345, "the handle");
    EXPECT(L4_UserDefinedHandleOf(L4_Myself()), 0x12345, "the handle by ExchangeRegisters");
    L4_Set_UserDefinedHandleOf(L4_Myself(), 0x777);
    EXPECT(L4_UserDefinedHandle(), 0x777, "the handle set by ExchangeRegisters");
    EXPECT(L4_PagerOf(L4_MyLocalId()).raw, L4_Pager().raw, "the pager by ExchangeRegisters");
    L4_Set_ThreadWord(0, 5);
    L4_Set_ThreadWord(1, 6);
    L4_Yield();
    EXPECT(L4_ThreadWord(0), 5, "thread word 0");
    EXPECT(L4_ThreadWord(1), 6, "thread word 1");
    L4_Set_XferTimeouts(L4_Timeouts(L4_TimePeriod(500), L4_Never));
    EXPECT(L4_XferTimeouts(), 500 << 16, "the transfer timeouts");
    L4_Set_XferTimeouts(0);
}

static void preemption_flags(void)
{
    EXPECT(L4_DisablePreemption(), 0, "the delay flag at first");
    EXPECT(L4_EnablePreemption(), 1, "the delay flag after setting it");
    EXPECT(L4_EnablePreemption(), 0, "the delay flag after clearing it");
    EXPECT(L4_EnablePreemptionFaultException(), 0, "the signal flag at first");
    EXPECT(L4_DisablePreemptionFaultException(), 1, "the signal flag after setting it");
    (void)L4_PreemptionPending();
    EXPECT(L4_PreemptionPending(), 0, "the pending flag after clearing it");
    L4_Set_CopFlag(3);
    EXPECT(__L4_Tcr(__L4_TCR_FLAGS) & __L4_COP_FLAG(3), __L4_COP_FLAG(3), "coprocessor flag 3");
    L4_Clear_CopFlag(3);
    EXPECT(__L4_Tcr(__L4_TCR_FLAGS) & 0xFF00, 0, "the coprocessor flags");
}

static void clock_runs(void)
{
    L4_Clock_t start = L4_SystemClock(), now = start;
    L4_Word_t i;
    for (i = 0; i < 100000000 && L4_IsClockEqual(now, start); i++) {
        now = L4_SystemClock();
        REQUIRE(!L4_IsClockEarlier(now, start), "The clock went back.");
    }
    REQUIRE(L4_IsClockLater(now, start), "The clock stood still for 100 million readings.");
}

static void sleeping(void)
{
    L4_Clock_t start = L4_SystemClock();
    L4_Sleep(L4_TimePeriod(5000));
    EXPECT(L4_IpcFailed(L4_MsgTag()), 1, "the failure of waiting for oneself");
    EXPECT(L4_ErrorCode(), L4_IpcErrTimeout << 1 | 1, "the error: a receive timeout,");
    REQUIRE(L4_SystemClock().raw - start.raw >= 4500, "A sleep of 5 ms ended too early.");
    REQUIRE(L4_SystemClock().raw - start.raw < 1000000, "A sleep of 5 ms took a second.");
}

static void sleeping_until(void)
{
    L4_Clock_t at = L4_ClockAddUsec(L4_SystemClock(), 8000);
    L4_Sleep(L4_TimePoint(at));
    EXPECT(L4_ErrorCode(), L4_IpcErrTimeout << 1 | 1, "the error: a receive timeout,");
    REQUIRE(L4_SystemClock().raw + 100 >= at.raw, "A sleep until a point ended before it.");
    REQUIRE(L4_SystemClock().raw < at.raw + 1000000, "A sleep until a point took too long.");
}

static void quota(void)
{
    L4_Word_t limit, used, record[L4_InspectWords];
    if (!L4_HasBaton())
        return;
    EXPECT(L4_QuotaControl(L4_Myself(), 0, &limit, &used), 1, "reading the own quota");
    REQUIRE(used > 0 && used <= limit, "The quota's use is not between one page and its limit.");
    EXPECT(L4_Inspect(L4_InspectKernel, 0, 0, record), 1, "inspecting the kernel");
    REQUIRE(record[1] <= record[0], "More kernel pages are free than there are.");
    EXPECT(L4_Inspect(L4_InspectThread, L4_ThreadNo(L4_Myself()), 0, record), 1,
           "inspecting the own thread");
    EXPECT(record[0], L4_Myself().raw, "the thread record's id");
    EXPECT(L4_Inspect(L4_InspectCheck, 0, 0, record), 1, "running the kernel's checker");
    EXPECT(record[0], 0, "the number of violated invariants");
}

static void messages(void)
{
    L4_Word_t first = 0, last = 0, address = 0, again = 0;
    if (!L4_HasBaton() || !L4_LineMessage(32, &address, &first))
        return;
    EXPECT(address >> 20, 0xFEE, "the window to which devices write");
    EXPECT(L4_LineMessage(63, &again, &last), 1, "asking for the last line's message");
    EXPECT(again, address, "the last line's address");
    EXPECT(last - first, 31, "how far the last line's word is from the first one's");
    EXPECT(L4_LineMessage(31, &again, &last) | L4_LineMessage(64, &again, &last), 0, "asking for messages of wires");
}

static void task_limits(void)
{
    L4_ThreadId_t child = L4_GlobalId(L4_ThreadNo(L4_Myself()) + 200, 1), none = L4_nilthread;
    L4_Word_t numbers = L4_Unchanged, ceilings = L4_Unchanged;
    L4_Word_t own = L4_Numbers(4096, 16);
    L4_Word_t low = L4_Ceilings(90, L4_TimePeriod(5000), L4_Never, 0);
    if (!L4_HasBaton())
        return;
    EXPECT(L4_TaskControl(L4_Myself(), &numbers, &ceilings), 1, "reading the own limits");
    EXPECT(numbers >> 32, 131072 - L4_ThreadIdUserBase(L4_GetKernelInterface()), "how many numbers the root task owns");
    EXPECT(L4_CreateThread(child, child, L4_Myself(), none, (void *)~0UL), 1, "creating a task");
    EXPECT(L4_CreateThread(child, child, L4_Myself(), none, (void *)~0UL), 0,
           "creating a thread that exists");
    EXPECT(L4_ErrorCode(), 2, "the error: invalid thread,");
    numbers = own, ceilings = low;
    EXPECT(L4_TaskControl(child, &numbers, &ceilings), 1, "giving a task limits");
    EXPECT(numbers, own, "the numbers in force");
    EXPECT(ceilings, low, "the ceilings in force");
    numbers = L4_Unchanged, ceilings = L4_Ceilings(91, L4_TimePeriod(5000), L4_Never, 0);
    EXPECT(L4_TaskControl(child, &numbers, &ceilings), 0, "raising a ceiling");
    EXPECT(L4_ErrorCode(), 1, "the error: no privilege,");
    EXPECT(L4_ThreadControl(child, none, none, none, (void *)~0UL), 1, "deleting the task");
}

void run_kernel_tests(void)
{
    test_run("interface_page", interface_page);
    test_run("interface_numbers", interface_numbers);
    test_run("own_ids", own_ids);
    test_run("control_registers", control_registers);
    test_run("preemption_flags", preemption_flags);
    test_run("clock_runs", clock_runs);
    test_run("sleeping", sleeping);
    test_run("sleeping_until", sleeping_until);
    test_run("quota", quota);
    test_run("messages", messages);
    test_run("task_limits", task_limits);
}
