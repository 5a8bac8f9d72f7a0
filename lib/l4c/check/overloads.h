/*
 * overloads.h - the tests of the C++ forms (l4/overloads.h and the C++ parts of the
 * other headers); a part of names.c, empty for a C compiler.
 */
#ifdef __cplusplus

static void cxx_messages(void)
{
    L4_Msg_t msg;
    L4_Word_t word = 0, words[2] = { 7, 8 }, untyped[4] = { 0 }, items[8] = { 0 };
    L4_MapItem_t m = L4_MapItem(L4_FpageLog2(0x5000, 12), 0x400), got_map;
    L4_GrantItem_t g = L4_GrantItem(L4_FpageLog2(0x6000, 12), 0x800), got_grant;
    L4_StringItem_t s = L4_StringItem(5, (void *)0x7000UL), got_string;
    L4_Put(&msg, 99, 2, words, 0, items);
    EXPECT(L4_Label(&msg), 99, "the label");
    L4_Append(&msg, 0);
    L4_Append(&msg, 9UL);
    L4_Append(&msg, m);
    L4_Append(&msg, g);
    L4_Append(&msg, s);
    L4_Append(&msg, &s);
    L4_Set_Label(&msg, 98);
    EXPECT(L4_MsgTag(&msg).raw, 98 << 16 | 8 << 6 | 4, "the tag");
    EXPECT(L4_Get(&msg, 3), 9, "the fourth word");
    L4_Get(&msg, 1, &word);
    EXPECT(word, 8, "the second word");
    L4_Put(&msg, 2, 33UL);
    EXPECT(L4_Get(&msg, 2), 33, "an overwritten word");
    EXPECT(L4_Get(&msg, 0, &got_map), 2, "the map item's length");
    EXPECT(L4_MapItem(got_map), 1, "being a map item");
    EXPECT(L4_SndBase(got_map), 0x400, "its send base");
    EXPECT(L4_Get(&msg, 2, &got_grant), 2, "the grant item's length");
    EXPECT(L4_GrantItem(got_grant), 1, "being a grant item");
    EXPECT(L4_SndFpage(got_grant).raw, g.raw[1], "its flexpage");
    EXPECT(L4_Get(&msg, 4, &got_string), 2, "the string item's length");
    EXPECT(L4_StringItem(&got_string), 1, "being a string item");
    L4_Get(&msg, untyped, items);
    EXPECT(untyped[2], 33, "the third of all words");
    EXPECT(items[3], g.raw[1], "the fourth of all typed words");
    L4_Clear(&msg);
    EXPECT(L4_MsgTag(&msg).raw, 0, "the tag of a cleared message");
    L4_Set_MsgTag(&msg, L4_Niltag + 5UL);
    EXPECT(L4_MsgTag(&msg) == L4_Niltag, 0, "equality of unequal tags");
    EXPECT(L4_Label(L4_MsgTag(&msg)), 5, "the label of a tag");
}

static void cxx_items(void)
{
    static char a[8], b[8], c[16];
    L4_CompoundStringItem_t s;
    L4_CacheAllocationHint_t hint = { 2 };
    L4_MsgBuffer_t buffer;
    L4_Acceptor_t acceptor = L4_UntypedWordsAcceptor;
    s.item = L4_StringItem(8, a);
    s.item += (void *)b;
    s.item += L4_StringItem(16, c);
    EXPECT(L4_Substrings(&s.item), 3, "the number of substrings");
    EXPECT((L4_Word_t)L4_Substring(&s.item, 2), (L4_Word_t)c, "the third substring");
    EXPECT(L4_CacheAllocationHint(s.item + hint) == hint, 1, "the hint");
    L4_Clear(&buffer);
    L4_Append(&buffer, &s.item);
    L4_Append(&buffer, L4_StringItem(4, a));
    EXPECT(buffer.raw[0], 7, "the words of two buffers");
    acceptor += L4_StringItemsAcceptor;
    EXPECT(L4_HasStringItems(acceptor), 1, "accepting strings");
    EXPECT(L4_HasStringItems(acceptor - L4_StringItemsAcceptor), 0, "accepting strings no more");
}

