// Children that begin with the C library's lazily bound calls, many at a time, while vector
// registers hold what must survive: their loader saves and restores the registers around each
// first call, a tick may fall in between, and every switch of processes has to keep them.
// An argument says how many children (1,000).
#include "probe.h"

enum { AT_ONCE = 8, LINES = 100 };

// Sixteen registers filled from `seed`, and what a call in between left of them.
static int survive(uint64_t seed)
{
    uint64_t before[32], after[32];
    for (int i = 0; i < 32; i++)
        before[i] = seed * 0x9E3779B97F4A7C15u + (uint64_t)i;
    long result;
    __asm__ volatile("movdqu (%1), %%xmm0\n movdqu 16(%1), %%xmm1\n movdqu 32(%1), %%xmm2\n"
                     "movdqu 48(%1), %%xmm3\n movdqu 64(%1), %%xmm4\n movdqu 80(%1), %%xmm5\n"
                     "movdqu 96(%1), %%xmm6\n movdqu 112(%1), %%xmm7\n movdqu 128(%1), %%xmm8\n"
                     "movdqu 144(%1), %%xmm9\n movdqu 160(%1), %%xmm10\n movdqu 176(%1), %%xmm11\n"
                     "movdqu 192(%1), %%xmm12\n movdqu 208(%1), %%xmm13\n movdqu 224(%1), %%xmm14\n"
                     "movdqu 240(%1), %%xmm15\n"
                     "syscall\n"
                     "movdqu %%xmm0, (%2)\n movdqu %%xmm1, 16(%2)\n movdqu %%xmm2, 32(%2)\n"
                     "movdqu %%xmm3, 48(%2)\n movdqu %%xmm4, 64(%2)\n movdqu %%xmm5, 80(%2)\n"
                     "movdqu %%xmm6, 96(%2)\n movdqu %%xmm7, 112(%2)\n movdqu %%xmm8, 128(%2)\n"
                     "movdqu %%xmm9, 144(%2)\n movdqu %%xmm10, 160(%2)\n movdqu %%xmm11, 176(%2)\n"
                     "movdqu %%xmm12, 192(%2)\n movdqu %%xmm13, 208(%2)\n movdqu %%xmm14, 224(%2)\n"
                     "movdqu %%xmm15, 240(%2)\n"
                     : "=a"(result)
                     : "r"(before), "r"(after), "a"(SYS_sched_yield)
                     : "rcx", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
                       "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    return result == 0 && memcmp(before, after, sizeof before) == 0;
}

// Everything that a child does for the first time in its life.
static void child(FILE *file, long number)
{
    char line[64], wanted[64];
    snprintf(wanted, sizeof wanted, "line %ld of the file\n", number % LINES);
    int good = survive((uint64_t)number) && fseek(file, 0, SEEK_SET) == 0;
    for (long at = 0; at <= number % LINES; at++)
        good = good && fgets(line, sizeof line, file) != NULL;
    good = good && strcmp(line, wanted) == 0 && strtol(line + 5, NULL, 10) == number % LINES;
    good = good && survive(~(uint64_t)number);
    _exit(good ? 0 : 1);
}

int main(int argc, char **argv)
{
    long children = argc > 1 ? strtol(argv[1], NULL, 10) : 1000, failed = 0;
    FILE *file = fopen("lines", "w");
    for (int i = 0; i < LINES; i++)
        fprintf(file, "line %d of the file\n", i);
    fclose(file);
    // Anew for each child: the descriptor's place in the file is shared with those beside it.
    for (long first = 0; first < children; first += AT_ONCE) {
        FILE *files[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) {
            files[i] = fopen("lines", "r");
            if (fork() == 0)
                child(files[i], first + i);
        }
        for (int i = 0; i < AT_ONCE; i++) {
            int status = 0;
            wait(&status);
            failed += status != 0;
            fclose(files[i]);
        }
    }
    printf("%ld children, %ld failed\n", children, failed);
    return 0;
}
