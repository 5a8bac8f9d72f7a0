// What giving a thread vector registers of its own costs, in true cycles of the machine at
// hand: the reset, the save and the load as kernel/src/arch/x86_64/vector.S has them (its
// macros are taken from there, see xtask/lab/src/bench/native.rs), beside what else could be
// done. In an ordinary process: none of it needs privilege.
//
// Each round makes registers dirty first, as a program does between two messages; the cost of
// that alone is a row, too. Prints rows as lipc.c does.
#define _GNU_SOURCE
#include <cpuid.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 201, ROUNDS = 2000, AREA = 4096, MXCSR_AT = 24, HEADER_AT = 512, COMPONENTS = 0xE7 };

__asm__(".include \"" VECTOR_MACROS "\"");

// What the macros find through RBP and RDI: a thread with its two areas.
struct thread {
    void *vector_initial, *vector_area, *vector_from;
};

static unsigned char initial[AREA] __attribute__((aligned(64)));
static unsigned char kept[AREA] __attribute__((aligned(64)));
static struct thread thread = { initial, kept, kept };
static int has_avx512;

static inline uint64_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("lfence\n rdtsc\n lfence" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void measure(const char *name, void (*operation)(int rounds))
{
    static double cycles[SAMPLES];
    operation(ROUNDS);
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t from = ticks();
        operation(ROUNDS);
        cycles[i] = (double)(ticks() - from) / ROUNDS;
    }
    qsort(cycles, SAMPLES, sizeof *cycles, by_value);
    printf("row native/vector-%s %.2f low=%.2f high=%.2f samples=%d\n", name, cycles[SAMPLES / 2],
           cycles[SAMPLES / 20], cycles[SAMPLES - 1 - SAMPLES / 20], SAMPLES);
}

#define CLOBBERS "rax", "rcx", "rdx", "rdi", "r8", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3"
// Two registers of a structure's copy.
#define DIRTY "vpcmpeqd ymm0, ymm0, ymm0\n vpaddq ymm1, ymm0, ymm0\n"
// What the kernel would run on a processor that tells what is in use: the control word of the
// x87 unit is loaded only where it is not the usual one, since FLDCW puts the unit in use.
#define CONTROL_WORD "cmp word ptr [rcx], 0x37F\n jne 9f\n 8:\n .subsection 1\n 9: fldcw [rcx]\n jmp 8b\n .previous\n"
#define LOOK                                                          \
    "mov ecx, 1\n xgetbv\n mov rcx, [rbp]\n test eax, ~6\n jnz 6f\n"  \
    "vzeroall\n ldmxcsr [rcx + 24]\n 7:\n" CONTROL_WORD               \
    ".subsection 1\n 6: mov eax, 0xE7\n xrstor64 [rcx]\n jmp 7b\n .previous\n"

#define OPERATION(name, text)                                              \
    static void name(int rounds)                                           \
    {                                                                      \
        for (int i = 0; i < rounds; i++)                                   \
            __asm__ volatile("push rbp\n mov rbp, %0\n" text "pop rbp"     \
                             :                                             \
                             : "r"(&thread)                                \
                             : CLOBBERS);                                  \
        __asm__ volatile("vzeroupper" ::: CLOBBERS);                       \
    }

OPERATION(dirty, DIRTY)
OPERATION(reset_xrstor, DIRTY "LOAD_INITIAL\n")
OPERATION(reset_vzeroall, DIRTY "vzeroall\n")
OPERATION(look, DIRTY "mov ecx, 1\n xgetbv\n test eax, ~6\n jnz 7f\n 7:\n")
OPERATION(reset_looking, DIRTY LOOK)
OPERATION(reset_looking_x87, DIRTY "fld1\n fstp st(0)\n" LOOK)
OPERATION(control_words, DIRTY "mov rcx, [rbp]\n fnstcw [rcx]\n stmxcsr [rcx + 24]\n")
OPERATION(switch_xsave, DIRTY "mov rdi, rbp\n SAVE_KEPT\n LOAD_KEPT\n")
OPERATION(switch_fxsave, DIRTY "mov rcx, [rbp + 8]\n fxsave64 [rcx]\n fxrstor64 [rcx]\n")

static uint64_t in_use(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return (uint64_t)high << 32 | low;
}

// The reset that looks leaves nothing of what was in the registers, whatever was in use.
static void check(const char *what, int with_x87, int with_upper)
{
    static unsigned char seen[AREA] __attribute__((aligned(64)));
    memset(seen, 0, sizeof seen);
    if (with_upper && has_avx512)
        __asm__ volatile("vpternlogd zmm17, zmm17, zmm17, 255\n vpternlogd zmm3, zmm3, zmm3, 255" ::: CLOBBERS);
    __asm__ volatile("push rbp\n mov rbp, %0\n" DIRTY "test %1, %1\n jz 3f\n fld1\n 3:\n" LOOK
                     "mov eax, 0xE7\n xor edx, edx\n xsave64 [%2]\n pop rbp"
                     :
                     : "r"(&thread), "r"(with_x87), "r"(seen)
                     : CLOBBERS);
    __asm__ volatile("emms\n fninit" ::: "memory");
    int bad = memcmp(seen, initial, 5) != 0 || memcmp(seen + MXCSR_AT, initial + MXCSR_AT, 4) != 0;
    for (int i = 32; i < AREA; i++)
        bad |= seen[i] != 0 && (i < HEADER_AT || i >= HEADER_AT + 64);
    if (bad) {
        printf("bench FAILED: the reset leaves something of %s\n", what);
        exit(1);
    }
}

int main(void)
{
    unsigned a, b = 0, c = 0, d, tells = 0;
    __cpuid(1, a, b, c, d);
    __cpuid_count(0xD, 1, tells, b, c, d);
    if (!__builtin_cpu_supports("avx") || (tells & 5) != 5) {
        printf("note: this processor lacks AVX, XSAVEOPT or XGETBV(1); no vector rows\nbench done\n");
        return 0;
    }
    has_avx512 = __builtin_cpu_supports("avx512f");
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    initial[0] = kept[0] = 0x7F, initial[1] = kept[1] = 0x03;
    initial[MXCSR_AT] = kept[MXCSR_AT] = 0x80, initial[MXCSR_AT + 1] = kept[MXCSR_AT + 1] = 0x1F;
    // The library's own string functions leave upper registers in use.
    __asm__ volatile("push rbp\n mov rbp, %0\n LOAD_INITIAL\n pop rbp" : : "r"(&thread) : CLOBBERS);
    check("a copied structure", 0, 0);
    check("the x87 unit", 1, 0);
    check("the upper registers", 0, 1);
    reset_looking(1);
    uint64_t used = in_use() & COMPONENTS;
    measure("dirty", dirty);
    measure("control-words", control_words);
    measure("reset", reset_xrstor);
    measure("reset-vzeroall", reset_vzeroall);
    measure("look", look);
    measure("reset-looking", reset_looking);
    measure("reset-looking-x87", reset_looking_x87);
    measure("switch", switch_xsave);
    measure("switch-fxsave", switch_fxsave);
    printf("note: in use after a reset: %#llx\nbench done\n", (unsigned long long)used);
    return 0;
}
