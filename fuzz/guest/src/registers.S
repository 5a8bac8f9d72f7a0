# A bystander's registers.

# RDI: rounds; RSI: 34 words: a pattern of two words for each of 16 vector registers, MXCSR,
# x87 control word. RAX: 0 if general, vector and control registers kept their values in
# all rounds, else a number that says which did not.
.globl fuzz_canary
fuzz_canary:
    push    rbx
    push    rbp
    push    r12
    push    r13
    push    r14
    push    r15
    sub     rsp, 8
    .irp    k, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    movdqu  xmm\k, [rsi + 16 * \k]
    .endr
    ldmxcsr [rsi + 256]
    fldcw   [rsi + 264]
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
    cmp     rax, [rsi + 16 * \k]
    jne     3f
    .endr
    pextrq  rax, xmm3, 1
    cmp     rax, [rsi + 56]
    jne     3f
    pextrq  rax, xmm12, 1
    cmp     rax, [rsi + 200]
    jne     3f
    stmxcsr [rsp]
    mov     eax, [rsp]
    xor     eax, [rsi + 256]
    test    eax, 0xFFC0
    jnz     4f
    fnstcw  [rsp]
    mov     ax, [rsp]
    cmp     ax, [rsi + 264]
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
6:  add     rsp, 8
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     rbp
    pop     rbx
    ret
