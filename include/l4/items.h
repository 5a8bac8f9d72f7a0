/*
 * l4/items.h - typed items of messages (part of l4/message.h).
 *
 * A typed item is two words or more; bits 3..1 of the first say which kind it is,
 * bit 0 says that another item follows.
 */
#ifndef L4_ITEMS_H
#define L4_ITEMS_H

#include <l4/types.h>

#define __L4_ITEM_MORE 1UL
#define __L4_ITEM_TYPE(word) (((word) >> 1) & 7)
#define __L4_TYPE_MAP 4UL
#define __L4_TYPE_GRANT 5UL
#define __L4_TYPE_CTRLXFER 6UL

/* Map item: the receiver gets the flexpage as well. */
typedef union {
    L4_Word_t raw[2];
    struct {
        L4_Word_t C : 1;
        L4_Word_t type : 3;
        L4_Word_t zero : 6;
        L4_Word_t b : 54;
        L4_Fpage_t snd_fpage;
    } X;
} L4_MapItem_t;

/* Grant item: the receiver gets the flexpage instead of the sender. */
typedef union {
    L4_Word_t raw[2];
    struct {
        L4_Word_t C : 1;
        L4_Word_t type : 3;
        L4_Word_t zero : 6;
        L4_Word_t b : 54;
        L4_Fpage_t snd_fpage;
    } X;
} L4_GrantItem_t;

/*
 * String item, on the sender's side a string, on the receiver's a buffer.  This
 * type holds a simple one; L4_CompoundStringItem_t has room for the largest.
 */
typedef union {
    L4_Word_t raw[2];
    struct {
        L4_Word_t C : 1;
        L4_Word_t type : 3;
        L4_Word_t sub_ptrs : 5;
        L4_Word_t c : 1;
        L4_Word_t length : 54;
        void *address;
    } X;
} L4_StringItem_t;

/* Addition of this implementation: storage for a string item that grows. */
typedef union {
    L4_StringItem_t item;
    L4_Word_t raw[__L4_NUM_MRS];
} L4_CompoundStringItem_t;

typedef struct {
    L4_Word_t raw;
} L4_CacheAllocationHint_t;

#define L4_UseDefaultCacheLineAllocation ((L4_CacheAllocationHint_t){ 0UL })

/* Map and grant items. */

L4_INLINE L4_MapItem_t L4_MapItem(L4_Fpage_t f, L4_Word_t SndBase)
{
    L4_MapItem_t item;
    item.raw[0] = (SndBase & ~0x3FFUL) | __L4_TYPE_MAP << 1;
    item.raw[1] = f.raw;
    return item;
}

L4_INLINE L4_Bool_t L4_IsMapItem(L4_MapItem_t m)
{
    return __L4_ITEM_TYPE(m.raw[0]) == __L4_TYPE_MAP;
}

L4_INLINE L4_Fpage_t L4_MapItemSndFpage(L4_MapItem_t m)
{
    return m.X.snd_fpage;
}

L4_INLINE L4_Word_t L4_MapItemSndBase(L4_MapItem_t m)
{
    return m.raw[0] & ~0x3FFUL;
}

L4_INLINE L4_GrantItem_t L4_GrantItem(L4_Fpage_t f, L4_Word_t SndBase)
{
    L4_GrantItem_t item;
    item.raw[0] = (SndBase & ~0x3FFUL) | __L4_TYPE_GRANT << 1;
    item.raw[1] = f.raw;
    return item;
}

L4_INLINE L4_Bool_t L4_IsGrantItem(L4_GrantItem_t g)
{
    return __L4_ITEM_TYPE(g.raw[0]) == __L4_TYPE_GRANT;
}

L4_INLINE L4_Fpage_t L4_GrantItemSndFpage(L4_GrantItem_t g)
{
    return g.X.snd_fpage;
}

L4_INLINE L4_Word_t L4_GrantItemSndBase(L4_GrantItem_t g)
{
    return g.raw[0] & ~0x3FFUL;
}

/*
 * String items.  A piece is a first word and j + 1 addresses of substrings of the
 * same length; bit 9 of the first word says that another piece continues the string.
 */

#define __L4_STRING_CONTINUED 0x200UL

L4_INLINE L4_Word_t __L4_PieceSubstrings(L4_Word_t first)
{
    return ((first >> 4) & 0x1F) + 1;
}

/* Index of the first word of the last piece. */
L4_INLINE L4_Word_t __L4_LastPiece(const L4_Word_t *words)
{
    L4_Word_t at = 0;
    while (words[at] & __L4_STRING_CONTINUED)
        at += 1 + __L4_PieceSubstrings(words[at]);
    return at;
}

/* Number of words of a string item with all its pieces. */
L4_INLINE L4_Word_t __L4_StringWords(const L4_Word_t *words)
{
    L4_Word_t at = __L4_LastPiece(words);
    return at + 1 + __L4_PieceSubstrings(words[at]);
}

