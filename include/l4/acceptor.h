/*
 * l4/acceptor.h - what a thread is willing to receive: the acceptor (BR0) and
 * the string buffers (BR1 and up); part of l4/message.h.
 */
#ifndef L4_ACCEPTOR_H
#define L4_ACCEPTOR_H

#include <l4/items.h>
#include <l4/space.h>
#include <l4/amd64/utcb.h>

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t s : 1;
        L4_Word_t c : 1;
        L4_Word_t zero : 2;
        L4_Word_t RcvWindow : 60;
    } X;
} L4_Acceptor_t;

#define L4_UntypedWordsAcceptor ((L4_Acceptor_t){ 0UL })
#define L4_StringItemsAcceptor ((L4_Acceptor_t){ 1UL })
#define L4_CtrlXferItemsAcceptor ((L4_Acceptor_t){ 2UL })

/*
 * A list of receive buffers being built.  raw[1] and up are the buffer registers;
 * raw[0] counts the words used so far.
 */
typedef struct {
    L4_Word_t raw[__L4_NUM_BRS];
} L4_MsgBuffer_t;

/* Buffer registers. */

L4_INLINE void L4_LoadBR(int i, L4_Word_t w)
{
    __L4_Utcb()[__L4_TCR_BR0 - i] = w;
}

L4_INLINE void L4_StoreBR(int i, L4_Word_t *w)
{
    *w = __L4_Utcb()[__L4_TCR_BR0 - i];
}

L4_INLINE void L4_LoadBRs(int i, int k, const L4_Word_t *w)
{
    int n;
    for (n = 0; n < k; n++)
        L4_LoadBR(i + n, w[n]);
}

L4_INLINE void L4_StoreBRs(int i, int k, L4_Word_t *w)
{
    int n;
    for (n = 0; n < k; n++)
        L4_StoreBR(i + n, &w[n]);
}

/* Acceptors. */

/* Accepts map and grant items into RcvWindow. */
L4_INLINE L4_Acceptor_t L4_MapGrantItems(L4_Fpage_t RcvWindow)
{
    L4_Acceptor_t a;
    a.raw = RcvWindow.raw & ~0xFUL;
    return a;
}

L4_INLINE L4_Bool_t L4_HasStringItems(L4_Acceptor_t a)
{
    return (a.raw & 1) != 0;
}

L4_INLINE L4_Fpage_t L4_RcvWindow(L4_Acceptor_t a)
{
    L4_Fpage_t f;
    f.raw = a.raw & ~0xFUL;
    return f;
}

L4_INLINE L4_Bool_t L4_HasMapGrantItems(L4_Acceptor_t a)
{
    return !L4_IsNilFpage(L4_RcvWindow(a));
}

/* Joins two acceptors; the right one's receive window wins, if it has one. */
L4_INLINE L4_Acceptor_t L4_AddAcceptor(L4_Acceptor_t l, L4_Acceptor_t r)
{
    L4_Word_t window = L4_HasMapGrantItems(r) ? r.raw : l.raw;
    l.raw = (window & ~0xFUL) | ((l.raw | r.raw) & 0xF);
    return l;
}

L4_INLINE L4_Acceptor_t L4_AddAcceptorTo(L4_Acceptor_t *l, L4_Acceptor_t r)
{
    return *l = L4_AddAcceptor(*l, r);
}

/* Takes away what `r` accepts; any receive window in `r` takes away that of `l`. */
L4_INLINE L4_Acceptor_t L4_RemoveAcceptor(L4_Acceptor_t l, L4_Acceptor_t r)
{
    L4_Word_t window = L4_HasMapGrantItems(r) ? 0 : l.raw;
    l.raw = (window & ~0xFUL) | (l.raw & ~r.raw & 0xF);
    return l;
}

L4_INLINE L4_Acceptor_t L4_RemoveAcceptorFrom(L4_Acceptor_t *l, L4_Acceptor_t r)
{
    return *l = L4_RemoveAcceptor(*l, r);
}

L4_INLINE void L4_Accept(L4_Acceptor_t a)
{
    L4_LoadBR(0, a.raw);
}

L4_INLINE L4_Acceptor_t L4_Accepted(void)
{
    L4_Acceptor_t a;
    L4_StoreBR(0, &a.raw);
    return a;
}

/* Receive buffers. */

L4_INLINE void L4_MsgBufferClear(L4_MsgBuffer_t *b)
{
    b->raw[0] = 0;
    b->raw[1] = 0;
}

/* Appends a buffer of any number of substrings; nothing happens if there is no room. */
L4_INLINE void L4_MsgBufferAppendRcvString(L4_MsgBuffer_t *b, const L4_StringItem_t *s)
{
    const L4_Word_t *source = (const L4_Word_t *)s;
    L4_Word_t used = b->raw[0], count = __L4_StringWords(source), at = 1, i;
    if (used + count >= __L4_NUM_BRS)
        return;
    while (at <= used) {
        b->raw[at] |= __L4_ITEM_MORE;
        at += __L4_StringWords(b->raw + at);
    }
    for (i = 0; i < count; i++)
        b->raw[at + i] = source[i];
    b->raw[at] &= ~__L4_ITEM_MORE;
    b->raw[0] = used + count;
}

L4_INLINE void L4_MsgBufferAppendSimpleRcvString(L4_MsgBuffer_t *b, L4_StringItem_t s)
{
    L4_MsgBufferAppendRcvString(b, &s);
}

/* Sets the acceptor and loads the buffers into BR1 and up. */
L4_INLINE void L4_AcceptStrings(L4_Acceptor_t a, const L4_MsgBuffer_t *b)
{
    L4_Accept(a);
    if (b->raw[0] == 0)
        L4_LoadBR(1, 0);
    L4_LoadBRs(1, (int)b->raw[0], b->raw + 1);
}

#endif
