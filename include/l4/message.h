/*
 * l4/message.h - message tags, message registers, messages in memory.
 *
 * A message is a tag (MR0), u untyped words (MR1..MRu) and t words of typed items
 * behind them; u + t <= 63.  It can be written into the message registers directly
 * (L4_LoadMR) or be put together in an L4_Msg_t and loaded at once (L4_MsgLoad).
 */
#ifndef L4_MESSAGE_H
#define L4_MESSAGE_H

#include <l4/types.h>
#include <l4/items.h>
#include <l4/acceptor.h>
#include <l4/amd64/utcb.h>

/* Tags. */

#define L4_Niltag ((L4_MsgTag_t){ 0UL })

#define __L4_TAG_ERROR 0x8000UL
#define __L4_TAG_XCPU 0x4000UL
#define __L4_TAG_REDIRECTED 0x2000UL
#define __L4_TAG_PROPAGATED 0x1000UL

L4_INLINE L4_Bool_t L4_IsMsgTagEqual(L4_MsgTag_t l, L4_MsgTag_t r)
{
    return l.raw == r.raw;
}

L4_INLINE L4_Bool_t L4_IsMsgTagNotEqual(L4_MsgTag_t l, L4_MsgTag_t r)
{
    return l.raw != r.raw;
}

L4_INLINE L4_Word_t L4_Label(L4_MsgTag_t t)
{
    return t.raw >> 16;
}

L4_INLINE L4_Word_t L4_UntypedWords(L4_MsgTag_t t)
{
    return t.raw & 0x3F;
}

L4_INLINE L4_Word_t L4_TypedWords(L4_MsgTag_t t)
{
    return (t.raw >> 6) & 0x3F;
}

/* Replaces the label. */
L4_INLINE L4_MsgTag_t L4_MsgTagAddLabel(L4_MsgTag_t t, L4_Word_t label)
{
    t.raw = (t.raw & 0xFFFFUL) | label << 16;
    return t;
}

L4_INLINE L4_MsgTag_t L4_MsgTagAddLabelTo(L4_MsgTag_t *t, L4_Word_t label)
{
    return *t = L4_MsgTagAddLabel(*t, label);
}

/* Asks for propagation: the virtual sender's id shall appear as the sender. */
L4_INLINE void L4_Set_Propagation(L4_MsgTag_t *t)
{
    t->raw = (t->raw & ~0xF000UL) | __L4_TAG_PROPAGATED;
}

/* The tag in MR0. */
L4_INLINE L4_MsgTag_t L4_MsgTag(void)
{
    L4_MsgTag_t t;
    t.raw = __L4_Utcb()[0];
    return t;
}

L4_INLINE void L4_Set_MsgTag(L4_MsgTag_t t)
{
    __L4_Utcb()[0] = t.raw;
}

/* Message registers: Load writes them, Store reads them into memory. */

L4_INLINE void L4_LoadMR(int i, L4_Word_t w)
{
    __L4_Utcb()[i] = w;
}

L4_INLINE void L4_StoreMR(int i, L4_Word_t *w)
{
    *w = __L4_Utcb()[i];
}

L4_INLINE void L4_LoadMRs(int i, int k, const L4_Word_t *w)
{
    __L4_Utcb_t mr = __L4_Utcb() + i;
    int n;
    for (n = 0; n < k; n++)
        mr[n] = w[n];
}

L4_INLINE void L4_StoreMRs(int i, int k, L4_Word_t *w)
{
    __L4_Utcb_t mr = __L4_Utcb() + i;
    int n;
    for (n = 0; n < k; n++)
        w[n] = mr[n];
}

/* Messages in memory. */

typedef union {
    L4_Word_t raw[__L4_NUM_MRS];
    L4_Word_t msg[__L4_NUM_MRS];
    L4_MsgTag_t tag;
} L4_Msg_t;

/* Index of the first typed word, and of the first free one; at most 64. */
L4_INLINE L4_Word_t __L4_MsgTypedAt(const L4_Msg_t *msg)
{
    return 1 + L4_UntypedWords(msg->tag);
}

L4_INLINE L4_Word_t __L4_MsgEnd(const L4_Msg_t *msg)
{
    L4_Word_t end = __L4_MsgTypedAt(msg) + L4_TypedWords(msg->tag);
    return end < __L4_NUM_MRS ? end : __L4_NUM_MRS;
}

L4_INLINE void __L4_MsgSetCounts(L4_Msg_t *msg, L4_Word_t u, L4_Word_t t)
{
    msg->raw[0] = (msg->raw[0] & ~0xFFFUL) | t << 6 | u;
}

/*
 * A message that was given too much is not cut: it gets counts that no kernel
 * accepts, so that sending it fails with a message overflow.
 */
L4_INLINE void __L4_MsgSetOverfull(L4_Msg_t *msg)
{
    __L4_MsgSetCounts(msg, 63, 63);
}

