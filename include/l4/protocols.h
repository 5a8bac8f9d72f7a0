/*
 * l4/protocols.h - labels and tags of the kernel's own messages and of sigma0's.
 *
 * A protocol's label L is signed and lies in tag bits 63..20; bits 19..16 carry a
 * small number (the access rights of a fault).  L4_ProtocolLabel gives L back.
 */
#ifndef L4_PROTOCOLS_H
#define L4_PROTOCOLS_H

#include <l4/message.h>

#define L4_ProtocolInterrupt (-1L)
#define L4_ProtocolPageFault (-2L)
#define L4_ProtocolPreemption (-3L)
#define L4_ProtocolException (-4L)
#define L4_ProtocolArchException (-5L)
#define L4_ProtocolSigma0 (-6L)
#define L4_ProtocolIoPageFault (-8L)
#define L4_ProtocolSigma0Extended (-1001L)

/* A tag of protocol `label` with the small number `n`, u untyped and t typed words. */
L4_INLINE L4_MsgTag_t L4_ProtocolTag(long label, L4_Word_t n, L4_Word_t u, L4_Word_t t)
{
    L4_MsgTag_t tag;
    tag.raw = (L4_Word_t)label << 20 | (n & 0xF) << 16 | (t & 0x3F) << 6 | (u & 0x3F);
    return tag;
}

L4_INLINE long L4_ProtocolLabel(L4_MsgTag_t tag)
{
    return (long)tag.raw >> 20;
}

L4_INLINE L4_Bool_t L4_IsInterrupt(L4_MsgTag_t tag)
{
    return L4_ProtocolLabel(tag) == L4_ProtocolInterrupt;
}

/* Page fault: MR1 address, MR2 instruction pointer; access as rights of a flexpage. */
L4_INLINE L4_Bool_t L4_IsPageFault(L4_MsgTag_t tag)
{
    return L4_ProtocolLabel(tag) == L4_ProtocolPageFault;
}

L4_INLINE L4_Word_t L4_PageFaultAccess(L4_MsgTag_t tag)
{
    return (tag.raw >> 16) & 7;
}

/* I/O fault: MR1 I/O flexpage, MR2 instruction pointer. */
L4_INLINE L4_Bool_t L4_IsIoPageFault(L4_MsgTag_t tag)
{
    return L4_ProtocolLabel(tag) == L4_ProtocolIoPageFault;
}

L4_INLINE L4_Bool_t L4_IsArchException(L4_MsgTag_t tag)
{
    return L4_ProtocolLabel(tag) == L4_ProtocolArchException;
}

/* Words of an exception message, from MR1; the reply has the same layout. */
enum {
    L4_ExceptionIp = 1, L4_ExceptionRbx, L4_ExceptionR10, L4_ExceptionR12,
    L4_ExceptionR13, L4_ExceptionR14, L4_ExceptionR15, L4_ExceptionRax,
    L4_ExceptionRcx, L4_ExceptionRdx, L4_ExceptionRsi, L4_ExceptionRdi,
    L4_ExceptionRbp, L4_ExceptionR8, L4_ExceptionR9, L4_ExceptionR11,
    L4_ExceptionSp, L4_ExceptionFlags, L4_ExceptionVector, L4_ExceptionError
};
#define L4_ExceptionWords 20

/* Loads the start message for a new thread: send it from the thread's pager. */
L4_INLINE void L4_LoadStartMessage(L4_Word_t ip, L4_Word_t sp)
{
    L4_Set_MsgTag(L4_ProtocolTag(0, 0, 2, 0));
    L4_LoadMR(1, ip);
    L4_LoadMR(2, sp);
}

/* Loads a reply that maps one flexpage at the address where its sender has it. */
L4_INLINE void L4_LoadMapReply(L4_Fpage_t f)
{
    L4_MapItem_t item = L4_MapItem(f, L4_Address(f));
    L4_Set_MsgTag(L4_ProtocolTag(0, 0, 0, 2));
    L4_LoadMRs(1, 2, item.raw);
}

#endif
