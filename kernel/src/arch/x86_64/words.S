// The message registers that travel in processor registers (X.2 5.2), to memory and back; in front of
// each file that uses them.
.ifndef baton_words_macros
.set baton_words_macros, 1

// MR0 to MR7 to or from the words at `utcb`.
.macro message_words way, utcb
    \way    r9, \utcb, 8 * 0
    \way    rax, \utcb, 8 * 1
    \way    rbx, \utcb, 8 * 2
    \way    r10, \utcb, 8 * 3
    \way    r12, \utcb, 8 * 4
    \way    r13, \utcb, 8 * 5
    \way    r14, \utcb, 8 * 6
    \way    r15, \utcb, 8 * 7
.endm
.macro store register, base, offset
    mov     [\base + \offset], \register
.endm
.macro load register, base, offset
    mov     \register, [\base + \offset]
.endm
.endif
