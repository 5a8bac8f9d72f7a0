/*
 * message.c - tags, items, messages in memory, acceptors; no system call.
 */
#include <l4/message.h>
#include <l4/space.h>
#include "test.h"

static void tags(void)
{
    L4_MsgTag_t t = L4_Niltag;
    EXPECT(t.raw, 0, "the nil tag");
    L4_MsgTagAddLabelTo(&t, 0x123456789ABC);
    EXPECT(t.raw, 0x123456789ABC0000, "a tag with a label");
    EXPECT(L4_Label(t), 0x123456789ABC, "its label");
    t.raw |= 0xF000 | 5 << 6 | 9;
    EXPECT(L4_UntypedWords(t), 9, "the untyped words");
    EXPECT(L4_TypedWords(t), 5, "the typed words");
    EXPECT(t.X.flags, 15, "the flags in the bit-field view");
    L4_Set_Propagation(&t);
    EXPECT(t.X.flags, 1, "the flags after asking for propagation");
    EXPECT(L4_MsgTagAddLabel(t, 7).X.label, 7, "a replaced label");
    EXPECT(L4_IsMsgTagEqual(t, t), 1, "equality of equal tags");
    EXPECT(L4_IsMsgTagNotEqual(t, L4_Niltag), 1, "inequality of tags");
}

static void registers(void)
{
    L4_Word_t in[63], out[63], i, w;
    L4_MsgTag_t t = { 0x77 };
    for (i = 0; i < 63; i++)
        in[i] = i * i + 1;
    L4_LoadMRs(1, 63, in);
    L4_StoreMRs(1, 63, out);
    for (i = 0; i < 63; i++)
        EXPECT(out[i], in[i], "a message register");
    L4_LoadMR(40, 4711);
    L4_StoreMR(40, &w);
    EXPECT(w, 4711, "MR40");
    L4_Set_MsgTag(t);
    EXPECT(L4_MsgTag().raw, 0x77, "MR0");
    L4_LoadBRs(1, 32, in);
    L4_StoreBRs(1, 32, out);
    for (i = 0; i < 32; i++)
        EXPECT(out[i], in[i], "a buffer register");
    L4_StoreBR(32, &w);
    EXPECT(w, in[31], "BR32");
    L4_LoadBR(1, 0);
}

static void map_items(void)
{
    L4_MapItem_t m = L4_MapItem(L4_FpageLog2(0x5000, 12), 0x12345C00);
    L4_GrantItem_t g = L4_GrantItem(L4_FpageLog2(0x5000, 12), 0x1000);
    EXPECT(m.raw[0], 0x12345C08, "a map item's first word");
    EXPECT(m.raw[1], 0x50C0, "a map item's second word");
    EXPECT(L4_IsMapItem(m), 1, "being a map item");
    EXPECT(L4_MapItemSndBase(m), 0x12345C00, "its send base");
    EXPECT(L4_MapItemSndFpage(m).raw, 0x50C0, "its flexpage");
    EXPECT(g.raw[0], 0x100A, "a grant item's first word");
    EXPECT(L4_IsGrantItem(g), 1, "being a grant item");
    EXPECT(L4_GrantItemSndBase(g), 0x1000, "its send base");
    EXPECT(L4_GrantItemSndFpage(g).raw, 0x50C0, "its flexpage");
}

static void string_items(void)
{
    static char a[8], b[8], c[16];
    L4_CompoundStringItem_t s;
    L4_StringItem_t other = L4_StringItem(16, c);
    s.item = L4_StringItem(8, a);
    EXPECT(s.raw[0], 8 << 10, "a string item's first word");
    EXPECT(s.raw[1], (L4_Word_t)a, "a string item's address");
    EXPECT(L4_IsStringItem(&s.item), 1, "being a string item");
    EXPECT(L4_CompoundString(&s.item), 0, "a simple string being compound");
    L4_AddSubstringAddressTo(&s.item, b);
    EXPECT(s.raw[0], 8 << 10 | 1 << 4, "the first word with two substrings");
    EXPECT(L4_CompoundString(&s.item), 1, "two substrings being compound");
    L4_AddSubstringTo(&s.item, &other);
    EXPECT(s.raw[0], 8 << 10 | 0x200 | 1 << 4, "the first word of a continued string");
    EXPECT(s.raw[3], 16 << 10, "the first word of the continuation");
    EXPECT(L4_Substrings(&s.item), 3, "the number of substrings");
    EXPECT((L4_Word_t)L4_Substring(&s.item, 1), (L4_Word_t)b, "the second substring");
    EXPECT((L4_Word_t)L4_Substring(&s.item, 2), (L4_Word_t)c, "the third substring");
    EXPECT((L4_Word_t)L4_Substring(&s.item, 3), 0, "a fourth substring");
}