static void cxx_times(void)
{
    L4_Clock_t early = { 1000 }, late = early + 500;
    L4_Time_t second = L4_TimePeriod(1000000), two = second + second;
    EXPECT((late - early).raw, 500, "the difference of two clock values");
    EXPECT(early < late && late >= early && early != late, 1, "the order of clock values");
    EXPECT((late - 500).raw, 1000, "a clock value less a number");
    EXPECT((late - 500UL).raw, 1000, "a clock value less a word");
    EXPECT((early + 500UL).raw + (early + early).raw, 3500, "sums of clock values");
    EXPECT(early <= late && late > early && early == early, 1, "their order");
    EXPECT(two > second && second <= two, 1, "the order of periods");
    EXPECT(two - second == second, 1, "the difference of two periods");
    two -= 2000000UL;
    EXPECT(two == L4_ZeroTime, 1, "a period less all of it");
}

static void cxx_calls(void)
{
    L4_Time_t time = L4_TimePeriod(5), other = L4_TimePeriod(6);
    L4_ThreadId_t from, to = id(0x100000007);
    prepare();
    L4_Send(to, time);
    WAS_IPC(to.raw, 0, 5UL, NEVER);
    L4_Receive(to, time);
    WAS_IPC(0, to.raw, NEVER, 5UL);
    L4_Wait(time, &from);
    WAS_IPC(0, ~0UL, NEVER, 5UL);
    L4_Call(to, time, other);
    WAS_IPC(to.raw, to.raw, 5UL, 6UL);
    L4_ReplyWait(to, time, &from);
    WAS_IPC(to.raw, ~0UL, ZERO, 5UL);
    EXPECT((L4_Word_t)L4_KernelInterface(), OUT(RAX), "where the kernel's page is");
}

static void cxx_loads(void)
{
    L4_Msg_t msg, got;
    L4_MsgBuffer_t buffer;
    static char text[8];
    L4_Clear(&msg);
    L4_Append(&msg, 77UL);
    L4_Append(&msg, L4_MapItem(L4_FpageLog2(0x5000, 12), 0));
    L4_Set_Label(&msg, 3);
    L4_Load(&msg);
    EXPECT(U[0], L4_MsgTag(&msg).raw, "the tag among the registers");
    EXPECT(U[1], 77, "the first word there");
    EXPECT(U[3], L4_FpageLog2(0x5000, 12).raw, "the item's second word there");
    L4_Store(L4_MsgTag(), &got);
    EXPECT(L4_Label(&got), 3, "the label of what was stored");
    EXPECT(L4_Get(&got, 0), 77, "its first word");
    L4_Put(&got, 0, L4_StringItem(5, text));
    EXPECT(got.raw[2] >> 10, 5, "the length of an overwritten item");
    L4_Clear(&buffer);
    L4_Append(&buffer, L4_StringItem(8, text));
    L4_Accept(L4_StringItemsAcceptor, &buffer);
    EXPECT(U[-16], 1, "the acceptor");
    EXPECT(U[-17] >> 10, 8, "the buffer's length");
    L4_Accept(L4_UntypedWordsAcceptor);
    EXPECT(U[-16], 0, "the acceptor of words");
}

