/*
 * names.c - the manual's names one by one, against the stub: each is there, takes what the manual says,
 * and calls what it should. The names of C++ are in overloads.h.
 */
#include <string.h>
#include <l4/arch.h>
#include <l4/bootinfo.h>
#include <l4/kdebug.h>
#include <l4/kip.h>
#include <l4/pagefault.h>
#include <l4/protocols.h>
#include <l4/sigma0.h>
#include <l4/tracebuffer.h>
#include "stub.h"

#define NEVER 0UL
#define ZERO 0x0400UL

/* The last call was one IPC, to `to`, then from `from`, with these timeouts. */
#define WAS_IPC(to, from, send, receive)                                        \
    EXPECT(check_calls, 1, "the number of calls");                              \
    EXPECT(check_in[RSI], to, "the receiver");                                  \
    EXPECT(check_in[RDX], from, "the from-specifier");                          \
    EXPECT(check_in[R8], (send) << 16 | (receive), "the timeouts");             \
    prepare()

/* It was one ExchangeRegisters of thread 7, with this control word. */
#define WAS_EXCHANGE(control)                                                   \
    EXPECT(check_calls, 1, "the number of calls");                              \
    EXPECT(check_in[RAX], 7, "the thread");                                     \
    EXPECT(check_in[RSI], control, "the control word");                         \
    prepare_exchange()

static void prepare_exchange(void)
{
    prepare();
    check_out[RDI] = OUT(RDI);
}

static void ipc_names(void)
{
    L4_Time_t time = L4_TimePeriod(5), other = L4_TimePeriod(6);
    L4_ThreadId_t from, to = id(0x100000007);
    prepare();
    L4_Send(to);
    WAS_IPC(to.raw, 0, NEVER, NEVER);
    L4_Send_Timeout(to, time);
    WAS_IPC(to.raw, 0, 5UL, NEVER);
    L4_Reply(to);
    WAS_IPC(to.raw, 0, ZERO, NEVER);
    L4_Receive(to);
    WAS_IPC(0, to.raw, NEVER, NEVER);
    L4_Receive_Timeout(to, time);
    WAS_IPC(0, to.raw, NEVER, 5UL);
    L4_Wait(&from);
    WAS_IPC(0, ~0UL, NEVER, NEVER);
    EXPECT(from.raw, OUT(RSI), "who sent");
    L4_Wait_Timeout(time, &from);
    WAS_IPC(0, ~0UL, NEVER, 5UL);
    L4_Call(to);
    WAS_IPC(to.raw, to.raw, NEVER, NEVER);
    L4_Call_Timeouts(to, time, other);
    WAS_IPC(to.raw, to.raw, 5UL, 6UL);
    L4_ReplyWait(to, &from);
    WAS_IPC(to.raw, ~0UL, ZERO, NEVER);
    L4_ReplyWait_Timeout(to, time, &from);
    WAS_IPC(to.raw, ~0UL, ZERO, 5UL);
    L4_Lcall(to);
    WAS_IPC(to.raw, to.raw, NEVER, NEVER);
    L4_LreplyWait(to, &from);
    WAS_IPC(to.raw, ~0UL << 6, ZERO, NEVER);
    check_utcb[64 - 15] = 0x900000001;
    L4_Sleep(time);
    WAS_IPC(0, 0x900000001, NEVER, 5UL);
}

static void exchange_names(void)
{
    L4_Word_t sp, ip, flags;
    L4_ThreadId_t seven = id(7);
    prepare_exchange();
    EXPECT(L4_GlobalIdOf(id(0x40)).raw, OUT(RAX), "the other name of a local id");
    prepare_exchange();
    EXPECT(L4_LocalIdOf(seven).raw, OUT(RAX), "the other name of a global id");
    WAS_EXCHANGE(0);
    EXPECT(L4_LocalId(seven).raw, OUT(RAX), "the same");
    WAS_EXCHANGE(0);
    EXPECT(L4_SameThreads(seven, seven), 1, "being the same thread");
    EXPECT(L4_UserDefinedHandleOf(seven), OUT(R10), "its handle");
    WAS_EXCHANGE(0x200);
    EXPECT(L4_PagerOf(seven).raw, OUT(RDI), "its pager");
    WAS_EXCHANGE(0x200);
    L4_Set_UserDefinedHandleOf(seven, 3);
    EXPECT(check_in[R10], 3, "the new handle");
    WAS_EXCHANGE(0x40);
    L4_Set_PagerOf(seven, id(4));
    EXPECT(check_in[RDI], 4, "the new pager");
    WAS_EXCHANGE(0x80);
    L4_Start(seven);
    WAS_EXCHANGE(0x106);
    L4_Start_SpIp(seven, 1, 2);
    EXPECT(check_in[RDX] << 8 | check_in[R8], 0x102, "stack and instruction pointer");
    WAS_EXCHANGE(0x11E);
    L4_Start_SpIpFlags(seven, 1, 2, 3);
    EXPECT(check_in[R9], 3, "the flags");
    WAS_EXCHANGE(0x13E);
    L4_Stop(seven);
    WAS_EXCHANGE(0x301);
    EXPECT(L4_Stop_SpIpFlags(seven, &sp, &ip, &flags).raw, OUT(RSI), "its state");
    EXPECT(sp == OUT(RDX) && ip == OUT(R8) && flags == OUT(R9), 1, "where it was stopped");
    WAS_EXCHANGE(0x301);
    L4_AbortReceive_and_stop(seven);
    WAS_EXCHANGE(0x303);
    L4_AbortSend_and_stop(seven);
    WAS_EXCHANGE(0x305);
    L4_AbortIpc_and_stop(seven);
    WAS_EXCHANGE(0x307);
}

