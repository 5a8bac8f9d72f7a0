# Calls with all registers chosen by the caller.

# RDI: 15 words: RAX RBX RCX RDX RSI RDI RBP R8..R15; RSI: the address to call.
# Afterwards the words are what the registers then held.
.globl fuzz_call
fuzz_call:
    push    rbx
    push    rbp
    push    r12
    push    r13
    push    r14
    push    r15
    push    rdi
    push    rsi
    mov     rax, [rdi]
    mov     rbx, [rdi + 8]
    mov     rcx, [rdi + 16]
    mov     rdx, [rdi + 24]
    mov     rsi, [rdi + 32]
    mov     rbp, [rdi + 48]
    mov     r8, [rdi + 56]
    mov     r9, [rdi + 64]
    mov     r10, [rdi + 72]
    mov     r11, [rdi + 80]
    mov     r12, [rdi + 88]
    mov     r13, [rdi + 96]
    mov     r14, [rdi + 104]
    mov     r15, [rdi + 112]
    mov     rdi, [rdi + 40]
    call    qword ptr [rsp]
    cld
    xchg    rdi, [rsp + 8]
    mov     [rdi], rax
    mov     [rdi + 24], rdx
    mov     [rdi + 32], rsi
    mov     [rdi + 56], r8
    mov     [rdi + 64], r9
    add     rsp, 16
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     rbp
    pop     rbx
    ret

# The trap by itself.
.globl fuzz_trap
fuzz_trap:
    syscall
    ret

# What children run: answers whatever comes with as much.
.globl fuzz_echo
fuzz_echo:
    xor     esi, esi
1:  mov     rdx, -1
    mov     r8d, 0x04000000
    and     r9d, 0x3F
    xor     ebp, ebp
    syscall
    jmp     1b

# Loops for some ticks, then answers messages: the processor's idle time costs the
# emulator nothing, loops do.
.globl fuzz_spin
fuzz_spin:
    mov     ecx, 600000
2:  dec     ecx
    jnz     2b
    jmp     fuzz_echo

# Fills vector registers with RDI.
.globl fuzz_vectors
fuzz_vectors:
    movq    xmm0, rdi
    punpcklqdq xmm0, xmm0
    movdqa  xmm1, xmm0
    movdqa  xmm7, xmm0
    movdqa  xmm8, xmm0
    movdqa  xmm15, xmm0
    ret

# Where hostile threads start: with flags that nobody else can set for them. RSP says
# which thread it is: what is on the stack may be anything.
.globl fuzz_start
fuzz_start:
    push    0x202
    popfq
.globl fuzz_started
fuzz_started:
    mov     rdi, rsp
    and     rsp, -16
    xor     ebp, ebp
    call    fuzz_live
    ud2
