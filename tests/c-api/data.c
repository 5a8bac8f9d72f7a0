/*
 * data.c - ids, flexpages, times: values and arithmetic that need no kernel.
 */
#include <l4/arch.h>
#include <l4/bootinfo.h>
#include <l4/kip.h>
#include <l4/protocols.h>
#include <l4/schedule.h>
#include <l4/space.h>
#include "test.h"

static void ids(void)
{
    L4_ThreadId_t t = L4_GlobalId(50, 3), local;
    local.raw = 0xBF000200;
    EXPECT(t.raw, 0x3200000003, "the id of thread 50, version 3,");
    EXPECT(L4_ThreadNo(t), 50, "its number");
    EXPECT(L4_Version(t), 3, "its version");
    EXPECT(t.global.X.thread_no, 50, "its number in the bit-field view");
    EXPECT(L4_IsGlobalId(t), 1, "being global");
    EXPECT(L4_IsLocalId(t), 0, "being local");
    EXPECT(L4_IsLocalId(local), 1, "being local, for a UTCB pointer,");
    EXPECT(local.local.X.local_id, 0xBF000200 >> 6, "the local id's upper part");
    EXPECT(L4_IsNilThread(L4_nilthread), 1, "nilthread being nil");
    EXPECT(L4_anythread.raw, ~0UL, "anythread");
    EXPECT(L4_anylocalthread.raw, 0xFFFFFFFFFFFFFFC0, "anylocalthread");
    EXPECT(L4_IsThreadEqual(t, L4_GlobalId(50, 3)), 1, "equality of equal ids");
    EXPECT(L4_IsThreadNotEqual(t, L4_GlobalId(50, 4)), 1, "inequality of versions");
}

static void fpages(void)
{
    L4_Fpage_t f = L4_FpageLog2(0x12345678, 12), g;
    EXPECT(f.raw, 0x123450C0, "a 4 KiB flexpage");
    EXPECT(L4_Address(f), 0x12345000, "its address");
    EXPECT(L4_Size(f), 0x1000, "its size");
    EXPECT(L4_SizeLog2(f), 12, "its log2 size");
    EXPECT(L4_Rights(f), 0, "its rights");
    EXPECT(L4_Fpage(0x400000, 0x1001).raw, 0x4000D0, "a flexpage of 4097 bytes, rounded up,");
    g = L4_FpageAddRights(f, L4_FullyAccessible);
    EXPECT(L4_Rights(g), 7, "rights after adding all");
    L4_FpageRemoveRightsFrom(&g, L4_Writable);
    EXPECT(L4_Rights(g), 5, "rights without write");
    L4_Set_Rights(&g, L4_ReadWriteOnly);
    EXPECT(L4_Rights(g), 6, "rights after setting read and write");
    EXPECT(L4_Address(g), 0x12345000, "the address after all that");
    EXPECT(g.X.s, 12, "the size in the bit-field view");
    EXPECT(L4_IsNilFpage(L4_Nilpage), 1, "the nil flexpage being nil");
    EXPECT(L4_SizeLog2(L4_CompleteAddressSpace), 64, "log2 size of everything");
    EXPECT(L4_Address(L4_CompleteAddressSpace), 0, "address of everything");
    EXPECT(L4_WasWritten(g), 1, "the written bit");
    EXPECT(L4_WaseXecuted(g), 0, "the executed bit");
}

static void io_fpages(void)
{
    L4_Fpage_t f = L4_IoFpageLog2(0x3FB, 3);
    EXPECT(f.raw, 0x03F80C20, "the flexpage of the serial port");
    EXPECT(L4_IoFpage(0x3F8, 8).raw, f.raw, "the same, by number of ports,");
    EXPECT(L4_IsIoFpage(f), 1, "being an I/O flexpage");
    EXPECT(L4_IoFpagePort(f), 0x3F8, "its first port");
    EXPECT(L4_IoFpageSize(f), 8, "its number of ports");
    EXPECT(L4_IsIoFpage(L4_FpageLog2(0x1000, 12)), 0, "memory being an I/O flexpage");
    EXPECT(L4_IoFpageLog2(0, 16).raw, L4_CompleteIoSpace.raw, "all ports");
}

