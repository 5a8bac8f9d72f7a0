/*
 * string.c - strings from memory to memory: simple, compound, too long.
 */
#include <string.h>
#include <l4/ipc.h>
#include "partner.h"
#include "test.h"

static char text[256];

static void fill_text(void)
{
    int i;
    for (i = 0; i < 256; i++)
        text[i] = (char)(i * 7 + 3);
    memset(string_buffers, 0, sizeof string_buffers);
}

/* Tells the server which buffers to receive into. */
static L4_Word_t open_buffers(L4_ThreadId_t to, const L4_MsgBuffer_t *buffer)
{
    memcpy(string_brs, buffer->raw + 1, sizeof string_brs);
    return ask(to, REQUEST_STRING, 0);
}

/* Sends one string; returns the tag of the answer. */
static L4_MsgTag_t send_item(L4_ThreadId_t to, const L4_StringItem_t *s)
{
    L4_Msg_t msg;
    L4_MsgClear(&msg);
    L4_Set_MsgLabel(&msg, 1000);
    L4_MsgAppendWord(&msg, 1);
    L4_MsgAppendStringItem(&msg, s);
    L4_MsgLoad(&msg);
    return L4_Call(to);
}

static void simple_string(L4_ThreadId_t to)
{
    L4_StringItem_t s = L4_StringItem(200, text);
    L4_MsgBuffer_t buffer;
    L4_Word_t tag;
    fill_text();
    L4_MsgBufferClear(&buffer);
    L4_MsgBufferAppendSimpleRcvString(&buffer, L4_StringItem(256, string_buffers[0]));
    open_buffers(to, &buffer);
    REQUIRE(L4_IpcSucceeded(send_item(to, &s)), "Sending a string failed.");
    L4_StoreMR(1, &tag);
    EXPECT(tag, 1000UL << 16 | 2 << 6 | 1, "the tag as it arrived");
    EXPECT(memcmp(string_buffers[0], text, 200), 0, "the difference of the strings");
    EXPECT(string_buffers[0][200], 0, "the byte behind the string");
    ask(to, REQUEST_WINDOW, 0);
}

static void string_near(void)
{
    simple_string(near);
}

static void string_far(void)
{
    simple_string(far);
}

/* Three pieces are gathered, and scattered into two. */
static void compound_string(void)
{
    L4_CompoundStringItem_t s, b;
    L4_MsgBuffer_t buffer;
    L4_StringItem_t last = L4_StringItem(20, text + 200);
    fill_text();
    s.item = L4_StringItem(30, text + 50);
    L4_AddSubstringAddressTo(&s.item, text);
    L4_AddSubstringTo(&s.item, &last);
    b.item = L4_StringItem(40, string_buffers[0]);
    L4_AddSubstringAddressTo(&b.item, string_buffers[1]);
    L4_MsgBufferClear(&buffer);
    L4_MsgBufferAppendRcvString(&buffer, &b.item);
    open_buffers(far, &buffer);
    REQUIRE(L4_IpcSucceeded(send_item(far, &s.item)), "Sending a compound string failed.");
    EXPECT(memcmp(string_buffers[0], text + 50, 30), 0, "the difference of the first piece");
    EXPECT(memcmp(string_buffers[0] + 30, text, 10), 0, "of the second piece's beginning");
    EXPECT(memcmp(string_buffers[1], text + 10, 20), 0, "of the second piece's end");
    EXPECT(memcmp(string_buffers[1] + 20, text + 200, 20), 0, "of the third piece");
    ask(far, REQUEST_WINDOW, 0);
}

/*
 * A buffer of two items (pieces of different lengths), and another buffer behind it:
 * bit C stands in the first item of the first buffer only.
 */