L4_INLINE void L4_MsgClear(L4_Msg_t *msg)
{
    msg->raw[0] = 0;
}

L4_INLINE L4_MsgTag_t L4_MsgMsgTag(const L4_Msg_t *msg)
{
    return msg->tag;
}

L4_INLINE void L4_Set_MsgMsgTag(L4_Msg_t *msg, L4_MsgTag_t t)
{
    msg->tag = t;
}

L4_INLINE L4_Word_t L4_MsgLabel(const L4_Msg_t *msg)
{
    return L4_Label(msg->tag);
}

L4_INLINE void L4_Set_MsgLabel(L4_Msg_t *msg, L4_Word_t label)
{
    L4_MsgTagAddLabelTo(&msg->tag, label);
}

/* Writes the message into the message registers. */
L4_INLINE void L4_MsgLoad(const L4_Msg_t *msg)
{
    L4_LoadMRs(0, (int)__L4_MsgEnd(msg), msg->raw);
}

/* Reads a received message, whose tag is `t`, from the message registers. */
L4_INLINE void L4_MsgStore(L4_MsgTag_t t, L4_Msg_t *msg)
{
    msg->tag = t;
    L4_StoreMRs(1, (int)__L4_MsgEnd(msg) - 1, msg->raw + 1);
}

/* Builds a message from u words and t words of ready-made items. */
L4_INLINE void L4_MsgPut(L4_Msg_t *msg, L4_Word_t label, int u, const L4_Word_t *untyped,
                         int t, const void *Items)
{
    const L4_Word_t *items = (const L4_Word_t *)Items;
    int i;
    msg->raw[0] = label << 16;
    if (u + t >= __L4_NUM_MRS) {
        __L4_MsgSetOverfull(msg);
        return;
    }
    for (i = 0; i < u; i++)
        msg->raw[1 + i] = untyped[i];
    for (i = 0; i < t; i++)
        msg->raw[1 + u + i] = items[i];
    __L4_MsgSetCounts(msg, (L4_Word_t)u, (L4_Word_t)t);
}

/* Copies a message's untyped words and its typed words out. */
L4_INLINE void L4_MsgGet(const L4_Msg_t *msg, L4_Word_t *untyped, void *Items)
{
    L4_Word_t *items = (L4_Word_t *)Items;
    L4_Word_t i, typed = __L4_MsgTypedAt(msg), end = __L4_MsgEnd(msg);
    for (i = 1; i < typed; i++)
        untyped[i - 1] = msg->raw[i];
    for (i = typed; i < end; i++)
        items[i - typed] = msg->raw[i];
}

/* Appends an untyped word; typed items that are there already move up. */
L4_INLINE void L4_MsgAppendWord(L4_Msg_t *msg, L4_Word_t w)
{
    L4_Word_t typed = __L4_MsgTypedAt(msg), end = __L4_MsgEnd(msg), i;
    if (end >= __L4_NUM_MRS) {
        __L4_MsgSetOverfull(msg);
        return;
    }
    for (i = end; i > typed; i--)
        msg->raw[i] = msg->raw[i - 1];
    msg->raw[typed] = w;
    __L4_MsgSetCounts(msg, typed, L4_TypedWords(msg->tag));
}

/* Appends an item of `count` words and marks the one before it as not the last. */
L4_INLINE void __L4_MsgAppendItem(L4_Msg_t *msg, const L4_Word_t *item, L4_Word_t count)
{
    L4_Word_t end = __L4_MsgEnd(msg), at = __L4_MsgTypedAt(msg), i;
    if (end + count > __L4_NUM_MRS) {
        __L4_MsgSetOverfull(msg);
        return;
    }
    while (at < end) {
        msg->raw[at] |= __L4_ITEM_MORE;
        at += __L4_ItemWords(msg->raw + at);
    }
    for (i = 0; i < count; i++)
        msg->raw[end + i] = item[i];
    msg->raw[end] &= ~__L4_ITEM_MORE;
    __L4_MsgSetCounts(msg, L4_UntypedWords(msg->tag), L4_TypedWords(msg->tag) + count);
}

L4_INLINE void L4_MsgAppendMapItem(L4_Msg_t *msg, L4_MapItem_t m)
{
    __L4_MsgAppendItem(msg, m.raw, 2);
}

L4_INLINE void L4_MsgAppendGrantItem(L4_Msg_t *msg, L4_GrantItem_t g)
{
    __L4_MsgAppendItem(msg, g.raw, 2);
}

L4_INLINE void L4_MsgAppendSimpleStringItem(L4_Msg_t *msg, L4_StringItem_t s)
{
    __L4_MsgAppendItem(msg, s.raw, 2);
}

