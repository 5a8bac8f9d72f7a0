/* partner.c - the threads that the tests talk to; see partner.h. */
#include <string.h>
#include <stdio.h>
#include <l4/protocols.h>
#include <l4/space.h>
#include "partner.h"

L4_ThreadId_t near, far, pager;
volatile L4_Word_t watched_page, watched_faults;
char string_buffers[3][256];
L4_Word_t string_brs[8];

static char near_stack[STACK], far_stack[STACK], pager_stack[STACK];

L4_ThreadId_t spare(L4_Word_t distance, L4_Word_t version)
{
    return L4_GlobalId(L4_ThreadNo(L4_Myself()) + 10 + distance, version);
}

static L4_Word_t mr(int i)
{
    L4_Word_t w;
    L4_StoreMR(i, &w);
    return w;
}

static void answer_word(L4_Word_t w)
{
    L4_Set_MsgTag(L4_ProtocolTag(0, 0, 1, 0));
    L4_LoadMR(1, w);
}

static void invert(L4_MsgTag_t tag)
{
    int i;
    for (i = 1; i <= (int)L4_UntypedWords(tag); i++)
        L4_LoadMR(i, ~mr(i));
    L4_Set_MsgTag(tag);
}

/* Sends the caller (`to`) a message that appears to come from the id in MR1. */
static void propagate(void)
{
    L4_MsgTag_t tag = L4_ProtocolTag(0, 0, 1, 0);
    L4_Set_Propagation(&tag);
    L4_Set_VirtualSender((L4_ThreadId_t){ mr(1) });
    L4_LoadMR(1, 4711);
    L4_Set_MsgTag(tag);
}

static void send_string(void)
{
    L4_Word_t item[2];
    L4_StoreMRs(1, 2, item);
    L4_Set_MsgTag(L4_ProtocolTag(0, 0, 0, 2));
    L4_LoadMRs(1, 2, item);
}

/* Prepares the answer to one request in the message registers. */
static void handle(L4_MsgTag_t tag, L4_ThreadId_t client)
{
    switch (L4_Label(tag)) {
    case REQUEST_INVERT:
        invert(tag);
        break;
    case REQUEST_READ:
        answer_word(*(volatile L4_Word_t *)mr(1));
        break;
    case REQUEST_WRITE:
        *(volatile L4_Word_t *)mr(1) = mr(2);
        answer_word(0);
        break;
    case REQUEST_WINDOW:
        L4_Accept((L4_Acceptor_t){ mr(1) });
        answer_word(0);
        break;
    case REQUEST_STRING:
        L4_Accept(L4_StringItemsAcceptor);
        L4_LoadBRs(1, 8, string_brs);
        answer_word(0);
        break;
    case REQUEST_PROPAGATE:
        propagate();
        break;
    case REQUEST_SEND_STRING:
        send_string();
        break;
    case REQUEST_WHO:
        answer_word(client.raw);
        break;
    default: /* strings and mappings: the answer says what arrived */
        answer_word(tag.raw);
    }
}

void serve(void)
{
    L4_ThreadId_t client;
    L4_MsgTag_t tag = L4_Wait(&client);
    for (;;) {
        if (L4_IpcFailed(tag)) {
            /* A failed receive: the next client is told in its own answer. */
            tag = L4_Wait(&client);
            continue;
        }
        handle(tag, client);
        tag = L4_ReplyWait(client, &client);
    }
}

static void page(void)
{
    L4_ThreadId_t client;
    L4_MsgTag_t tag = L4_Wait(&client);
    for (;;) {
        L4_Word_t address = mr(1);
        if (L4_IsPageFault(tag)) {
            L4_Fpage_t f = L4_FpageLog2(address, 12);
            if (L4_Address(f) == watched_page)
                watched_faults++;
            (void)*(volatile char *)address;
            L4_LoadMapReply(L4_FpageAddRights(f, L4_FullyAccessible));
        } else {
            client.raw = address;
            L4_LoadStartMessage(mr(2), mr(3));
        }
        tag = L4_ReplyWait(client, &client);
    }
}

void create_partners(void)
{
    L4_Word_t number = L4_ThreadNo(L4_Myself());
    L4_Word_t start[3];
    near = L4_GlobalId(number + 1, 2);
    pager = L4_GlobalId(number + 2, 2);
    far = L4_GlobalId(number + 3, 2);
    if (!l4c_create_thread(near, 1, near_stack, STACK, serve)
        || !l4c_create_thread(pager, 2, pager_stack, STACK, page))
        l4c_fail("creating a thread of this space");
    if (!l4c_create_space(far, pager))
        l4c_fail("creating a thread with a space of its own");
    start[0] = far.raw;
    start[1] = (L4_Word_t)serve;
    start[2] = l4c_stack_top(far_stack, STACK);
    L4_Set_MsgTag(L4_ProtocolTag(REQUEST_START, 0, 3, 0));
    L4_LoadMRs(1, 3, start);
    if (L4_IpcFailed(L4_Send(pager)))
        l4c_fail("asking the pager to start a thread");
}

L4_MsgTag_t request(L4_ThreadId_t to, L4_Word_t label, L4_Word_t words, const L4_Word_t *in,
                    L4_Word_t *out)
{
    L4_MsgTag_t tag = L4_Niltag;
    L4_MsgTagAddLabelTo(&tag, label);
    tag.raw |= words;
    L4_Set_MsgTag(tag);
    L4_LoadMRs(1, (int)words, in);
    tag = L4_Call(to);
    L4_StoreMRs(1, (int)L4_UntypedWords(tag), out);
    return tag;
}

L4_Word_t ask(L4_ThreadId_t to, L4_Word_t label, L4_Word_t word)
{
    L4_Word_t answer[63];
    if (L4_IpcFailed(request(to, label, 1, &word, answer)))
        l4c_fail("calling a partner");
    return answer[0];
}