L4_INLINE L4_StringItem_t L4_StringItem(L4_Word_t size, void *address)
{
    L4_StringItem_t item;
    item.raw[0] = size << 10;
    item.raw[1] = (L4_Word_t)address;
    return item;
}

L4_INLINE L4_Bool_t L4_IsStringItem(const L4_StringItem_t *s)
{
    return __L4_ITEM_TYPE(s->raw[0]) < __L4_TYPE_MAP;
}

/* Whether the string has more than one substring. */
L4_INLINE L4_Bool_t L4_CompoundString(const L4_StringItem_t *s)
{
    return (s->raw[0] & (__L4_STRING_CONTINUED | 0x1F0UL)) != 0;
}

L4_INLINE L4_Word_t L4_Substrings(const L4_StringItem_t *s)
{
    const L4_Word_t *words = (const L4_Word_t *)s;
    L4_Word_t at = 0, count = __L4_PieceSubstrings(words[0]);
    while (words[at] & __L4_STRING_CONTINUED) {
        at += 1 + __L4_PieceSubstrings(words[at]);
        count += __L4_PieceSubstrings(words[at]);
    }
    return count;
}

/* Address of the n-th substring, from 0; a null pointer if there are fewer. */
L4_INLINE void *L4_Substring(const L4_StringItem_t *s, L4_Word_t n)
{
    const L4_Word_t *words = (const L4_Word_t *)s;
    L4_Word_t at = 0;
    while (n >= __L4_PieceSubstrings(words[at])) {
        if (!(words[at] & __L4_STRING_CONTINUED))
            return (void *)0;
        n -= __L4_PieceSubstrings(words[at]);
        at += 1 + __L4_PieceSubstrings(words[at]);
    }
    return (void *)words[at + 1 + n];
}

/* Appends all of `substring` to `dest`, whose storage must have room for it. */
L4_INLINE L4_StringItem_t *L4_AddSubstringTo(L4_StringItem_t *dest,
                                             const L4_StringItem_t *substring)
{
    L4_Word_t *words = (L4_Word_t *)dest;
    const L4_Word_t *source = (const L4_Word_t *)substring;
    L4_Word_t end = __L4_StringWords(words), count = __L4_StringWords(source), i;
    words[__L4_LastPiece(words)] |= __L4_STRING_CONTINUED;
    for (i = 0; i < count; i++)
        words[end + i] = source[i];
    return dest;
}

/*
 * Appends one more substring, of the last one's length, to `dest`, whose storage
 * must have room for it: one word, or two after every 32 substrings of one piece.
 */
L4_INLINE L4_StringItem_t *L4_AddSubstringAddressTo(L4_StringItem_t *dest, void *address)
{
    L4_Word_t *words = (L4_Word_t *)dest;
    L4_Word_t last = __L4_LastPiece(words), end = __L4_StringWords(words);
    if (__L4_PieceSubstrings(words[last]) < 32) {
        words[last] += 0x10;
        words[end] = (L4_Word_t)address;
    } else {
        words[end] = words[last] & ~(0x1F0UL | __L4_STRING_CONTINUED);
        words[last] |= __L4_STRING_CONTINUED;
        words[end + 1] = (L4_Word_t)address;
    }
    return dest;
}

/* Cache allocation hints, bits 2..1 of a string item's first word. */

L4_INLINE L4_CacheAllocationHint_t L4_CacheAllocationHint(L4_StringItem_t s)
{
    L4_CacheAllocationHint_t hint;
    hint.raw = (s.raw[0] >> 1) & 3;
    return hint;
}

L4_INLINE L4_Bool_t L4_IsCacheAllocationHintEqual(L4_CacheAllocationHint_t l,
                                                  L4_CacheAllocationHint_t r)
{
    return l.raw == r.raw;
}

L4_INLINE L4_Bool_t L4_IsCacheAllocationHintNotEqual(L4_CacheAllocationHint_t l,
                                                     L4_CacheAllocationHint_t r)
{
    return l.raw != r.raw;
}

L4_INLINE L4_StringItem_t L4_AddCacheAllocationHint(L4_StringItem_t s,
                                                    L4_CacheAllocationHint_t h)
{
    s.raw[0] = (s.raw[0] & ~6UL) | (h.raw & 3) << 1;
    return s;
}

L4_INLINE L4_StringItem_t L4_AddCacheAllocationHintTo(L4_StringItem_t *s,
                                                      L4_CacheAllocationHint_t h)
{
    return *s = L4_AddCacheAllocationHint(*s, h);
}

/* Number of words of any typed item. */
L4_INLINE L4_Word_t __L4_ItemWords(const L4_Word_t *words)
{
    L4_Word_t type = __L4_ITEM_TYPE(words[0]), count = 1, mask;
    if (type < __L4_TYPE_MAP)
        return __L4_StringWords(words);
    if (type != __L4_TYPE_CTRLXFER)
        return 2;
    for (mask = words[0] >> 12; mask; mask &= mask - 1)
        count++;
    return count;
}

#endif