static void chained_buffers(void)
{
    L4_CompoundStringItem_t b;
    L4_StringItem_t more = L4_StringItem(20, string_buffers[1]);
    L4_StringItem_t first = L4_StringItem(25, text), second = L4_StringItem(30, text + 100);
    L4_MsgBuffer_t buffer;
    L4_Msg_t msg;
    fill_text();
    b.item = L4_StringItem(10, string_buffers[0]);
    L4_AddSubstringTo(&b.item, &more);
    L4_MsgBufferClear(&buffer);
    L4_MsgBufferAppendRcvString(&buffer, &b.item);
    L4_MsgBufferAppendSimpleRcvString(&buffer, L4_StringItem(40, string_buffers[2]));
    EXPECT(buffer.raw[1] & 1, 1, "bit C of the first buffer's first item");
    EXPECT(buffer.raw[3] & 1, 0, "bit C of the first buffer's second item");
    open_buffers(far, &buffer);
    L4_MsgClear(&msg);
    L4_Set_MsgLabel(&msg, 1000);
    L4_MsgAppendWord(&msg, 1);
    L4_MsgAppendSimpleStringItem(&msg, first);
    L4_MsgAppendSimpleStringItem(&msg, second);
    L4_MsgLoad(&msg);
    REQUIRE(L4_IpcSucceeded(L4_Call(far)), "Sending two strings failed.");
    EXPECT(memcmp(string_buffers[0], text, 10), 0, "the difference of the first string's beginning");
    EXPECT(memcmp(string_buffers[1], text + 10, 15), 0, "of the first string's end");
    EXPECT(memcmp(string_buffers[2], text + 100, 30), 0, "of the second string");
    ask(far, REQUEST_WINDOW, 0);
}

static void string_overflow(void)
{
    L4_StringItem_t s = L4_StringItem(100, text);
    L4_MsgBuffer_t buffer;
    fill_text();
    L4_MsgBufferClear(&buffer);
    L4_MsgBufferAppendSimpleRcvString(&buffer, L4_StringItem(60, string_buffers[0]));
    open_buffers(far, &buffer);
    EXPECT(L4_IpcFailed(send_item(far, &s)), 1, "failure of a string that does not fit");
    EXPECT(L4_ErrorCode(), 60 << 4 | L4_IpcErrOverflow << 1, "the error: overflow after 60 bytes,");
    EXPECT(memcmp(string_buffers[0], text, 60), 0, "the difference of what did fit");
    EXPECT(string_buffers[0][60], 0, "the byte behind the buffer");
    ask(far, REQUEST_WINDOW, 0);
}

static void string_refused(void)
{
    L4_StringItem_t s = L4_StringItem(100, text);
    EXPECT(L4_IpcFailed(send_item(near, &s)), 1, "failure of a string to one who accepts none");
    EXPECT(L4_ErrorCode(), L4_IpcErrOverflow << 1, "the error: overflow after 0 bytes,");
}

static void received_string(void)
{
    static char mine[64];
    L4_MsgBuffer_t buffer;
    L4_StringItem_t s = L4_StringItem(50, text + 9), got;
    L4_MsgTag_t tag = { (L4_Word_t)REQUEST_SEND_STRING << 16 | 2 };
    L4_Msg_t msg;
    fill_text();
    L4_MsgBufferClear(&buffer);
    L4_MsgBufferAppendSimpleRcvString(&buffer, L4_StringItem(64, mine));
    L4_AcceptStrings(L4_StringItemsAcceptor, &buffer);
    L4_Set_MsgTag(tag);
    L4_LoadMRs(1, 2, s.raw);
    tag = L4_Call(far);
    L4_Accept(L4_UntypedWordsAcceptor);
    REQUIRE(L4_IpcSucceeded(tag), "Receiving a string failed.");
    L4_MsgStore(tag, &msg);
    EXPECT(L4_MsgGetSimpleStringItem(&msg, 0, &got), 2, "the length of the received item");
    EXPECT(got.raw[0] >> 10, 50, "the received string's length");
    EXPECT(memcmp(mine, text + 9, 50), 0, "the difference of the strings");
}

void run_string_tests(void)
{
    test_run("string_near", string_near);
    test_run("string_far", string_far);
    test_run("compound_string", compound_string);
    test_run("chained_buffers", chained_buffers);
    test_run("string_overflow", string_overflow);
    test_run("string_refused", string_refused);
    test_run("received_string", received_string);
}
