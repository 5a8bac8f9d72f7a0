/*
 * ipc.c - messages of words between threads of one space and of two.
 */
#include <stdio.h>
#include <l4/baton.h>
#include <l4/ipc.h>
#include "partner.h"
#include "test.h"

/* Messages of every length, each word checked. */
static void invert_lengths(L4_ThreadId_t to)
{
    L4_Word_t in[63], out[63], words, i;
    L4_MsgTag_t tag;
    for (i = 0; i < 63; i++)
        in[i] = 0x0123456789ABCDEF * (i + 1);
    for (words = 0; words <= 63; words++) {
        tag = request(to, REQUEST_INVERT, words, in, out);
        REQUIRE(L4_IpcSucceeded(tag), "Calling the server failed.");
        EXPECT(L4_UntypedWords(tag), words, "the answer's number of words");
        EXPECT(L4_TypedWords(tag), 0, "the answer's number of typed words");
        EXPECT(L4_Label(tag), REQUEST_INVERT, "the answer's label");
        for (i = 0; i < words; i++)
            EXPECT(out[i], ~in[i], "a word of the answer");
    }
}

static void call_near(void)
{
    invert_lengths(near);
}

static void call_near_by_local_id(void)
{
    L4_ThreadId_t local = L4_LocalIdOf(near);
    EXPECT(L4_IsLocalId(local), 1, "the partner's local id being local");
    REQUIRE(!L4_IsNilThread(local), "The partner has no local id.");
    invert_lengths(local);
}

static void call_far(void)
{
    invert_lengths(far);
}

static void lipc_near(void)
{
    L4_Word_t w;
    L4_MsgTag_t tag = { (L4_Word_t)REQUEST_INVERT << 16 | 1 };
    L4_Set_MsgTag(tag);
    L4_LoadMR(1, 5);
    tag = L4_Lcall(L4_LocalIdOf(near));
    REQUIRE(L4_IpcSucceeded(tag), "Lipc to a thread of the same space failed.");
    L4_StoreMR(1, &w);
    EXPECT(w, ~5UL, "the word of the answer");
}

/* Calls within the space, and the answers, go without the kernel, vector registers or not. */
static void lipc_without_the_kernel(void)
{
    enum { CALLS = 500 };
    L4_ThreadId_t local = L4_LocalIdOf(near);
    L4_Word_t before[L4_InspectWords], after[L4_InspectWords], w, i;
    double sum = 0;
    for (i = 0; i < 2 * CALLS + 10; i++) {
        L4_MsgTag_t tag = { (L4_Word_t)REQUEST_INVERT << 16 | 1 };
        if (i == 10)
            REQUIRE(L4_Inspect(L4_InspectKernel, 0, 0, before), "Asking for entries failed.");
        L4_Set_MsgTag(tag);
        L4_LoadMR(1, i);
        tag = i < CALLS ? L4_Lcall(local) : L4_Call(local);
        REQUIRE(L4_IpcSucceeded(tag), "A call within the space failed.");
        L4_StoreMR(1, &w);
        sum += (double)~w;
    }
    REQUIRE(L4_Inspect(L4_InspectKernel, 0, 0, after), "Asking for entries failed.");
    EXPECT((L4_Word_t)sum, (2 * CALLS + 10) * (2 * CALLS + 9) / 2, "the sum of the answers");
    EXPECT(after[4] - before[4] < CALLS / 20, 1, "few kernel entries being needed");
}

static void lipc_far(void)
{
    L4_Word_t w;
    L4_MsgTag_t tag = { (L4_Word_t)REQUEST_INVERT << 16 | 1 };
    L4_Set_MsgTag(tag);
    L4_LoadMR(1, 6);
    tag = L4_Lcall(far);
    REQUIRE(L4_IpcSucceeded(tag), "Lipc to a thread of another space failed.");
    L4_StoreMR(1, &w);
    EXPECT(w, ~6UL, "the word of the answer");
}

static void sender_ids(void)
{
    EXPECT(ask(near, REQUEST_WHO, 0), L4_MyLocalId().raw, "my id, as seen in my space,");
    EXPECT(ask(far, REQUEST_WHO, 0), L4_Myself().raw, "my id, as seen in another space,");
}

static void long_labels(void)
{
    L4_MsgTag_t tag = { 0xFEDCBA987654UL << 16 };
    L4_Word_t w;
    L4_Set_MsgTag(tag);
    REQUIRE(L4_IpcSucceeded(L4_Call(far)), "Calling the server failed.");
    L4_StoreMR(1, &w);
    EXPECT(w, tag.raw, "the tag as it arrived");
}

