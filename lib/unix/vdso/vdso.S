# Code that programs call for the time without calling the system. It is mapped into
# every program as a shared object of one page, with a page of data behind it
# (`src/exec/vdso.rs` fills that). Functions follow the System V calling convention.

    .intel_syntax noprefix

    .set NR_CLOCK_GETTIME, 228
    .set NR_CLOCK_GETRES, 229
    .set NR_GETCPU, 309
    # Clocks that are told here: CLOCK_REALTIME, _REALTIME_COARSE, _TAI,
    # CLOCK_MONOTONIC, _MONOTONIC_RAW, _MONOTONIC_COARSE, _BOOTTIME.
    .set CLOCKS, 1 << 0 | 1 << 5 | 1 << 11 | 1 << 1 | 1 << 4 | 1 << 6 | 1 << 7
    # Those of them that the system itself tells the resolution of.
    .set COARSE_CLOCKS, 1 << 5 | 1 << 6
    .set SECOND, 1000000000

    .section .vvar, "aw", @nobits
    .balign 4096
# Time stamp counter at boot.
tsc_base:   .skip 8
# Nanoseconds a count takes, times 2^32.
tsc_scale:  .skip 8
# How many processors programs run on.
processors: .skip 8
# What clocks showed at boot in nanoseconds, by their numbers: of those since 1970 the
# time then, of the others how far this page's namespace has put them forward.
at_boot:    .skip 8 * 12
    .set boot_time, at_boot

    .macro FUNCTION name
    .globl __vdso_\name
    .type __vdso_\name, @function
    .weak \name
    .set \name, __vdso_\name
    .balign 16
__vdso_\name:
    .endm

# RAX = nanoseconds since boot. Changes RDX.
    .macro NOW
    rdtsc
    shl rdx, 32
    or rax, rdx
    sub rax, [rip + tsc_base]
    mul qword ptr [rip + tsc_scale]
    shrd rax, rdx, 32
    .endm

    .text

# int clock_gettime(clockid_t edi, struct timespec *rsi)
# Whoever leaves something in the upper half of RDI is answered by the system.
FUNCTION clock_gettime
    cmp rdi, 31
    ja 9f
    mov ecx, CLOCKS
    bt ecx, edi
    jnc 9f
    lea r8, [rip + at_boot]
    NOW
    add rax, [r8 + rdi * 8]
    xor edx, edx
    mov ecx, SECOND
    div rcx
    mov [rsi], rax
    mov [rsi + 8], rdx
    xor eax, eax
    ret
9:  mov eax, NR_CLOCK_GETTIME
    syscall
    ret
    .size __vdso_clock_gettime, . - __vdso_clock_gettime

# int gettimeofday(struct timeval *rdi, struct timezone *rsi)
FUNCTION gettimeofday
    test rdi, rdi
    jz 1f
    NOW
    add rax, [rip + boot_time]
    xor edx, edx
    mov ecx, SECOND
    div rcx
    mov [rdi], rax
    mov eax, edx
    xor edx, edx
    mov ecx, 1000
    div ecx
    mov [rdi + 8], rax
1:  test rsi, rsi
    jz 2f
    mov qword ptr [rsi], 0
2:  xor eax, eax
    ret
    .size __vdso_gettimeofday, . - __vdso_gettimeofday

# time_t time(time_t *rdi)
FUNCTION time
    NOW
    add rax, [rip + boot_time]
    xor edx, edx
    mov ecx, SECOND
    div rcx
    test rdi, rdi
    jz 1f
    mov [rdi], rax
1:  ret
    .size __vdso_time, . - __vdso_time

# int getcpu(unsigned *rdi, unsigned *rsi, void *unused)
# Where there are several, the system knows.
FUNCTION getcpu
    cmp qword ptr [rip + processors], 1
    ja 9f
    test rdi, rdi
    jz 1f
    mov dword ptr [rdi], 0
1:  test rsi, rsi
    jz 2f
    mov dword ptr [rsi], 0
2:  xor eax, eax
    ret
9:  mov eax, NR_GETCPU
    syscall
    ret
    .size __vdso_getcpu, . - __vdso_getcpu

# int clock_getres(clockid_t edi, struct timespec *rsi)
FUNCTION clock_getres
    cmp edi, 31
    ja 9f
    mov ecx, CLOCKS & ~COARSE_CLOCKS
    bt ecx, edi
    jnc 9f
    test rsi, rsi
    jz 1f
    mov qword ptr [rsi], 0
    mov qword ptr [rsi + 8], 1
1:  xor eax, eax
    ret
9:  mov eax, NR_CLOCK_GETRES
    syscall
    ret
    .size __vdso_clock_getres, . - __vdso_clock_getres

    .section .note.GNU-stack, "", @progbits