static void many_substrings(void)
{
    L4_CompoundStringItem_t s;
    L4_Word_t i;
    s.item = L4_StringItem(4, (void *)0x1000UL);
    for (i = 1; i < 40; i++)
        L4_AddSubstringAddressTo(&s.item, (void *)(0x1000UL + i * 16));
    EXPECT(L4_Substrings(&s.item), 40, "the number of substrings");
    for (i = 0; i < 40; i++)
        EXPECT((L4_Word_t)L4_Substring(&s.item, i), 0x1000 + i * 16, "a substring's address");
}

static void cache_hints(void)
{
    L4_CacheAllocationHint_t hint = { 2 };
    L4_StringItem_t s = L4_StringItem(8, (void *)0x1000UL);
    L4_AddCacheAllocationHintTo(&s, hint);
    EXPECT(s.raw[0], 8 << 10 | 4, "the first word with a hint");
    EXPECT(L4_CacheAllocationHint(s).raw, 2, "the hint");
    EXPECT(L4_IsStringItem(&s), 1, "being a string item still");
    REQUIRE(L4_IsCacheAllocationHintNotEqual(hint, L4_UseDefaultCacheLineAllocation),
            "A hint equals the default.");
}

static void building(void)
{
    L4_Msg_t msg;
    L4_MapItem_t m;
    L4_GrantItem_t g;
    L4_StringItem_t s;
    L4_MsgClear(&msg);
    L4_MsgAppendWord(&msg, 11);
    L4_MsgAppendMapItem(&msg, L4_MapItem(L4_FpageLog2(0x5000, 12), 0x400));
    L4_MsgAppendWord(&msg, 12);
    L4_MsgAppendGrantItem(&msg, L4_GrantItem(L4_FpageLog2(0x6000, 12), 0x800));
    L4_MsgAppendSimpleStringItem(&msg, L4_StringItem(5, (void *)0x7000UL));
    L4_Set_MsgLabel(&msg, 99);
    EXPECT(L4_MsgMsgTag(&msg).raw, 99 << 16 | 6 << 6 | 2, "the tag");
    EXPECT(L4_MsgLabel(&msg), 99, "the label");
    EXPECT(L4_MsgWord(&msg, 0), 11, "the first word");
    EXPECT(L4_MsgWord(&msg, 1), 12, "the second word");
    EXPECT(msg.raw[3], 0x400 | 8 | 1, "the map item, with a mark that more follow,");
    EXPECT(msg.raw[5], 0x800 | 0xA | 1, "the grant item, with a mark that more follow,");
    EXPECT(msg.raw[7], 5 << 10, "the string item, the last,");
    EXPECT(L4_MsgGetMapItem(&msg, 0, &m), 2, "the map item's length");
    EXPECT(m.raw[1], 0x50C0, "the map item's flexpage");
    EXPECT(L4_MsgGetGrantItem(&msg, 2, &g), 2, "the grant item's length");
    EXPECT(L4_MsgGetSimpleStringItem(&msg, 4, &s), 2, "the string item's length");
    EXPECT(s.raw[1], 0x7000, "the string's address");
    EXPECT(L4_MsgGetMapItem(&msg, 2, &m), 0, "a grant item taken for a map item");
    EXPECT(L4_MsgGetMapItem(&msg, 6, &m), 0, "an item behind the last");
}

static void overwriting(void)
{
    static const L4_Word_t words[3] = { 1, 2, 3 };
    L4_Word_t untyped[3], typed[2], w;
    L4_MapItem_t m = L4_MapItem(L4_FpageLog2(0x5000, 12), 0);
    L4_Msg_t msg, copy;
    L4_MsgPut(&msg, 5, 3, words, 2, &m);
    EXPECT(L4_MsgMsgTag(&msg).raw, 5 << 16 | 2 << 6 | 3, "the tag");
    L4_MsgPutWord(&msg, 1, 22);
    L4_MsgPutMapItem(&msg, 0, L4_MapItem(L4_FpageLog2(0x9000, 12), 0x400));
    L4_MsgGetWord(&msg, 1, &w);
    EXPECT(w, 22, "the overwritten word");
    L4_MsgGet(&msg, untyped, typed);
    EXPECT(untyped[2], 3, "the third word");
    EXPECT(typed[0], 0x408, "the overwritten item");
    EXPECT(typed[1], 0x90C0, "its flexpage");
    L4_MsgLoad(&msg);
    L4_MsgStore(L4_MsgTag(), &copy);
    for (w = 0; w < 6; w++)
        EXPECT(copy.raw[w], msg.raw[w], "a word that went through the registers");
}