static void receive_timeout(void)
{
    L4_ThreadId_t from;
    EXPECT(L4_IpcFailed(L4_Wait_Timeout(L4_ZeroTime, &from)), 1, "failure of waiting for nobody");
    EXPECT(L4_ErrorCode(), L4_IpcErrTimeout << 1 | 1, "the error: a receive timeout,");
    EXPECT(L4_IpcFailed(L4_Receive_Timeout(near, L4_TimePeriod(3000))), 1,
           "failure of waiting for a silent thread");
    EXPECT(L4_ErrorCode(), L4_IpcErrTimeout << 1 | 1, "the error: a receive timeout,");
    EXPECT(L4_IpcErrorInReceive(L4_ErrorCode()), 1, "the error's phase");
}

static void send_timeout(void)
{
    L4_Set_MsgTag(L4_Niltag);
    EXPECT(L4_IpcFailed(L4_Reply(L4_Myself())), 1, "failure of sending to oneself at once");
    EXPECT(L4_ErrorCode(), L4_IpcErrTimeout << 1, "the error: a send timeout,");
    L4_Set_MsgTag(L4_Niltag);
    EXPECT(L4_IpcFailed(L4_Send_Timeout(L4_Myself(), L4_TimePeriod(3000))), 1,
           "failure of sending to oneself with a timeout");
    EXPECT(L4_ErrorCode(), L4_IpcErrTimeout << 1, "the error: a send timeout,");
}

static void nobody(void)
{
    L4_ThreadId_t absent = spare(0, 1);
    L4_Set_MsgTag(L4_Niltag);
    EXPECT(L4_IpcFailed(L4_Send(absent)), 1, "failure of sending to nobody");
    EXPECT(L4_ErrorCode(), L4_IpcErrNonExisting << 1, "the error: no such receiver,");
    EXPECT(L4_IpcFailed(L4_Receive(absent)), 1, "failure of receiving from nobody");
    EXPECT(L4_ErrorCode(), L4_IpcErrNonExisting << 1 | 1, "the error: no such sender,");
    L4_Set_MsgTag(L4_Niltag);
    EXPECT(L4_IpcFailed(L4_Call(L4_GlobalId(L4_ThreadNo(near), L4_Version(near) + 1))), 1,
           "failure of calling a thread by an outdated id");
    EXPECT(L4_ErrorCode(), L4_IpcErrNonExisting << 1, "the error: no such receiver,");
}

static void too_long(void)
{
    L4_MsgTag_t tag = { 40 << 6 | 40 };
    L4_Set_MsgTag(tag);
    EXPECT(L4_IpcFailed(L4_Call(near)), 1, "failure of a message of 80 words");
    EXPECT(L4_IpcErrorKind(L4_ErrorCode()), L4_IpcErrOverflow, "the kind of error: overflow,");
}

static void send_only_keeps_tag(void)
{
    L4_MsgTag_t tag = { 0x1234UL << 16 }, result;
    L4_Word_t w;
    /* The server takes any message for a request; its answer finds nobody waiting. */
    L4_Set_MsgTag(tag);
    result = L4_Send(near);
    EXPECT(result.raw, tag.raw, "the tag after sending only");
    L4_StoreMR(0, &w);
    EXPECT(w, tag.raw, "MR0 after sending only");
}

static void propagation(void)
{
    L4_MsgTag_t tag = { (L4_Word_t)REQUEST_PROPAGATE << 16 | 1 };
    L4_ThreadId_t from, real = L4_nilthread;
    L4_Word_t w;
    L4_Set_MsgTag(tag);
    L4_LoadMR(1, pager.raw);
    tag = L4_Ipc(near, L4_anythread, L4_Timeouts(L4_Never, L4_TimePeriod(1000000)), &from);
    REQUIRE(L4_IpcSucceeded(tag), "No propagated message arrived.");
    real = L4_ActualSender();
    L4_StoreMR(1, &w);
    EXPECT(w, 4711, "the word of the message");
    EXPECT(L4_IpcPropagated(tag), 1, "the mark of propagation");
    EXPECT(from.raw, L4_LocalIdOf(pager).raw, "the apparent sender");
    EXPECT(real.raw, near.raw, "the actual sender");
}

void run_ipc_tests(void)
{
    test_run("call_near", call_near);
    test_run("call_near_by_local_id", call_near_by_local_id);
    test_run("call_far", call_far);
    test_run("lipc_near", lipc_near);
    test_run("lipc_without_the_kernel", lipc_without_the_kernel);
    test_run("lipc_far", lipc_far);
    test_run("sender_ids", sender_ids);
    test_run("long_labels", long_labels);
    test_run("receive_timeout", receive_timeout);
    test_run("send_timeout", send_timeout);
    test_run("nobody", nobody);
    test_run("too_long", too_long);
    test_run("send_only_keeps_tag", send_only_keeps_tag);
    test_run("propagation", propagation);
}
