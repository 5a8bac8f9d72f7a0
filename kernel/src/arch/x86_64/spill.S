// Registers to memory and back, as the kernel's entries and exits share it (entry.S, string.S);
// in front of each file that uses them.
.ifndef baton_spill_macros
.set baton_spill_macros, 1

// MR0 to MR7 (X.2 5.2) to or from the UTCB of the tcb in `thread`; `utcb` is lost.
.macro message_registers way, thread, utcb
    mov     \utcb, [\thread + {UTCB_K}]
    \way    r9, \utcb, 0
    \way    rax, \utcb, 8
    \way    rbx, \utcb, 16
    \way    r10, \utcb, 24
    \way    r12, \utcb, 32
    \way    r13, \utcb, 40
    \way    r14, \utcb, 48
    \way    r15, \utcb, 56
.endm
.macro store register, base, offset
    mov     [\base + \offset], \register
.endm
.macro load register, base, offset
    mov     \register, [\base + \offset]
.endm
.endif