static void cxx_exchanges(void)
{
    L4_ThreadId_t seven = id(7);
    L4_Word_t sp, ip, flags;
    prepare_exchange();
    EXPECT(L4_GlobalId(id(0x40)).raw, OUT(RAX), "the other name of a local id");
    prepare_exchange();
    EXPECT(L4_UserDefinedHandle(seven), OUT(R10), "a thread's handle");
    WAS_EXCHANGE(0x200);
    EXPECT(L4_Pager(seven).raw, OUT(RDI), "its pager");
    WAS_EXCHANGE(0x200);
    L4_Set_UserDefinedHandle(seven, 3);
    WAS_EXCHANGE(0x40);
    L4_Set_Pager(seven, id(4));
    WAS_EXCHANGE(0x80);
    L4_Start(seven, 1, 2);
    WAS_EXCHANGE(0x11E);
    L4_Start(seven, 1, 2, 3);
    WAS_EXCHANGE(0x13E);
    L4_Stop(seven, &sp, &ip, &flags);
    WAS_EXCHANGE(0x301);
    L4_AbortReceive_and_stop(seven, &sp, &ip, &flags);
    WAS_EXCHANGE(0x303);
    L4_AbortSend_and_stop(seven, &sp, &ip, &flags);
    WAS_EXCHANGE(0x305);
    L4_AbortIpc_and_stop(seven, &sp, &ip, &flags);
    WAS_EXCHANGE(0x307);
}

static void cxx_descriptors(void)
{
    const void *page = page_of_a_kernel();
    EXPECT(L4_IsVirtual(L4_MemoryDesc(page, 0)), 1, "that it is of virtual addresses");
    EXPECT(L4_Type(L4_MemoryDesc(page, 0)), 0x2E, "its type");
    EXPECT(L4_Low(L4_MemoryDesc(page, 0)), 0x400000, "where it begins");
    EXPECT(L4_High(L4_MemoryDesc(page, 0)), 0x7FFFFF, "where it ends");
    EXPECT(L4_ExternalFreq(L4_ProcDesc(page, 1)), 100, "a processor's bus");
    EXPECT(L4_InternalFreq(L4_ProcDesc(page, 1)), 2000, "its own frequency");
}

static void cxx_unmaps(void)
{
    L4_Fpage_t pages[2], page = L4_FpageLog2(0x5000, 12);
    pages[0] = pages[1] = page;
    prepare();
    EXPECT(L4_Unmap(page).raw, OUT(R9), "the page with its status");
    EXPECT(check_in[RDX], 0, "the control word for a page");
    L4_Unmap(2, pages);
    EXPECT(check_in[RDX], 1, "the control word for two");
    L4_Flush(2, pages);
    EXPECT(check_in[RDX], 0x41, "the control word for two to flush");
}

/* Asks for pages of sigma0 (the stub's answer is none). */
static void cxx_sigma0(void)
{
    L4_Fpage_t page = L4_FpageLog2(0x5000, 12);
    prepare();
    check_out[R9] = 0;
    EXPECT(L4_Sigma0_GetPage(id(0x100000007), page, page).raw, 0, "what comes of nothing");
    EXPECT(check_in[R9] >> 20, (1UL << 44) - 6, "the label of the request");
    EXPECT(check_in[RAX], page.raw, "the page that is wanted");
    L4_Sigma0_GetPage(id(0x100000007), page, page, L4_UncacheableMemory);
    EXPECT(check_in[RBX], 1, "its attributes");
}

static void cxx_pages(void)
{
    L4_Fpage_t f = L4_FpageLog2(0x5000, 12);
    f += L4_ReadWriteOnly;
    EXPECT(L4_Rights(f), L4_ReadWriteOnly, "added rights");
    f -= L4_Writable;
    EXPECT(L4_Rights(f), L4_Readable, "what is left of them");
    EXPECT(L4_nilthread == L4_nilthread, 1, "equality of ids");
}

static void run_cxx_tests(void)
{
    test_run("cxx_messages", cxx_messages);
    test_run("cxx_items", cxx_items);
    test_run("cxx_times", cxx_times);
    test_run("cxx_pages", cxx_pages);
    test_run("cxx_calls", cxx_calls);
    test_run("cxx_loads", cxx_loads);
    test_run("cxx_exchanges", cxx_exchanges);
    test_run("cxx_descriptors", cxx_descriptors);
    test_run("cxx_unmaps", cxx_unmaps);
    test_run("cxx_sigma0", cxx_sigma0);
}

#else
static void run_cxx_tests(void) {}
#endif
