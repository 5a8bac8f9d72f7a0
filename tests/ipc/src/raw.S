// One Ipc with every register given and every register reported, and the entry of
// a puppet. Offsets are those of `raw::Registers`.

.section .text, "ax"

.macro load_registers
    rdtsc
    shl     rdx, 32
    or      rax, rdx
    mov     [rdi + {BEFORE}], rax
    push    qword ptr [rdi + {FLAGS}]
    popfq
    mov     rax, [rdi + {GENERAL}]
    mov     rbx, [rdi + {GENERAL} + 8]
    mov     rcx, [rdi + {GENERAL} + 16]
    mov     rdx, [rdi + {GENERAL} + 24]
    mov     rsi, [rdi + {GENERAL} + 32]
    mov     rbp, [rdi + {GENERAL} + 48]
    mov     r8, [rdi + {GENERAL} + 56]
    mov     r9, [rdi + {GENERAL} + 64]
    mov     r10, [rdi + {GENERAL} + 72]
    mov     r11, [rdi + {GENERAL} + 80]
    mov     r12, [rdi + {GENERAL} + 88]
    mov     r13, [rdi + {GENERAL} + 96]
    mov     r14, [rdi + {GENERAL} + 104]
    mov     r15, [rdi + {GENERAL} + 112]
    mov     rdi, [rdi + {GENERAL} + 40]
.endm

// fn(registers: *mut Registers)
.global baton_test_ipc
baton_test_ipc:
    push    rbx
    push    rbp
    push    r12
    push    r13
    push    r14
    push    r15
    push    qword ptr [rdi + {LINK}]
    push    rdi
    mov     [rdi + {SP}], rsp
    cmp     qword ptr [rdi + {VECTOR_USED}], 0
    je      3f
    movdqu  xmm0, [rdi + {VECTOR}]
    movdqu  xmm7, [rdi + {VECTOR} + 16]
    movdqu  xmm15, [rdi + {VECTOR} + 32]
    ldmxcsr [rdi + {VECTOR} + 48]
    fldcw   [rdi + {VECTOR} + 56]
3:  cmp     qword ptr [rdi + {LINK}], 0
    jne     1f
    load_registers
    syscall
    jmp     2f
1:  load_registers
    call    qword ptr [rsp + 8]
2:  push    rax
    mov     rax, [rsp + 8]
    mov     [rax + {GENERAL} + 8], rbx
    pushfq
    pop     rbx
    mov     [rax + {FLAGS}], rbx
    mov     rbx, rax
    rdtsc
    shl     rdx, 32
    or      rdx, rax
    mov     [rbx + {AFTER}], rdx
    mov     rax, rbx
    cld
    lea     rbx, [rsp + 8]
    sub     rbx, [rax + {SP}]
    mov     [rax + {SP}], rbx
    pop     rbx
    mov     [rax + {GENERAL}], rbx
    mov     [rax + {GENERAL} + 32], rsi
    mov     [rax + {GENERAL} + 40], rdi
    mov     [rax + {GENERAL} + 64], r9
    mov     [rax + {GENERAL} + 72], r10
    mov     [rax + {GENERAL} + 88], r12
    mov     [rax + {GENERAL} + 96], r13
    mov     [rax + {GENERAL} + 104], r14
    mov     [rax + {GENERAL} + 112], r15
    movdqu  [rax + {SEEN}], xmm0
    movdqu  [rax + {SEEN} + 16], xmm7
    movdqu  [rax + {SEEN} + 32], xmm15
    stmxcsr [rax + {SEEN} + 48]
    fnstcw  [rax + {SEEN} + 56]
    add     rsp, 16
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     rbp
    pop     rbx
    ret

// A puppet starts here, again and again; its stack's top word is its argument.
.global baton_test_start
baton_test_start:
    cld
    pop     rdi
    and     rsp, -16
    xor     ebp, ebp
    call    {PUPPET}
    ud2
