// The marks, and the exchanges in which nothing lies between a mark and the trap.
// The binding is X.2's (5.2): RSI to, RDX from, R8 timeouts, RDI U, R9 MR0, RAX MR1,
// RBX MR2, R10 MR3, R12 to R15 MR4 to MR7. RCX, R11, RBP, RDX and R8 do not survive.

.macro BEGIN_MARK
    .byte 0x0F, 0x1F, 0x84, 0x00, 'B', 'T', 'N', 1
.endm
.macro END_MARK
    .byte 0x0F, 0x1F, 0x84, 0x00, 'B', 'T', 'N', 2
.endm
.macro keep
    push    rbx
    push    rbp
    push    r12
    push    r13
    push    r14
    push    r15
.endm
.macro restore
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     rbp
    pop     rbx
.endm

.section .text, "ax"

// bench_exchange(to, from, timeouts, tag, MR1, MR2) -> tag. One sample if the partner
// sets no marks, two (there, back) if it does.
.balign 64
.global bench_exchange
bench_exchange:
    keep
    mov     rax, r8
    mov     rbx, r9
    mov     r9, rcx
    mov     r8, rdx
    mov     rdx, rsi
    mov     rsi, rdi
    mov     rdi, gs:[0]
    BEGIN_MARK
    syscall
    END_MARK
    mov     rax, r9
    restore
    ret

// bench_split(to, tag): send, then receive, as two calls; one sample.
.balign 64
.global bench_split
bench_split:
    keep
    mov     r9, rsi
    mov     rsi, rdi
    push    rdi
    xor     edx, edx
    xor     r8d, r8d
    mov     rdi, gs:[0]
    BEGIN_MARK
    syscall
    mov     rdx, [rsp]
    xor     esi, esi
    xor     r8d, r8d
    syscall
    END_MARK
    pop     rax
    mov     rax, r9
    restore
    ret

// bench_exchange_local(to, tag): the same with a partner of the same space, named by its
// local id, through the stub that needs no kernel; and by a thread that uses vector registers, with an
// instruction of theirs before it.
.macro local_exchange before:vararg
    keep
    mov     r9, rsi
    mov     rsi, rdi
    xor     r8d, r8d
    mov     rdi, gs:[0]
    mov     rbp, {LOCAL_CALL}
    \before
    BEGIN_MARK
    call    rbp
    END_MARK
    mov     rax, r9
    restore
    ret
.endm
.balign 64
.global bench_exchange_local
bench_exchange_local:
    local_exchange
.balign 64
.global bench_exchange_local_vector
bench_exchange_local_vector:
    local_exchange movq xmm0, rsi

// The same by a thread that uses vector registers, with an instruction of theirs before
// the trap; after it they are dead (bit 0 of RDI) or kept.
.macro vector_exchange dead
    keep
    mov     rax, r8
    mov     rbx, r9
    mov     r9, rcx
    mov     r8, rdx
    mov     rdx, rsi
    mov     rsi, rdi
    mov     rdi, gs:[0]
    add     rdi, \dead
    movq    xmm0, rax
    BEGIN_MARK
    syscall
    END_MARK
    mov     rax, r9
    restore
    ret
.endm
.balign 64
.global bench_exchange_dead
bench_exchange_dead:
    vector_exchange 1
.balign 64
.global bench_exchange_kept
bench_exchange_kept:
    vector_exchange 0

// bench_lrpc(token) -> status: a procedure call of the procedure 0. Two samples: there, back.
.balign 64
.global bench_lrpc
bench_lrpc:
    keep
    mov     rsi, rdi
    xor     r9d, r9d
    mov     r8, -{LRPC_CALL}
    mov     rdi, gs:[0]
    BEGIN_MARK
    syscall
    END_MARK
    mov     rax, rsi
    restore
    ret

// Says that the thread and its task use no vector registers.
.macro no_vector_registers
    mov     rdi, gs:[0]
    mov     r14, [rdi + {MY_GLOBAL_ID}]
    mov     esi, {NO_VECTOR}
    mov     r8, -{THREAD_STATE}
    syscall
.endm

// A program with a stack, in whatever space.
.balign 64
.global bench_program
bench_program:
    no_vector_registers
    jmp     baton_thread_start

// The partners never use a stack: RSP is the client's id. Each first calls in to say
// that it is there, which also brings in its pages; then it answers for ever.
.macro partner_begins
    no_vector_registers
    vector_partner_begins
.endm
.macro vector_partner_begins
    mov     rdi, gs:[0]
    mov     r9d, {READY} << 16
    mov     rsi, rsp
    mov     rdx, -1
    xor     r8d, r8d
    syscall
.endm
.macro reply_and_wait
    mov     rsi, rsp
    mov     rdx, -1
    mov     r8d, {REPLY_WAIT}
.endm

// Sends every message back, with marks on both sides of its own traps.
.balign 64
.global bench_serve_marked
bench_serve_marked:
    partner_begins
2:  END_MARK
    reply_and_wait
    BEGIN_MARK
    syscall
    jmp     2b

// The same to whoever has sent it.
.balign 64
.global bench_serve_anybody
bench_serve_anybody:
    partner_begins