static void unmap_names(void)
{
    L4_Fpage_t pages[2], page = L4_FpageLog2(0x5000, 12);
    pages[0] = pages[1] = page;
    prepare();
    EXPECT(L4_UnmapFpage(page).raw, OUT(R9), "the page with its status");
    EXPECT(check_in[RDX], 0, "the control word for a page");
    L4_UnmapFpages(2, pages);
    EXPECT(check_in[RDX], 1, "the control word for two");
    L4_Flush(page);
    EXPECT(check_in[RDX], 0x40, "the control word for a page to flush");
    pages[0] = pages[1] = page;
    L4_FlushFpages(2, pages);
    EXPECT(check_in[RDX], 0x41, "the control word for two to flush");
    EXPECT(check_in[R9] == page.raw && check_in[RAX] == page.raw, 1, "that the pages came");
    L4_GetStatus(L4_FpageAddRights(page, L4_FullyAccessible));
    EXPECT(check_in[RDX] == 0 && check_in[R9] == page.raw, 1, "that no right is taken");
}

/* A page with everything in it that the functions of kip.h read. */
static const void *page_of_a_kernel(void)
{
    static union {
        L4_KernelInterfacePage_t page;
        L4_Word_t words[512];
    } kip;
    L4_Word_t *descriptor = kip.words + 0x300 / 8;
    kip.page.KernDescPtr = 0x300;
    descriptor[1] = 3 | 2 << 5 | 21 << 9;
    descriptor[2] = 0x01020003;
    descriptor[3] = L4_SUPL_UKA;
    memcpy(descriptor + 4, "name\0smallspaces\0\0", 18);
    kip.page.ProcessorInfo.raw = 5UL << 60 | 1;
    kip.page.ProcDescPtr = 0x240;
    kip.words[0x240 / 8 + 4] = 100;
    kip.words[0x240 / 8 + 5] = 2000;
    kip.page.MemoryInfo.raw = 0x380UL << 32 | 1;
    kip.words[0x380 / 8] = 0x400000 | 1 << 9 | L4_BootLoaderSpecificMemoryType | 2 << 4;
    kip.words[0x380 / 8 + 1] = 0x7FFC00;
    kip.page.PageInfo.raw = 0x201007;
    kip.page.ThreadInfo.raw = 0x03001012;
    kip.page.UtcbAreaInfo.raw = 0xC2801;
    kip.page.KipAreaInfo.raw = 12;
    kip.page.ClockInfo.raw = 7 << 16 | 5;
    kip.page.BootInfo = 0x9000;
    return &kip;
}