static void periods(void)
{
    L4_Time_t second = L4_TimePeriod(1000000);
    EXPECT(L4_TimePeriod(0).raw, 0x0400, "the zero period");
    EXPECT(L4_ZeroTime.raw, 0x0400, "ZeroTime");
    EXPECT(L4_Never.raw, 0, "Never");
    EXPECT(L4_TimePeriod(1000).raw, 0x3E8, "the period of 1000 us");
    EXPECT(L4_TimePeriod(1023).raw, 0x3FF, "the period of 1023 us");
    EXPECT(L4_TimePeriod(1024).raw, 0x400 | 512, "the period of 1024 us");
    EXPECT(second.raw, 10 << 10 | 976, "the period of a second");
    EXPECT(L4_TimeMicroseconds(second), 999424, "its length");
    EXPECT(L4_TimePeriod(1023UL << 31).raw, 31 << 10 | 1023, "the longest period");
    EXPECT(L4_TimePeriod(1024UL << 31).raw, 0, "a period beyond the longest");
    EXPECT(L4_TimeAddUsec(L4_TimePeriod(600), 300).raw, 900, "600 us and 300 us");
    EXPECT(L4_TimeSubUsec(L4_TimePeriod(600), 700).raw, 0x400, "600 us less 700 us");
    EXPECT(L4_TimeAdd(L4_Never, second).raw, 0, "never and a second");
    EXPECT(L4_TimeSub(L4_TimePeriod(900), L4_TimePeriod(300)).raw, 600, "900 us less 300 us");
    EXPECT(L4_IsTimeLonger(L4_Never, second), 1, "never being longer than a second");
    EXPECT(L4_IsTimeShorter(L4_ZeroTime, L4_TimePeriod(1)), 1, "zero being shorter than 1 us");
    EXPECT(L4_IsTimeEqual(second, L4_TimePeriod(999424)), 1, "equality of equal periods");
    EXPECT(L4_Timeouts(L4_ZeroTime, second), 0x04000000 | second.raw, "two timeouts in a word");
}

/* The clock value that a point means when the clock shows `now`. */
static L4_Word_t point_value(L4_Time_t t, L4_Word_t now)
{
    L4_Word_t e = t.point.e, page = (now >> (e + 10)) + t.point.c;
    return ((page << 10) | t.point.m) << e;
}

static void points(void)
{
    static const L4_Word_t distances[] = { 1, 1000, 1024, 5000, 100000, 20000000 };
    L4_Clock_t now, at;
    L4_Word_t i, value;
    now.raw = 0x123456789;
    for (i = 0; i < sizeof distances / sizeof distances[0]; i++) {
        L4_Time_t t;
        at.raw = now.raw + distances[i];
        t = L4_TimePointFrom(now, at);
        EXPECT(t.point.a, 1, "the mark of a point");
        value = point_value(t, now.raw);
        REQUIRE(value <= at.raw, "A point is later than the moment it stands for.");
        REQUIRE(at.raw - value <= distances[i] >> 9, "A point lost more than its precision.");
    }
    EXPECT(L4_TimePointFrom(now, now).raw, 0x0400, "a point that has come");
    at.raw = now.raw + (1UL << 30);
    EXPECT(L4_TimePointFrom(now, at).raw, 0, "a point too far away");
}

static void clocks(void)
{
    L4_Clock_t early = { 5 }, late = { 8 };
    EXPECT(L4_IsClockEarlier(early, late), 1, "5 being earlier than 8");
    EXPECT(L4_IsClockLater(early, late), 0, "5 being later than 8");
    EXPECT(L4_IsClockEqual(L4_ClockAddUsec(early, 3), late), 1, "5 + 3 being 8");
    EXPECT(L4_IsClockNotEqual(L4_ClockSubUsec(late, 2), early), 1, "8 - 2 not being 5");
}