2:  END_MARK
    mov     rdx, -1
    mov     r8d, {REPLY_WAIT}
    BEGIN_MARK
    syscall
    jmp     2b

// The same through the stub that needs no kernel; it has a stack for the return address.
.macro serve_local before:vararg
2:  END_MARK
    \before
    mov     rdx, -1
    mov     r8d, {REPLY_WAIT}
    mov     rbp, {LOCAL_REPLY_WAIT}
    BEGIN_MARK
    call    rbp
    jmp     2b
.endm
.balign 64
.global bench_serve_local
bench_serve_local:
    partner_begins
    lea     rsp, [rip + BENCH_LOCAL_STACK + 256]
bench_serve_local_loop:
    serve_local
.balign 64
.global bench_serve_local_vector
bench_serve_local_vector:
    vector_partner_begins
    lea     rsp, [rip + BENCH_LOCAL_STACK + 256]
    serve_local movq xmm0, rsi

// The same, asking for the complete path.
.balign 64
.global bench_serve_complete
bench_serve_complete:
    partner_begins
2:  END_MARK
    reply_and_wait
    bts     r8, {COMPLETE_BIT}
    BEGIN_MARK
    syscall
    jmp     2b

// The same with a vector instruction after each message; the registers are dead over the
// wait, or kept.
.macro serve_vector dead
    vector_partner_begins
2:  END_MARK
    movq    xmm0, rax
    paddq   xmm0, xmm0
    add     rdi, \dead
    reply_and_wait
    BEGIN_MARK
    syscall
    jmp     2b
.endm
.balign 64
.global bench_serve_dead
bench_serve_dead:
    serve_vector 1
.balign 64
.global bench_serve_kept
bench_serve_kept:
    serve_vector 0

// After a message a host of the clerk in BENCH_CLERK, whose procedures do nothing; with marks.
.balign 64
.global bench_serve_lrpc
bench_serve_lrpc:
    mov     r15, [rip + BENCH_CLERK]            // no fault later
    partner_begins
    mov     rsi, [rip + BENCH_CLERK]
    mov     r8, -{LRPC_RETURN}
    syscall
2:  END_MARK
    mov     r8, -{LRPC_RETURN}
    BEGIN_MARK
    syscall
    jmp     2b

// The same without marks: for round trips.
.balign 64
.global bench_serve
bench_serve:
    partner_begins
2:  reply_and_wait
    syscall
    jmp     2b

// The partner of bench_split: receives, then sends, as two calls.
.balign 64
.global bench_serve_split
bench_serve_split:
    partner_begins
2:  mov     rsi, rsp
    xor     edx, edx
    xor     r8d, r8d
    syscall
    xor     esi, esi
    mov     rdx, rsp
    xor     r8d, r8d
    syscall
    jmp     2b

// Takes strings into the buffer that BENCH_BUFFER describes, answers with empty
// messages; with marks.
.balign 64
.global bench_serve_strings
bench_serve_strings:
    mov     rax, [rip + BENCH_BUFFER]           // one access per page: no fault later
    mov     rcx, [rip + BENCH_BUFFER + 8]
1:  mov     byte ptr [rax], 0
    add     rax, 4096
    sub     rcx, 4096
    ja      1b
    mov     rdi, gs:[0]
    mov     rcx, [rip + BENCH_BUFFER + 8]
    shl     rcx, 10
    mov     [rdi - 17 * 8], rcx                 // BR1: a simple string of that length
    mov     rcx, [rip + BENCH_BUFFER]
    mov     [rdi - 18 * 8], rcx                 // BR2: its address
    mov     qword ptr [rdi - 16 * 8], 1         // BR0: strings accepted
    partner_begins
2:  END_MARK
    reply_and_wait
    xor     r9d, r9d
    BEGIN_MARK
    syscall
    jmp     2b

// Waits for a message of the root task that never comes, with the timeouts that RSP
// holds; then again. For herds of threads and timers.
.balign 64
.global bench_sleep
bench_sleep:
    mov     rdi, gs:[0]
    xor     r9d, r9d
    xor     esi, esi
    mov     rdx, {ROOT}
    mov     r8, rsp
    syscall
    jmp     bench_sleep

// bench_spin(rounds): two instructions per round between the marks, none else.
.balign 64
.global bench_spin
bench_spin:
    BEGIN_MARK
1:  dec     rdi
    jnz     1b
    END_MARK
    ret

// bench_walk(from, lines): reads one word of each 64-byte line.
.balign 64
.global bench_walk
bench_walk:
    BEGIN_MARK
1:  mov     rax, [rdi]
    add     rdi, 64
    dec     rsi
    jnz     1b
    END_MARK
    ret

// bench_copy(to, from, words): `rep movsq`.
.balign 64
.global bench_copy
bench_copy:
    mov     rcx, rdx
    BEGIN_MARK
    rep     movsq
    END_MARK
    ret

// bench_minimum(): the trap alone, to a call that does not exist.
.balign 64
.global bench_trap
bench_trap:
    keep
    mov     r8, -100
    mov     r14, rdi
    BEGIN_MARK
    syscall
    END_MARK
    restore
    ret

.global bench_undefined
bench_undefined:
    keep
    BEGIN_MARK
    ud2
    END_MARK
    restore
    ret