static void kernel_page_names(void)
{
    L4_Word_t year, month, day;
    const void *page = page_of_a_kernel();
    const L4_MemoryDesc_t *memory = L4_MemoryDesc(page, 0);
    const L4_ProcDesc_t *processor = L4_ProcDesc(page, 1);
    EXPECT((L4_Word_t)L4_GetKernelInterface(), OUT(RAX), "where the page is");
    EXPECT(L4_ApiVersion(), OUT(RCX), "the interface's version");
    EXPECT(L4_ApiFlags(), OUT(RDX), "its flags");
    EXPECT(L4_KernelId(), OUT(RSI), "the kernel's id");
    L4_KernelGenDate(page, &year, &month, &day);
    EXPECT(year * 10000 + month * 100 + day, 20210203, "the kernel's date");
    EXPECT(L4_KernelVersion(page), 0x01020003, "its version");
    EXPECT(L4_KernelSupplier(page), L4_SUPL_UKA, "its supplier");
    EXPECT(strcmp(L4_KernelVersionString(page), "name"), 0, "its version in words");
    EXPECT(strcmp(L4_Feature(page, 0), "smallspaces"), 0, "its feature");
    EXPECT(L4_Feature(page, 1) == (char *)0, 1, "that there is no second one");
    EXPECT(L4_NumProcessors(page), 2, "the number of processors");
    EXPECT(L4_ProcDesc(page, 2) == (L4_ProcDesc_t *)0, 1, "that there is no third one");
    EXPECT(L4_ProcDescExternalFreq(processor), 100, "the second's bus");
    EXPECT(L4_ProcDescInternalFreq(processor), 2000, "its own frequency");
    EXPECT(L4_NumMemoryDescriptors(page), 1, "the number of memory descriptors");
    EXPECT(L4_IsMemoryDescVirtual(memory), 1, "that the first is of virtual addresses");
    EXPECT(L4_MemoryDescType(memory), 0x2E, "its type");
    EXPECT(L4_MemoryDescLow(memory), 0x400000, "where it begins");
    EXPECT(L4_MemoryDescHigh(memory), 0x7FFFFF, "where it ends");
    EXPECT(L4_PageSizeMask(page), 0x201000, "the sizes of pages");
    EXPECT(L4_PageRights(page), 7, "their rights");
    EXPECT(L4_ThreadIdBits(page), 18, "the bits of a thread number");
    EXPECT(L4_ThreadIdSystemBase(page), 16, "the first thread of the system");
    EXPECT(L4_ThreadIdUserBase(page), 48, "the first of users");
    EXPECT(L4_ReadPrecision(page).raw, 5, "how exact the clock is");
    EXPECT(L4_SchedulePrecision(page).raw, 7, "how exact scheduling is");
    EXPECT(L4_UtcbAreaSize(page), 4096, "the smallest UTCB area");
    EXPECT(L4_UtcbAlignmentLog2(page), 10, "where a UTCB may lie");
    EXPECT(L4_UtcbSize(page), 1024, "how large one is");
    EXPECT(L4_KipAreaSize(page), 4096, "the smallest area for the page itself");
    EXPECT(L4_BootInfo(page), 0x9000, "where the loader's records are");
}

/* What the headers of other kernels have as numbers has the same ones here. */
static void constants(void)
{
    EXPECT(L4_MAGIC, 0x4BE6344C, "the page's magic number");
    EXPECT(L4_APIVERSION_X2 << 8 | L4_APISUBVERSION_X0, 0x8480, "versions");
    EXPECT(L4_APIFLAG_64BIT << 2 | L4_APIFLAG_LE, 4, "flags");
    EXPECT(L4_KID_L4KA_PISTACHIO, 0x0402, "a kernel's id");
    EXPECT(L4_UndefinedMemoryType + L4_SharedMemoryType, 4, "types of memory");
    EXPECT(L4_ConventionalMemoryType | L4_ReservedMemoryType, 3, "others");
    EXPECT(L4_DedicatedMemoryType + L4_ArchitectureSpecificMemoryType, 18, "others");
    EXPECT(L4_ProtocolPageFault + L4_ProtocolInterrupt, -3L, "labels of protocols");
    EXPECT(L4_ProtocolSigma0 + L4_ProtocolIoPageFault, -14L, "others");
    EXPECT(L4_ErrNoPrivilege | L4_ErrNoMem, 9, "errors");
    EXPECT(L4_SCHEDRESULT_RECEIVING, 7, "a thread's state");
    EXPECT(L4_WriteBackMemory + L4_UncacheableMemory, 8, "attributes of memory");
    EXPECT(sizeof(L4_Msg_t), 64 * 8, "the size of a message");
    EXPECT(L4_Tbuf_GetTbuf() == (void *)0, 1, "that there is no trace buffer");
}

/* Who reads words of a message that it has not got finds what lies there; nothing stops. */
static void words_beyond_the_message(void)
{
    volatile int count = 70;
    L4_Msg_t msg;
    L4_Word_t word;
    int i;
    for (i = 0; i < 64; i++)
        msg.raw[i] = 0x500 + (L4_Word_t)i;
    L4_Set_MsgMsgTag(&msg, L4_ProtocolTag(0, 0, 2, 0));
    for (i = 0; i < count; i++) {
        EXPECT(L4_MsgWord(&msg, (L4_Word_t)i), 0x501 + (i < 63 ? i : 62), "a word");
        L4_MsgGetWord(&msg, (L4_Word_t)i, &word);
        EXPECT(word, L4_MsgWord(&msg, (L4_Word_t)i), "the same");
    }
}

#include "overloads.h"

void run_name_tests(void)
{
    test_run("ipc_names", ipc_names);
    test_run("exchange_names", exchange_names);
    test_run("unmap_names", unmap_names);
    test_run("kernel_page_names", kernel_page_names);
    test_run("constants", constants);
    test_run("words_beyond_the_message", words_beyond_the_message);
    run_cxx_tests();
}
