/*
 * service_ipc.c - messages of generated stubs over IPC.
 */
#include "plain.h"
#include <l4/acceptor.h>
#include <l4/kip.h>
#include <service_ipc.h>

#define UNTYPED(tag) ((tag) & 0x3F)
#define TYPED(tag) ((tag) >> 6 & 0x3F)
/* How long the pages of a string may take to come, in microseconds. */
#define PATIENCE_US 2000

/* What the thread accepted before, to be accepted again. */
typedef struct {
    L4_Word_t registers[3];
} accepted_t;

/* Opens the acceptor for one string into `room`, or for none. */
static accepted_t accept(void *room, size_t bytes)
{
    accepted_t before;
    L4_StringItem_t buffer = L4_StringItem(bytes, room);
    L4_StoreBRs(0, 3, before.registers);
    L4_Accept(bytes == 0 ? L4_UntypedWordsAcceptor : L4_StringItemsAcceptor);
    L4_LoadBRs(1, 2, buffer.raw);
    L4_Set_XferTimeouts(L4_Timeouts(L4_TimePeriod(PATIENCE_US), L4_TimePeriod(PATIENCE_US)));
    return before;
}

static void accept_again(const accepted_t *before)
{
    L4_LoadBRs(0, 3, before->registers);
}

/* The message into the message registers. */
static void load(const service_message_t *message)
{
    L4_MsgTag_t tag;
    L4_Word_t words = UNTYPED(message->tag);
    tag.raw = message->tag;
    L4_LoadMRs(1, (int)words, message->words);
    if (message->string != NULL && words + 2 <= SERVICE_WORDS) {
        L4_StringItem_t item = L4_StringItem(message->string_bytes, (void *)message->string);
        L4_LoadMRs((int)words + 1, 2, item.raw);
        tag.raw |= 2UL << 6;
    }
    L4_Set_MsgTag(tag);
}

/* What came, items included, without the flags of its delivery. */
static void store(service_message_t *message, L4_MsgTag_t tag)
{
    L4_Word_t words = UNTYPED(tag.raw) + TYPED(tag.raw);
    if (words > SERVICE_WORDS)
        words = SERVICE_WORDS;
    message->tag = tag.raw & ~0xF000UL;
    message->string = NULL;
    message->string_bytes = 0;
    L4_StoreMRs(1, (int)words, message->words);
}

static L4_Time_t limit(uint64_t us)
{
    return us == SERVICE_NEVER ? L4_Never : us == 0 ? L4_ZeroTime : L4_TimePeriod(us);
}

/* Who waits for an answer when the server ends cannot know what the server has done. */
static service_error_t failure(L4_Word_t code)
{
    L4_Word_t kind = L4_IpcErrorKind(code);
    bool is_gone = kind == L4_IpcErrNonExisting || kind == L4_IpcErrCancelled;
    return L4_IpcErrorInReceive(code) && is_gone ? SERVICE_LOST : SERVICE_NO_SERVER;
}

static service_error_t call(const service_client_t *client, service_message_t *message, void *room,
                            size_t bytes, service_limits_t limits)
{
    L4_ThreadId_t server;
    accepted_t before = accept(room, bytes);
    L4_MsgTag_t tag;
    server.raw = client->thread;
    load(message);
    tag = L4_Call_Timeouts(server, limit(limits.send_us), limit(limits.answer_us));
    accept_again(&before);
    if (L4_IpcFailed(tag))
        return failure(L4_ErrorCode());
    store(message, tag);
    return SERVICE_OK;
}

static service_error_t send(const service_client_t *client, service_message_t *message,
                            service_limits_t limits)
{
    L4_ThreadId_t server;
    server.raw = client->thread;
    L4_Set_XferTimeouts(L4_Timeouts(L4_TimePeriod(PATIENCE_US), L4_TimePeriod(PATIENCE_US)));
    load(message);
    return L4_IpcFailed(L4_Send_Timeout(server, limit(limits.send_us))) ? SERVICE_NO_SERVER
                                                                        : SERVICE_OK;
}

L4_ThreadId_t service_root(void)
{
    return L4_GlobalId(L4_ThreadIdUserBase(L4_GetKernelInterface()) + 2, 1);
}

service_client_t service_at(L4_ThreadId_t thread)
{
    service_client_t client = { call, send, thread.raw, NULL };
    return client;
}

void service_serve(service_outcome_t (*answer)(void *self, service_call_t *call), void *self,
                   service_call_t *call)
{
    L4_ThreadId_t from = L4_nilthread;
    accept((void *)call->input, call->input_bytes);
    for (;;) {
        L4_MsgTag_t tag;
        if (L4_IsNilThread(from))
            tag = L4_Wait(&from);
        else
            tag = L4_ReplyWait(from, &from);
        if (L4_IpcFailed(tag)) {
            /* Whoever was to be answered has gone, or a string did not fit. */
            from = L4_nilthread;
            continue;
        }
        call->caller = from.raw;
        store(&call->request, tag);
        if (answer(self, call) == SERVICE_KEPT)
            from = L4_nilthread;
        else
            load(&call->answer);
        accept((void *)call->input, call->input_bytes);
    }
}

void service_answer_later(const service_call_t *call)
{
    L4_ThreadId_t to;
    to.raw = call->caller;
    load(&call->answer);
    (void)L4_Reply(to);
}