L4_INLINE void L4_MsgAppendStringItem(L4_Msg_t *msg, const L4_StringItem_t *s)
{
    const L4_Word_t *words = (const L4_Word_t *)s;
    __L4_MsgAppendItem(msg, words, __L4_StringWords(words));
}

/*
 * Overwriting and reading parts.  `u` counts untyped words from 0, `t` typed words
 * from 0; the Get functions return the number of words the item has, 0 if there is
 * no item of that kind.
 */

L4_INLINE void L4_MsgPutWord(L4_Msg_t *msg, L4_Word_t u, L4_Word_t w)
{
    if (u < L4_UntypedWords(msg->tag))
        msg->raw[1 + u] = w;
}

/*
 * Word u as it lies in the message.  Beyond the message's untyped words that is what
 * lies there (items, or what the memory held), as in other X.2 headers: programs read
 * words of a tag that they have not stored; beyond all registers it is the last one.
 */
L4_INLINE L4_Word_t L4_MsgWord(const L4_Msg_t *msg, L4_Word_t u)
{
    return msg->raw[u < __L4_NUM_MRS - 1 ? 1 + u : __L4_NUM_MRS - 1];
}

L4_INLINE void L4_MsgGetWord(const L4_Msg_t *msg, L4_Word_t u, L4_Word_t *w)
{
    *w = L4_MsgWord(msg, u);
}

L4_INLINE void __L4_MsgPutItem(L4_Msg_t *msg, L4_Word_t t, const L4_Word_t *item,
                               L4_Word_t count)
{
    L4_Word_t at = __L4_MsgTypedAt(msg) + t, i;
    for (i = 0; at + count <= __L4_MsgEnd(msg) && i < count; i++)
        msg->raw[at + i] = i == 0 ? (item[0] & ~1UL) | (msg->raw[at] & 1) : item[i];
}

L4_INLINE void L4_MsgPutMapItem(L4_Msg_t *msg, L4_Word_t t, L4_MapItem_t m)
{
    __L4_MsgPutItem(msg, t, m.raw, 2);
}

L4_INLINE void L4_MsgPutGrantItem(L4_Msg_t *msg, L4_Word_t t, L4_GrantItem_t g)
{
    __L4_MsgPutItem(msg, t, g.raw, 2);
}

L4_INLINE void L4_MsgPutSimpleStringItem(L4_Msg_t *msg, L4_Word_t t, L4_StringItem_t s)
{
    __L4_MsgPutItem(msg, t, s.raw, 2);
}

L4_INLINE void L4_MsgPutStringItem(L4_Msg_t *msg, L4_Word_t t, const L4_StringItem_t *s)
{
    const L4_Word_t *words = (const L4_Word_t *)s;
    __L4_MsgPutItem(msg, t, words, __L4_StringWords(words));
}

/* Copies the item at `t` if its type is within [low, high] and at most `room` words long. */
L4_INLINE L4_Word_t __L4_MsgGetItem(const L4_Msg_t *msg, L4_Word_t t, L4_Word_t low,
                                    L4_Word_t high, L4_Word_t *item, L4_Word_t room)
{
    L4_Word_t at = __L4_MsgTypedAt(msg) + t, end = __L4_MsgEnd(msg), count, i;
    if (at + 2 > end || __L4_ITEM_TYPE(msg->raw[at]) < low
        || __L4_ITEM_TYPE(msg->raw[at]) > high)
        return 0;
    count = __L4_ItemWords(msg->raw + at);
    if (at + count > end || count > room)
        return 0;
    for (i = 0; i < count; i++)
        item[i] = msg->raw[at + i];
    return count;
}

L4_INLINE L4_Word_t L4_MsgGetMapItem(const L4_Msg_t *msg, L4_Word_t t, L4_MapItem_t *m)
{
    return __L4_MsgGetItem(msg, t, __L4_TYPE_MAP, __L4_TYPE_MAP, m->raw, 2);
}

L4_INLINE L4_Word_t L4_MsgGetGrantItem(const L4_Msg_t *msg, L4_Word_t t, L4_GrantItem_t *g)
{
    return __L4_MsgGetItem(msg, t, __L4_TYPE_GRANT, __L4_TYPE_GRANT, g->raw, 2);
}

L4_INLINE L4_Word_t L4_MsgGetSimpleStringItem(const L4_Msg_t *msg, L4_Word_t t,
                                              L4_StringItem_t *s)
{
    return __L4_MsgGetItem(msg, t, 0, __L4_TYPE_MAP - 1, s->raw, 2);
}

/* The storage behind `s` must hold a compound string item. */
L4_INLINE L4_Word_t L4_MsgGetStringItem(const L4_Msg_t *msg, L4_Word_t t, L4_StringItem_t *s)
{
    return __L4_MsgGetItem(msg, t, 0, __L4_TYPE_MAP - 1, (L4_Word_t *)s, __L4_NUM_MRS);
}

#include <l4/overloads.h>

#endif
