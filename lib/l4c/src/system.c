/*
 * system.c - the end of a program, and threads in the caller's own space.
 */
#include "plain.h"
#include "text.h"
#include <l4/ipc.h>
#include <l4/kip.h>
#include <l4/space.h>
#include <service_ipc.h>
#include <system.h>

/* The emulator's exit port, and what to write there. */
#define EXIT_PORT 0xF4
#define EXIT_SUCCESS_BYTE 0x10
#define EXIT_FAILURE_BYTE 0x11

int l4c_is_root_task(void)
{
    L4_Word_t root = L4_ThreadIdUserBase(L4_GetKernelInterface()) + 2;
    return L4_ThreadNo(L4_MyGlobalId()) == root;
}

/* Tells Baton's root task that this task is over, which then ends it. */
static void announce_the_end(int status)
{
    service_client_t root = service_at(service_root());
    (void)parent_exit(&root, (uint64_t)status);
}

void exit(int status)
{
    if (l4c_is_root_task())
        l4c_outb(EXIT_PORT, status == 0 ? EXIT_SUCCESS_BYTE : EXIT_FAILURE_BYTE);
    else
        announce_the_end(status);
    for (;;)
        L4_Sleep(L4_Never);
}

void abort(void)
{
    exit(1);
}

void *l4c_utcb_location(L4_Word_t slot)
{
    void *kip = L4_GetKernelInterface();
    L4_Word_t size = L4_UtcbSize(kip);
    L4_Word_t mine = L4_MyLocalId().raw & ~(size - 1);
    static L4_Word_t first;
    /* The first caller is taken to be the first thread, whose slot is 0. */
    if (first == 0)
        first = mine;
    return (void *)(first + slot * size);
}

/*
 * Has every page of the program mapped.  Sigma0 answers page faults on an initial
 * server's image for its first thread only, so that one does it for all others.
 */
static void touch_image(void)
{
    extern const volatile char _image_start[], _end[];
    static int done;
    const volatile char *at;
    if (done)
        return;
    done = 1;
    for (at = _image_start; at < _end; at += 1UL << 12)
        (void)*at;
}

L4_Word_t l4c_stack_top(void *stack, size_t size)
{
    return (((L4_Word_t)stack + size) & ~15UL) - 8;
}

L4_Word_t l4c_create_thread(L4_ThreadId_t id, L4_Word_t slot, void *stack, size_t size,
                            void (*entry)(void))
{
    L4_ThreadId_t me = L4_Myself();
    touch_image();
    if (!L4_ThreadControl(id, me, me, L4_Pager(), l4c_utcb_location(slot)))
        return 0;
    return !L4_IsNilThread(L4_Start_SpIp(id, l4c_stack_top(stack, size), (L4_Word_t)entry));
}

L4_Word_t l4c_create_space(L4_ThreadId_t id, L4_ThreadId_t pager)
{
    void *kip = L4_GetKernelInterface(), *utcb = l4c_utcb_location(0);
    L4_Fpage_t kip_area = L4_FpageLog2((L4_Word_t)kip, L4_KipAreaSizeLog2(kip));
    L4_Fpage_t utcb_area = L4_FpageLog2((L4_Word_t)utcb, L4_UtcbAreaSizeLog2(kip));
    L4_ThreadId_t none = L4_nilthread;
    L4_Word_t old;
    return L4_ThreadControl(id, id, L4_Myself(), none, (void *)~0UL)
           && L4_SpaceControl(id, 0, kip_area, utcb_area, none, &old)
           && L4_ThreadControl(id, id, none, pager, utcb);
}

void l4c_fail(const char *what)
{
    printf("%s failed: error %lu\n", what, L4_ErrorCode());
    exit(1);
}

L4_Word_t l4c_delete_thread(L4_ThreadId_t id)
{
    return L4_ThreadControl(id, L4_nilthread, L4_nilthread, L4_nilthread, (void *)~0UL);
}
