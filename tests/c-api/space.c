/*
 * space.c - sigma0, mapping, unmapping, SpaceControl, MemoryControl.
 */
#include <stdio.h>
#include <l4/kip.h>
#include <l4/misc.h>
#include <l4/protocols.h>
#include <l4/sigma0.h>
#include <l4/space.h>
#include "partner.h"
#include "test.h"

/* Pages of the program that nothing else touches. */
static L4_Word_t page_a[512] __attribute__((aligned(PAGE)));
static L4_Word_t page_b[512] __attribute__((aligned(PAGE)));

/* An address at which neither space has anything. */
#define ELSEWHERE 0x70000000UL

static L4_Fpage_t page_of(const void *address, L4_Word_t rights)
{
    return L4_FpageAddRights(L4_FpageLog2((L4_Word_t)address, 12), rights);
}

/* Opens a window in the far space and sends it one item; returns the answer's tag. */
static L4_MsgTag_t give(L4_Fpage_t window, L4_MapItem_t item)
{
    L4_Msg_t msg;
    ask(far, REQUEST_WINDOW, L4_MapGrantItems(window).raw);
    L4_MsgClear(&msg);
    L4_Set_MsgLabel(&msg, 1000);
    L4_MsgAppendMapItem(&msg, item);
    L4_MsgLoad(&msg);
    return L4_Call(far);
}

static void sigma0_any(void)
{
    L4_Fpage_t window = L4_FpageLog2(ELSEWHERE, 12);
    L4_Fpage_t got = L4_Sigma0_GetAny(L4_nilthread, 12, window);
    volatile L4_Word_t *word = (volatile L4_Word_t *)ELSEWHERE;
    REQUIRE(!L4_IsNilFpage(got), "Sigma0 gave no page.");
    EXPECT(L4_SizeLog2(got), 12, "the page's log2 size");
    *word = 4711;
    EXPECT(*word, 4711, "the word written to the page");
    L4_Flush(L4_FpageAddRights(window, L4_FullyAccessible));
}

static void sigma0_refuses(void)
{
    L4_Fpage_t got = L4_Sigma0_GetPage(L4_nilthread, L4_FpageLog2(0x1000, 10));
    EXPECT(got.raw, 0, "a page smaller than 4 KiB from sigma0");
}

static void map_page(void)
{
    L4_Fpage_t here = page_of(page_a, L4_FullyAccessible);
    L4_Word_t word = ELSEWHERE, in[2], out[63];
    page_a[0] = 1111;
    REQUIRE(L4_IpcSucceeded(give(L4_FpageLog2(ELSEWHERE, 12), L4_MapItem(here, 0))),
            "Sending a map item failed.");
    EXPECT(ask(far, REQUEST_READ, word), 1111, "the word in the mapped page");
    in[0] = ELSEWHERE;
    in[1] = 2222;
    REQUIRE(L4_IpcSucceeded(request(far, REQUEST_WRITE, 2, in, out)), "Calling the server failed.");
    EXPECT(page_a[0], 2222, "the word that the other space wrote");
}

static void status_bits(void)
{
    L4_Fpage_t status = L4_GetStatus(page_of(page_a, 0));
    L4_Word_t in[2] = { ELSEWHERE, 3333 }, out[63];
    REQUIRE(L4_IpcSucceeded(request(far, REQUEST_WRITE, 2, in, out)), "Calling the server failed.");
    status = L4_GetStatus(page_of(page_a, 0));
    EXPECT(L4_WasWritten(status), 1, "written, after the other space wrote to it");
    EXPECT(L4_WasReferenced(status), 1, "referenced, after the other space wrote to it");
    EXPECT(L4_Address(status), (L4_Word_t)page_a, "the address in the result");
    status = L4_GetStatus(page_of(page_a, 0));
    EXPECT(L4_WasWritten(status), 0, "written, after the status was reset");
}

/* The window must be empty afterwards: the next access faults to the pager. */
static void unmap_page(void)
{
    L4_Fpage_t here = page_of(page_b, L4_FullyAccessible);
    page_b[0] = 1234;
    watched_page = (L4_Word_t)page_b;
    watched_faults = 0;
    EXPECT(ask(far, REQUEST_READ, (L4_Word_t)page_b), 1234, "the word, by page fault");
    EXPECT(watched_faults, 1, "the page faults of the first access");
    EXPECT(ask(far, REQUEST_READ, (L4_Word_t)page_b), 1234, "the word again");
    EXPECT(watched_faults, 1, "the page faults of two accesses");
    L4_UnmapFpage(here);
    EXPECT(page_b[0], 1234, "the own word after the unmap");
    EXPECT(ask(far, REQUEST_READ, (L4_Word_t)page_b), 1234, "the word after the unmap");
    EXPECT(watched_faults, 2, "the page faults after the unmap");
}

