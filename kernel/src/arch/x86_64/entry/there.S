// Exceptions and interrupts of another processor than the first (docs/decisions/0060), which
// has a table of vectors of its own: whoever is interrupted in user mode is a visitor, and its kernel
// is the first processor's. Behind entry.S, whose macros these are.

.section .text, "ax"

.balign 16
baton_there:
patch_site {PATCH_SMAP}, clac
    push_registers rdi
    cld
    mov     rdi, rsp
    test    byte ptr [rsp + {FRAME_CS}], {PRIVILEGE}
    jnz     1f
    call    {KERNEL_TRAP}                       // (frame) -> next tcb, or 0: go on where it was
    test    rax, rax
    jnz     baton_resume
    jmp     baton_pop_frame
1:  call    {MET}                               // (frame); back, if nobody wants anything
    jmp     baton_pop_frame

// Tables change that the visitor uses (docs/decisions/0108).
.balign 16
baton_stop:
patch_site {PATCH_SMAP}, clac
    push_registers rdi
    cld
    mov     rdi, rsp
    call    {STAND_STILL}                       // (frame); not back, if it is called meanwhile
    jmp     baton_pop_frame

.altmacro
.balign 16
.global baton_vectors_there
baton_vectors_there:
.set n, 0
.rept {VECTORS}
    .if n == {STOP}
    VECTOR_STUB %n, baton_stop
    .else
    VECTOR_STUB %n, baton_there
    .endif
    .set n, n + 1
.endr
.noaltmacro
