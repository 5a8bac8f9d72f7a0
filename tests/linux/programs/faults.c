// Signals that the processor causes: which, with which address; stack overflow on
// an alternate stack; how a process dies of them.
#include <setjmp.h>
#include "probe.h"

static sigjmp_buf back;
static volatile int code;
static void *volatile address;
static volatile int zero;
static char alternate[65536];

static void handler(int number, siginfo_t *info, void *context)
{
    (void)context;
    code = info->si_code;
    address = info->si_addr;
    siglongjmp(back, number);
}

// Runs BODY, which faults; prints signal and code.
#define FAULT(what, body)                                                     \
    do {                                                                      \
        int number_ = sigsetjmp(back, 1);                                     \
        if (number_ == 0) {                                                   \
            body;                                                             \
            puts(what ": no fault");                                          \
        } else {                                                              \
            printf("%s: SIG%s code %d\n", what, sigabbrev_np(number_), code); \
        }                                                                     \
    } while (0)

static __attribute__((noinline)) int deeper(int n)
{
    volatile char room[4096];
    room[0] = (char)n;
    return (n < 0 ? 0 : deeper(n + 1)) + room[0];
}

int main(void)
{
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    for (int i = 0; i < 5; i++)
        sigaction(numbers[i], &action, NULL);

    FAULT("write to 8", *(volatile int *)BAD = 1);
    FACT(address == BAD);
    FAULT("read the kernel's half", zero += *(volatile int *)FAR);
    char *page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FAULT("write to a page for reading", page[123] = 1);
    FACT(address == page + 123);
    FAULT("read it", zero += page[4096]);
    mprotect(page, 4096, PROT_NONE);
    FAULT("read a page without rights", zero += ((volatile char *)page)[1]);
    FAULT("jump to data", ((void (*)(void))(page + 4096))());
    FACT(address == page + 4096);
    munmap(page, 8192);
    FAULT("read what is unmapped", zero += ((volatile char *)page)[4097]);
    FACT(address == page + 4097);
    FAULT("divide by zero", zero = 100 / zero);
    zero = 0;
    FAULT("ud2", __asm__ volatile("ud2"));
    FAULT("int3", __asm__ volatile("int3"));
    FAULT("hlt", __asm__ volatile("hlt"));
    FAULT("in", __asm__ volatile("inb $0x60, %%al" ::: "al"));
    FAULT("non-canonical", zero += *(volatile int *)0x8000000000000000);
    int fd = open("short", O_RDWR | O_CREAT, 0600);
    ftruncate(fd, 10);
    char *file = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    FAULT("read behind the end of a file, same page", zero += file[100]);
    FAULT("read behind the end of a file, next page", zero += file[5000]);
    FACT(address == file + 5000);
    FAULT("overflow the stack", zero += deeper(0));

    section("how a process dies");
    for (int i = 0; i < 5; i++)
        signal(numbers[i], SIG_DFL);
    CHILD("segmentation fault", *(volatile int *)BAD = 1);
    CHILD("division", zero = 100 / zero);
    CHILD("illegal instruction", __asm__ volatile("ud2"));
    CHILD("breakpoint", __asm__ volatile("int3"));
    CHILD("bus error", zero += file[5000]);
    CHILD("overflow", zero += deeper(0));
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    CHILD("blocked", *(volatile int *)BAD = 1);
    signal(SIGSEGV, SIG_IGN);
    CHILD("ignored", *(volatile int *)BAD = 1);
    return 0;
}
