/*
 * hello-c - the first C program: greets, and says what the kernel tells about
 * itself and the machine.  Runs as the root task.
 */
#include <stdio.h>
#include <l4/kip.h>
#include <l4/sigma0.h>
#include <l4/baton.h>
#include <l4/bootinfo.h>

static void print_memory(const void *kip)
{
    static const char *const names[16] = {
        [L4_UndefinedMemoryType] = "undefined",
        [L4_ConventionalMemoryType] = "conventional",
        [L4_ReservedMemoryType] = "reserved",
        [L4_DedicatedMemoryType] = "dedicated",
        [L4_SharedMemoryType] = "shared",
        [L4_BootLoaderSpecificMemoryType] = "boot loader's",
        [L4_ArchitectureSpecificMemoryType] = "firmware's",
    };
    L4_Word_t n;
    for (n = 0; n < L4_NumMemoryDescriptors(kip); n++) {
        const L4_MemoryDesc_t *m = L4_MemoryDesc(kip, n);
        const char *name = names[L4_MemoryDescType(m) & 0xF];
        printf("  %016lx to %016lx  %s %s\n", L4_MemoryDescLow(m), L4_MemoryDescHigh(m),
               L4_IsMemoryDescVirtual(m) ? "virtual " : "physical", name ? name : "unknown");
    }
}

static void print_page_sizes(const void *kip)
{
    L4_Word_t mask = L4_PageSizeMask(kip), bits;
    printf("page sizes:");
    for (bits = 10; bits < 64; bits++)
        if (mask >> bits & 1)
            printf(" 2^%lu", bits);
    printf(" bytes\n");
}

static void print_boot_records(void *info)
{
    L4_Fpage_t page = L4_FpageLog2((L4_Word_t)info, 12);
    L4_FpageAddRightsTo(&page, L4_FullyAccessible);
    /* It is not ordinary memory, so it has to be asked for. */
    if (info && !L4_IsNilFpage(L4_Sigma0_GetPage(L4_nilthread, page)) && L4_BootInfo_Valid(info))
        printf("boot records: %lu\n", L4_BootInfo_Entries(info));
}

int main(void)
{
    void *kip = L4_GetKernelInterface();
    L4_Word_t version = L4_ApiVersion();
    L4_ThreadId_t me = L4_Myself();

    printf("Hello from C.\n");
    printf("kernel: %s, id %08lx, interface version %02lx.%lu\n", L4_KernelVersionString(kip),
           L4_KernelId(), version >> 24, version >> 16 & 0xFF);
    printf("extensions of Baton: %s\n", L4_HasBaton() ? "yes" : "no");
    printf("interface page at %p, UTCB at %lx\n", kip, L4_MyLocalId().raw);
    printf("I am thread %lu, version %lu; my pager is thread %lu\n", L4_ThreadNo(me),
           L4_Version(me), L4_ThreadNo(L4_Pager()));
    printf("thread numbers: %lu bits, interrupts below %lu, users from %lu\n",
           L4_ThreadIdBits(kip), L4_ThreadIdSystemBase(kip), L4_ThreadIdUserBase(kip));
    printf("processors: %lu; UTCB: %lu bytes, areas from 2^%lu bytes\n",
           L4_NumProcessors(kip), L4_UtcbSize(kip), L4_UtcbAreaSizeLog2(kip));
    print_page_sizes(kip);
    printf("memory:\n");
    print_memory(kip);
    print_boot_records((void *)L4_BootInfo(kip));
    printf("clock: %lu us\n", L4_SystemClock().raw);
    return 0;
}
