/*
 * pingpong-c - ticks of the time-stamp counter per IPC, for messages of 0 to 63
 * words, to a thread of the same space and to one of another space.  The pager of
 * the other space is a thread here that maps every page it is asked for 1:1.
 */
#include <stdio.h>
#include <l4c.h>
#include <l4/ipc.h>
#include <l4/protocols.h>

#define ROUNDS 1000
#define STACK 4096

static char near_stack[STACK], far_stack[STACK], pager_stack[STACK];

/* Answers every message with one of the same length. */
static void pong(void)
{
    L4_ThreadId_t ping;
    L4_MsgTag_t tag = L4_Wait(&ping);
    for (;;) {
        L4_Set_MsgTag(L4_ProtocolTag(0, 0, L4_UntypedWords(tag), 0));
        tag = L4_ReplyWait(ping, &ping);
    }
}

/* A page fault is answered with the page, a thread id in MR1 by starting that thread. */
static void pager(void)
{
    L4_ThreadId_t client;
    L4_MsgTag_t tag = L4_Wait(&client);
    for (;;) {
        L4_Word_t word;
        L4_StoreMR(1, &word);
        if (L4_IsPageFault(tag)) {
            (void)*(volatile char *)word; /* have the page before giving it */
            L4_LoadMapReply(L4_FpageAddRights(L4_FpageLog2(word, 12), L4_FullyAccessible));
        } else {
            client.raw = word;
            L4_LoadStartMessage((L4_Word_t)pong, l4c_stack_top(far_stack, STACK));
        }
        tag = L4_ReplyWait(client, &client);
    }
}

static L4_Word64_t measure(L4_ThreadId_t partner, L4_Word_t words)
{
    L4_MsgTag_t tag = L4_ProtocolTag(0, 0, words, 0);
    L4_Word64_t start = 0;
    int i;
    for (i = -8; i < ROUNDS; i++) {
        if (i == 0)
            start = l4c_ticks();
        L4_Set_MsgTag(tag);
        if (L4_IpcFailed(L4_Call(partner)))
            l4c_fail("calling the partner");
    }
    return (l4c_ticks() - start) / (2 * ROUNDS);
}

int main(void)
{
    L4_Word_t number = L4_ThreadNo(L4_Myself()), words;
    L4_ThreadId_t near = L4_GlobalId(number + 1, 1), far = L4_GlobalId(number + 2, 1);
    L4_ThreadId_t helper = L4_GlobalId(number + 3, 1);
    if (!l4c_create_thread(near, 1, near_stack, STACK, pong)
        || !l4c_create_thread(helper, 2, pager_stack, STACK, pager)
        || !l4c_create_space(far, helper))
        l4c_fail("creating a thread");
    L4_LoadMR(1, far.raw);
    L4_Set_MsgTag(L4_ProtocolTag(0, 0, 1, 0));
    L4_Send(helper);
    printf("ticks per IPC\nwords  same space  other space\n");
    for (words = 0; words < 64; words = words == 60 ? 63 : words + 4) {
        L4_Word64_t inside = measure(near, words);
        printf("%5lu %11lu %12lu\n", words, inside, measure(far, words));
    }
    printf("pingpong done\n");
    return 0;
}
