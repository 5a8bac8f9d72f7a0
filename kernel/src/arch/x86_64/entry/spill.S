// Registers to memory and back, as the kernel's entries and exits share it (entry.S, string.S);
// in front of each file that uses them.
.ifndef baton_spill_macros
.set baton_spill_macros, 1

// MR0 to MR7 to or from the UTCB of the tcb in `thread`; `utcb` is lost.
.macro message_registers way, thread, utcb
    mov     \utcb, [\thread + {UTCB_K}]
    message_words \way, \utcb
.endm
// Registers of a register frame (frame.rs) at `base`: those that Rust code keeps less RBX and RBP,
// these two, and those of a call's parameters that are no result.
.macro frame_upper way, base
    \way    r15, \base, {R15}
    \way    r14, \base, {R14}
    \way    r13, \base, {R13}
    \way    r12, \base, {R12}
.endm
.macro frame_kept way, base
    \way    rbp, \base, {RBP}
    \way    rbx, \base, {RBX}
.endm
.macro frame_parameters way, base
    \way    r10, \base, {R10}
    \way    r9, \base, {R9}
    \way    r8, \base, {R8}
    \way    rdx, \base, {RDX}
    \way    rsi, \base, {RSI}
.endm
// Where the program goes on; RSP is its own now.
.macro frame_exit base
    mov     rcx, [\base + {FRAME_IP}]
    mov     r11, [\base + {FRAME_FLAGS}]
    mov     rsp, [\base + {FRAME_SP}]
.endm
.endif
