/*
 * l4/sigma0.h - requests to sigma0, the source of all memory and ports.
 *
 * Nilthread as the server means the sigma0 that the kernel interface page names.
 * The functions return the flexpage that arrived, L4_Nilpage if none did.
 */
#ifndef L4_SIGMA0_H
#define L4_SIGMA0_H

#include <l4/ipc.h>
#include <l4/kip.h>
#include <l4/misc.h>
#include <l4/protocols.h>

L4_INLINE L4_Fpage_t L4_Sigma0_GetPage_RcvWindow_Attributes(L4_ThreadId_t sigma0,
                                                            L4_Fpage_t f, L4_Fpage_t RcvWindow,
                                                            L4_Word_t attributes)
{
    L4_Acceptor_t accepted = L4_Accepted();
    L4_Fpage_t result = L4_Nilpage;
    L4_MsgTag_t tag;
    if (L4_IsNilThread(sigma0))
        sigma0 = L4_GlobalId(L4_ThreadIdUserBase(L4_GetKernelInterface()), 1);
    L4_Accept(L4_MapGrantItems(RcvWindow));
    L4_Set_MsgTag(L4_ProtocolTag(L4_ProtocolSigma0, 0, 2, 0));
    L4_LoadMR(1, f.raw);
    L4_LoadMR(2, attributes);
    tag = L4_Call(sigma0);
    if (L4_IpcSucceeded(tag) && L4_TypedWords(tag) == 2)
        L4_StoreMR((int)L4_UntypedWords(tag) + 2, &result.raw);
    L4_Accept(accepted);
    return result;
}

L4_INLINE L4_Fpage_t L4_Sigma0_GetPage_RcvWindow(L4_ThreadId_t sigma0, L4_Fpage_t f,
                                                 L4_Fpage_t RcvWindow)
{
    return L4_Sigma0_GetPage_RcvWindow_Attributes(sigma0, f, RcvWindow, L4_DefaultMemory);
}

/* The page arrives at its own (physical) address. */
L4_INLINE L4_Fpage_t L4_Sigma0_GetPage(L4_ThreadId_t sigma0, L4_Fpage_t f)
{
    return L4_Sigma0_GetPage_RcvWindow(sigma0, f, f);
}

/* Any free page of 2^s bytes. */
L4_INLINE L4_Fpage_t L4_Sigma0_GetAny(L4_ThreadId_t sigma0, L4_Word_t s, L4_Fpage_t RcvWindow)
{
    L4_Fpage_t anywhere;
    anywhere.raw = ~0UL << 10 | (s & 0x3F) << 4;
    return L4_Sigma0_GetPage_RcvWindow(sigma0, anywhere, RcvWindow);
}

#ifdef __cplusplus
L4_INLINE L4_Fpage_t L4_Sigma0_GetPage(L4_ThreadId_t sigma0, L4_Fpage_t f, L4_Fpage_t RcvWindow)
{
    return L4_Sigma0_GetPage_RcvWindow(sigma0, f, RcvWindow);
}

L4_INLINE L4_Fpage_t L4_Sigma0_GetPage(L4_ThreadId_t sigma0, L4_Fpage_t f, L4_Fpage_t RcvWindow,
                                       L4_Word_t attributes)
{
    return L4_Sigma0_GetPage_RcvWindow_Attributes(sigma0, f, RcvWindow, attributes);
}
#endif

#endif