static void protocol_tags(void)
{
    L4_MsgTag_t fault = L4_ProtocolTag(L4_ProtocolPageFault, 6, 2, 0);
    EXPECT(fault.raw, 0xFFFFFFFFFFE60002, "the tag of a page fault");
    EXPECT(L4_IsPageFault(fault), 1, "being a page fault");
    EXPECT(L4_IsIoPageFault(fault), 0, "being an I/O fault");
    EXPECT(L4_PageFaultAccess(fault), 6, "the access");
    EXPECT(L4_ProtocolTag(L4_ProtocolArchException, 0, 19, 0).raw, 0xFFFFFFFFFFB00013,
           "the tag of an exception");
    EXPECT(L4_ExceptionError, 20, "the word of the error code");
    EXPECT(L4_ExceptionSp, 17, "the word of the stack pointer");
}

static void memory_descriptors(void)
{
    L4_MemoryDesc_t m;
    m.raw[0] = 0x100000 | 1 << 9 | 2 << 4 | 0xE;
    m.raw[1] = 0x1FFC00;
    EXPECT(L4_MemoryDescLow(&m), 0x100000, "the first byte");
    EXPECT(L4_MemoryDescHigh(&m), 0x1FFFFF, "the last byte");
    EXPECT(L4_MemoryDescType(&m), 0x2E, "the type with its subtype");
    EXPECT(L4_IsMemoryDescVirtual(&m), 1, "being virtual");
    m.raw[0] = 0x21;
    EXPECT(L4_MemoryDescType(&m), L4_ConventionalMemoryType, "the type without subtype");
}

static void boot_records(void)
{
    static L4_Word_t info[31] = {
        L4_BootInfo_Magic, 1, sizeof info, 64, 2, 0, 0, 0,
        L4_BootInfo_Module, 1, 56, 0x200000, 0x3000, 48, 0x0000676E69727473, /* "string" */
        L4_BootInfo_SimpleExec, 1, 128, 0x300000, 0x400000, 0x2000, 0x302000, 0x402000, 0x100,
        0, 0x402100, 0x80, 0x400010, 1, 7, 0,
    };
    L4_BootRec_t *rec = L4_BootInfo_FirstEntry(info);
    REQUIRE(L4_BootInfo_Valid(info), "Valid boot information was refused.");
    EXPECT(L4_BootInfo_Entries(info), 2, "the number of records");
    EXPECT(L4_BootRec_Type(rec), L4_BootInfo_Module, "the first record's type");
    EXPECT(L4_Module_Start(rec), 0x200000, "the module's start");
    EXPECT(L4_Module_Size(rec), 0x3000, "the module's size");
    EXPECT(L4_Module_Cmdline(rec)[5], 'g', "the command line's sixth character");
    rec = L4_BootRec_Next(rec);
    EXPECT(L4_BootRec_Type(rec), L4_BootInfo_SimpleExec, "the second record's type");
    EXPECT(L4_SimpleExec_DataVstart(rec), 0x402000, "the program's data address");
    EXPECT(L4_SimpleExec_BssVstart(rec), 0x402100, "the program's bss address");
    EXPECT(L4_SimpleExec_BssSize(rec), 0x80, "the program's bss size");
    EXPECT(L4_SimpleExec_InitialIP(rec), 0x400010, "the program's entry");
    EXPECT(L4_SimpleExec_Label(rec), 7, "the program's label");
    EXPECT(L4_SimpleExec_Cmdline(rec)[0], 0, "the absent command line");
    info[0] = 0;
    REQUIRE(!L4_BootInfo_Valid(info), "Boot information without its magic was accepted.");
    info[0] = L4_BootInfo_Magic;
}

void run_data_tests(void)
{
    test_run("ids", ids);
    test_run("fpages", fpages);
    test_run("io_fpages", io_fpages);
    test_run("periods", periods);
    test_run("points", points);
    test_run("clocks", clocks);
    test_run("protocol_tags", protocol_tags);
    test_run("memory_descriptors", memory_descriptors);
    test_run("boot_records", boot_records);
    run_message_tests();
}