static void overfull(void)
{
    L4_Msg_t msg;
    L4_Word_t i;
    L4_MsgClear(&msg);
    for (i = 0; i < 63; i++)
        L4_MsgAppendWord(&msg, i);
    EXPECT(L4_UntypedWords(msg.tag), 63, "the words of a full message");
    EXPECT(L4_MsgWord(&msg, 62), 62, "its last word");
    L4_MsgAppendWord(&msg, 63);
    REQUIRE(L4_UntypedWords(msg.tag) + L4_TypedWords(msg.tag) > 63,
            "A message with a word too many would be sent without it.");
}

static void compound_in_message(void)
{
    L4_CompoundStringItem_t s, back;
    L4_Msg_t msg;
    L4_Word_t i;
    s.item = L4_StringItem(8, (void *)0x1000UL);
    L4_AddSubstringAddressTo(&s.item, (void *)0x2000UL);
    L4_MsgClear(&msg);
    L4_MsgAppendStringItem(&msg, &s.item);
    L4_MsgAppendStringItem(&msg, &s.item);
    EXPECT(L4_TypedWords(msg.tag), 6, "the typed words");
    EXPECT(msg.raw[1], 8 << 10 | 1 << 4 | 1, "the first string, with a mark that more follow,");
    EXPECT(L4_MsgGetStringItem(&msg, 3, &back.item), 3, "the second string's length");
    for (i = 0; i < 3; i++)
        EXPECT(back.raw[i], s.raw[i], "a word of the second string");
}

static void acceptors(void)
{
    L4_Acceptor_t a = L4_MapGrantItems(L4_FpageLog2(0x400000, 22)), b;
    b = L4_AddAcceptor(a, L4_StringItemsAcceptor);
    EXPECT(b.raw, 0x400161, "the acceptor of a window and strings");
    EXPECT(L4_HasStringItems(b), 1, "accepting strings");
    EXPECT(L4_HasMapGrantItems(b), 1, "accepting mappings");
    EXPECT(L4_RcvWindow(b).raw, 0x400160, "the window");
    EXPECT(L4_RemoveAcceptor(b, L4_StringItemsAcceptor).raw, a.raw, "the acceptor less strings");
    EXPECT(L4_RemoveAcceptor(b, a).raw, 1, "the acceptor less its window");
    L4_Accept(b);
    EXPECT(L4_Accepted().raw, b.raw, "the acceptor in BR0");
    L4_Accept(L4_UntypedWordsAcceptor);
    EXPECT(L4_Accepted().raw, 0, "the empty acceptor in BR0");
}

static void buffers(void)
{
    L4_MsgBuffer_t buffer;
    L4_CompoundStringItem_t s;
    L4_Word_t brs[5];
    s.item = L4_StringItem(8, (void *)0x1000UL);
    L4_AddSubstringAddressTo(&s.item, (void *)0x2000UL);
    L4_MsgBufferClear(&buffer);
    L4_MsgBufferAppendRcvString(&buffer, &s.item);
    L4_MsgBufferAppendSimpleRcvString(&buffer, L4_StringItem(16, (void *)0x3000UL));
    L4_AcceptStrings(L4_StringItemsAcceptor, &buffer);
    L4_StoreBRs(1, 5, brs);
    EXPECT(L4_Accepted().raw, 1, "BR0");
    EXPECT(brs[0], 8 << 10 | 1 << 4 | 1, "the first buffer, with a mark that more follow,");
    EXPECT(brs[2], 0x2000, "its second address");
    EXPECT(brs[3], 16 << 10, "the second buffer");
    EXPECT(brs[4], 0x3000, "its address");
    L4_Accept(L4_UntypedWordsAcceptor);
}

void run_message_tests(void)
{
    test_run("tags", tags);
    test_run("registers", registers);
    test_run("map_items", map_items);
    test_run("string_items", string_items);
    test_run("many_substrings", many_substrings);
    test_run("cache_hints", cache_hints);
    test_run("building", building);
    test_run("overwriting", overwriting);
    test_run("overfull", overfull);
    test_run("compound_in_message", compound_in_message);
    test_run("acceptors", acceptors);
    test_run("buffers", buffers);
}