static void revoke_write(void)
{
    L4_Word_t in[2] = { (L4_Word_t)page_b, 77 }, out[63];
    request(far, REQUEST_WRITE, 2, in, out);
    watched_faults = 0;
    L4_UnmapFpage(page_of(page_b, L4_Writable));
    EXPECT(ask(far, REQUEST_READ, (L4_Word_t)page_b), 77, "the word, after write was revoked");
    EXPECT(watched_faults, 0, "the page faults of a read");
    request(far, REQUEST_WRITE, 2, in, out);
    EXPECT(watched_faults, 1, "the page faults of a write");
}

static void flush_own_page(void)
{
    page_a[5] = 555;
    L4_Flush(page_of(page_a, L4_FullyAccessible));
    EXPECT(page_a[5], 555, "the word after flush and page fault to sigma0");
}

static void flush_several(void)
{
    L4_Fpage_t pages[2] = { page_of(page_a, L4_FullyAccessible), page_of(page_b, L4_FullyAccessible) };
    page_a[1] = 1;
    page_b[1] = 2;
    L4_FlushFpages(2, pages);
    EXPECT(L4_Address(pages[1]), (L4_Word_t)page_b, "the second page's address in the result");
    EXPECT(page_a[1] + page_b[1], 3, "the sum of two words after the flush");
}

static void grant_page(void)
{
    L4_Fpage_t window = L4_FpageLog2(ELSEWHERE, 12);
    L4_GrantItem_t grant = L4_GrantItem(page_of((void *)(ELSEWHERE + PAGE), L4_FullyAccessible), 0);
    L4_MapItem_t item = { { grant.raw[0], grant.raw[1] } };
    volatile L4_Word_t *word = (volatile L4_Word_t *)(ELSEWHERE + PAGE);
    L4_Fpage_t got = L4_Sigma0_GetAny(L4_nilthread, 12, L4_FpageLog2(ELSEWHERE + PAGE, 12));
    REQUIRE(!L4_IsNilFpage(got), "Sigma0 gave no page.");
    *word = 888;
    REQUIRE(L4_IpcSucceeded(give(window, item)), "Sending a grant item failed.");
    EXPECT(ask(far, REQUEST_READ, ELSEWHERE), 888, "the word in the granted page");
}

static void no_window(void)
{
    L4_MapItem_t item = L4_MapItem(page_of(page_a, L4_Readable), 0);
    EXPECT(L4_IpcFailed(give(L4_Nilpage, item)), 1, "failure of mapping to one who accepts nothing");
    EXPECT(L4_IpcErrorKind(L4_ErrorCode()), L4_IpcErrOverflow, "the kind of error: overflow,");
}

static void space_control_refused(void)
{
    L4_ThreadId_t t = spare(5, 1), none = L4_nilthread;
    L4_Fpage_t kip = L4_FpageLog2(0x80000000, 12), utcbs = L4_FpageLog2(0x80000000, 14);
    L4_Word_t old;
    EXPECT(L4_SpaceControl(t, 0, kip, utcbs, none, &old), 0, "changing a space that is not there");
    EXPECT(L4_ErrorCode(), L4_ErrInvalidSpace, "the error");
    EXPECT(L4_ThreadControl(t, t, L4_Myself(), none, (void *)~0UL), 1, "creating a space");
    EXPECT(L4_SpaceControl(t, 0, kip, utcbs, none, &old), 0, "putting the KIP into the UTCB area");
    EXPECT(L4_ErrorCode(), L4_ErrKipArea, "the error");
    EXPECT(L4_SpaceControl(t, 0, kip, L4_FpageLog2(0x90000000, 10), none, &old), 0,
           "a UTCB area of 1 KiB");
    EXPECT(L4_ErrorCode(), L4_ErrUtcbArea, "the error");
    EXPECT(L4_SpaceControl(t, 0, kip, L4_FpageLog2(0x90000000, 14), none, &old), 1,
           "placing both areas properly");
    EXPECT(l4c_delete_thread(t), 1, "deleting the space with its thread");
}

static void default_attribute(void)
{
    EXPECT(L4_Set_PageAttribute(page_of(page_a, 0), L4_DefaultMemory), 1,
           "giving a page the default attribute");
    EXPECT(page_a[1], 1, "a word of the page afterwards");
}

void run_space_tests(void)
{
    test_run("sigma0_any", sigma0_any);
    test_run("sigma0_refuses", sigma0_refuses);
    test_run("map_page", map_page);
    test_run("status_bits", status_bits);
    test_run("unmap_page", unmap_page);
    test_run("revoke_write", revoke_write);
    test_run("flush_own_page", flush_own_page);
    test_run("flush_several", flush_several);
    test_run("grant_page", grant_page);
    test_run("no_window", no_window);
    test_run("space_control_refused", space_control_refused);
    test_run("default_attribute", default_attribute);
}
