// From the firmware (SBI) to Rust: supervisor mode, no translation, interrupts off; a0 is the
// number of this processor, a1 the address of the device tree. One processor comes here.

.section .text.boot, "ax"
.globl _start
_start:
    csrw    sie, zero
    la      sp, baton_boot_stack_end
    la      t0, baton_trap
    csrw    stvec, t0
    la      t0, baton_bss_start
    la      t1, baton_bss_end
1:  bgeu    t0, t1, 2f
    sd      zero, 0(t0)
    addi    t0, t0, 8
    j       1b
2:  tail    boot_main

// Nothing of the kernel's may trap yet: whatever does ends the machine with a sentence.
.balign 4
baton_trap:
    la      sp, baton_boot_stack_end
    csrr    a0, scause
    csrr    a1, sepc
    csrr    a2, stval
    tail    boot_trap

.section .bss.stack, "aw", @nobits
.balign 16
    .skip   {STACK_BYTES}
baton_boot_stack_end:
