/*
 * l4/overloads.h - the C++ forms of messages, items, acceptors and buffers: the
 * reference manual's overloaded names and operators (part of l4/message.h).
 */
#ifndef L4_OVERLOADS_H
#define L4_OVERLOADS_H
#ifdef __cplusplus

#include <l4/message.h>

/* Tags. */

L4_INLINE bool operator==(const L4_MsgTag_t &l, const L4_MsgTag_t &r)
{
    return L4_IsMsgTagEqual(l, r) != 0;
}

L4_INLINE bool operator!=(const L4_MsgTag_t &l, const L4_MsgTag_t &r)
{
    return L4_IsMsgTagNotEqual(l, r) != 0;
}

L4_INLINE L4_MsgTag_t operator+(const L4_MsgTag_t &t, L4_Word_t label)
{
    return L4_MsgTagAddLabel(t, label);
}

L4_INLINE L4_MsgTag_t operator+=(L4_MsgTag_t &t, L4_Word_t label)
{
    return L4_MsgTagAddLabelTo(&t, label);
}

/* Items: the manual names the questions like the constructors. */

L4_INLINE L4_Bool_t L4_MapItem(L4_MapItem_t m)
{
    return L4_IsMapItem(m);
}

L4_INLINE L4_Fpage_t L4_SndFpage(L4_MapItem_t m)
{
    return L4_MapItemSndFpage(m);
}

L4_INLINE L4_Word_t L4_SndBase(L4_MapItem_t m)
{
    return L4_MapItemSndBase(m);
}

L4_INLINE L4_Bool_t L4_GrantItem(L4_GrantItem_t g)
{
    return L4_IsGrantItem(g);
}

L4_INLINE L4_Fpage_t L4_SndFpage(L4_GrantItem_t g)
{
    return L4_GrantItemSndFpage(g);
}

L4_INLINE L4_Word_t L4_SndBase(L4_GrantItem_t g)
{
    return L4_GrantItemSndBase(g);
}

L4_INLINE L4_Bool_t L4_StringItem(const L4_StringItem_t *s)
{
    return L4_IsStringItem(s);
}

/* `dest` must have room for what is appended: begin with L4_CompoundStringItem_t. */
L4_INLINE L4_StringItem_t *operator+=(L4_StringItem_t &dest, const L4_StringItem_t &substring)
{
    return L4_AddSubstringTo(&dest, &substring);
}

L4_INLINE L4_StringItem_t *operator+=(L4_StringItem_t &dest, void *address)
{
    return L4_AddSubstringAddressTo(&dest, address);
}

L4_INLINE bool operator==(const L4_CacheAllocationHint_t &l, const L4_CacheAllocationHint_t &r)
{
    return L4_IsCacheAllocationHintEqual(l, r) != 0;
}

L4_INLINE bool operator!=(const L4_CacheAllocationHint_t &l, const L4_CacheAllocationHint_t &r)
{
    return L4_IsCacheAllocationHintNotEqual(l, r) != 0;
}

L4_INLINE L4_StringItem_t operator+(const L4_StringItem_t &s, const L4_CacheAllocationHint_t &h)
{
    return L4_AddCacheAllocationHint(s, h);
}

L4_INLINE L4_StringItem_t operator+=(L4_StringItem_t &s, const L4_CacheAllocationHint_t &h)
{
    return L4_AddCacheAllocationHintTo(&s, h);
}

/* Messages in memory. */

L4_INLINE void L4_Put(L4_Msg_t *msg, L4_Word_t label, int u, const L4_Word_t *untyped, int t,
                      const void *Items)
{
    L4_MsgPut(msg, label, u, untyped, t, Items);
}

L4_INLINE void L4_Get(const L4_Msg_t *msg, L4_Word_t *untyped, void *Items)
{
    L4_MsgGet(msg, untyped, Items);
}

L4_INLINE L4_MsgTag_t L4_MsgTag(const L4_Msg_t *msg)
{
    return L4_MsgMsgTag(msg);
}

L4_INLINE void L4_Set_MsgTag(L4_Msg_t *msg, L4_MsgTag_t t)
{
    L4_Set_MsgMsgTag(msg, t);
}

L4_INLINE L4_Word_t L4_Label(const L4_Msg_t *msg)
{
    return L4_MsgLabel(msg);
}

L4_INLINE void L4_Set_Label(L4_MsgTag_t *t, L4_Word_t label)
{
    (void)L4_MsgTagAddLabelTo(t, label);
}

L4_INLINE void L4_Set_Label(L4_Msg_t *msg, L4_Word_t label)
{
    L4_Set_MsgLabel(msg, label);
}

L4_INLINE void L4_Load(const L4_Msg_t *msg)
{
    L4_MsgLoad(msg);
}

L4_INLINE void L4_Store(L4_MsgTag_t t, L4_Msg_t *msg)
{
    L4_MsgStore(t, msg);
}

L4_INLINE void L4_Clear(L4_Msg_t *msg)
{
    L4_MsgClear(msg);
}

L4_INLINE void L4_Append(L4_Msg_t *msg, L4_Word_t w)
{
    L4_MsgAppendWord(msg, w);
}

/* A plain number, 0 above all, is a word, not an address. */
L4_INLINE void L4_Append(L4_Msg_t *msg, int w)
{
    L4_MsgAppendWord(msg, (L4_Word_t)w);
}

L4_INLINE void L4_Append(L4_Msg_t *msg, L4_MapItem_t m)
{
    L4_MsgAppendMapItem(msg, m);
}

L4_INLINE void L4_Append(L4_Msg_t *msg, L4_GrantItem_t g)
{
    L4_MsgAppendGrantItem(msg, g);
}

L4_INLINE void L4_Append(L4_Msg_t *msg, L4_StringItem_t s)
{
    L4_MsgAppendSimpleStringItem(msg, s);
}

L4_INLINE void L4_Append(L4_Msg_t *msg, const L4_StringItem_t *s)
{
    L4_MsgAppendStringItem(msg, s);
}

L4_INLINE void L4_Put(L4_Msg_t *msg, L4_Word_t u, L4_Word_t w)
{
    L4_MsgPutWord(msg, u, w);
}

L4_INLINE void L4_Put(L4_Msg_t *msg, L4_Word_t t, L4_MapItem_t m)
{
    L4_MsgPutMapItem(msg, t, m);
}

L4_INLINE void L4_Put(L4_Msg_t *msg, L4_Word_t t, L4_GrantItem_t g)
{
    L4_MsgPutGrantItem(msg, t, g);
}

L4_INLINE void L4_Put(L4_Msg_t *msg, L4_Word_t t, L4_StringItem_t s)
{
    L4_MsgPutSimpleStringItem(msg, t, s);
}

L4_INLINE void L4_Put(L4_Msg_t *msg, L4_Word_t t, const L4_StringItem_t *s)
{
    L4_MsgPutStringItem(msg, t, s);
}

L4_INLINE L4_Word_t L4_Get(const L4_Msg_t *msg, L4_Word_t u)
{
    return L4_MsgWord(msg, u);
}

L4_INLINE void L4_Get(const L4_Msg_t *msg, L4_Word_t u, L4_Word_t *w)
{
    L4_MsgGetWord(msg, u, w);
}

L4_INLINE L4_Word_t L4_Get(const L4_Msg_t *msg, L4_Word_t t, L4_MapItem_t *m)
{
    return L4_MsgGetMapItem(msg, t, m);
}

L4_INLINE L4_Word_t L4_Get(const L4_Msg_t *msg, L4_Word_t t, L4_GrantItem_t *g)
{
    return L4_MsgGetGrantItem(msg, t, g);
}

L4_INLINE L4_Word_t L4_Get(const L4_Msg_t *msg, L4_Word_t t, L4_StringItem_t *s)
{
    return L4_MsgGetStringItem(msg, t, s);
}

/* Acceptors and receive buffers. */

L4_INLINE L4_Acceptor_t operator+(const L4_Acceptor_t &l, const L4_Acceptor_t &r)
{
    return L4_AddAcceptor(l, r);
}

L4_INLINE L4_Acceptor_t operator+=(L4_Acceptor_t &l, const L4_Acceptor_t &r)
{
    return L4_AddAcceptorTo(&l, r);
}

L4_INLINE L4_Acceptor_t operator-(const L4_Acceptor_t &l, const L4_Acceptor_t &r)
{
    return L4_RemoveAcceptor(l, r);
}

L4_INLINE L4_Acceptor_t operator-=(L4_Acceptor_t &l, const L4_Acceptor_t &r)
{
    return L4_RemoveAcceptorFrom(&l, r);
}

L4_INLINE void L4_Accept(L4_Acceptor_t a, const L4_MsgBuffer_t *b)
{
    L4_AcceptStrings(a, b);
}

L4_INLINE void L4_Clear(L4_MsgBuffer_t *b)
{
    L4_MsgBufferClear(b);
}

L4_INLINE void L4_Append(L4_MsgBuffer_t *b, L4_StringItem_t s)
{
    L4_MsgBufferAppendSimpleRcvString(b, s);
}

L4_INLINE void L4_Append(L4_MsgBuffer_t *b, const L4_StringItem_t *s)
{
    L4_MsgBufferAppendRcvString(b, s);
}

#endif
#endif
