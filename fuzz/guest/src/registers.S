# A bystander's registers.

.set FUZZ_ALL, 40           # bytes of the frame: a vector register, a word, flags

# RDI: rounds; RSI: 74 words: four for each of 16 vector registers, one for each of 8 MMX
# registers (which are x87's), MXCSR, x87 control word. RAX: 0 if general, vector and control
# registers kept their values in all rounds, else a number that says which did not.
# Where the processor has no AVX, two of the four words are not looked at.
.globl fuzz_canary
fuzz_canary:
    push    rbx
    push    rbp
    push    r12
    push    r13
    push    r14
    push    r15
    sub     rsp, FUZZ_ALL
    mov     eax, 1
    xor     ecx, ecx
    cpuid
    and     ecx, 3 << 27            # OSXSAVE and AVX
    xor     ecx, 3 << 27
    jnz     1f
    xgetbv
    not     eax
    and     eax, 6
    mov     ecx, eax
1:  mov     [rsp + 36], ecx         # 0: there are upper halves
    test    ecx, ecx
    jnz     1f
    .irp    k, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    vmovdqu ymm\k, [rsi + 32 * \k]
    .endr
    jmp     2f
1:  .irp    k, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    movdqu  xmm\k, [rsi + 32 * \k]
    .endr
2:  .irp    k, 0,1,2,3,4,5,6,7
    movq    mm\k, [rsi + 512 + 8 * \k]
    .endr
    ldmxcsr [rsi + 576]
    fldcw   [rsi + 584]
    mov     r15, [rsi]
    lea     rbx, [r15 + 1]
    lea     rcx, [r15 + 2]
    lea     rdx, [r15 + 3]
    lea     rbp, [r15 + 4]
    lea     r8, [r15 + 5]
    lea     r9, [r15 + 6]
    lea     r10, [r15 + 7]
    lea     r11, [r15 + 8]
    lea     r12, [r15 + 9]
    lea     r13, [r15 + 10]
    lea     r14, [r15 + 11]
2:  .irp    k, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    movq    rax, xmm\k
    cmp     rax, [rsi + 32 * \k]
    jne     3f
    pextrq  rax, xmm\k, 1
    cmp     rax, [rsi + 32 * \k + 8]
    jne     3f
    .endr
    .irp    k, 0,1,2,3,4,5,6,7
    movq    rax, mm\k
    cmp     rax, [rsi + 512 + 8 * \k]
    jne     3f
    .endr
    cmp     dword ptr [rsp + 36], 0
    jne     1f
    .irp    k, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    vmovdqu [rsp], ymm\k
    mov     rax, [rsp + 16]
    cmp     rax, [rsi + 32 * \k + 16]
    jne     3f
    mov     rax, [rsp + 24]
    cmp     rax, [rsi + 32 * \k + 24]
    jne     3f
    .endr
1:  stmxcsr [rsp]
    mov     eax, [rsp]
    xor     eax, [rsi + 576]
    test    eax, 0xFFC0
    jnz     4f
    fnstcw  [rsp]
    mov     ax, [rsp]
    cmp     ax, [rsi + 584]
    jne     4f
    mov     rax, r15
    .irp    r, rbx,rcx,rdx,rbp,r8,r9,r10,r11,r12,r13,r14
    inc     rax
    cmp     rax, \r
    jne     5f
    .endr
    dec     rdi
    jnz     2b
    xor     eax, eax
    jmp     6f
3:  mov     eax, 1
    jmp     6f
4:  mov     eax, 2
    jmp     6f
5:  mov     eax, 3
6:  emms
    add     rsp, FUZZ_ALL
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     rbp
    pop     rbx
    ret
