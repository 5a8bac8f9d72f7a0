/*
 * overloads.h - the tests of the C++ forms (l4/overloads.h and the C++ parts of the
 * other headers) that need no kernel; empty for a C compiler.
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
    EXPECT(two > second && second <= two, 1, "the order of periods");
    EXPECT(two - second == second, 1, "the difference of two periods");
    two -= 2000000UL;
    EXPECT(two == L4_ZeroTime, 1, "a period less all of it");
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
}

#else
static void run_cxx_tests(void) {}
#endif
