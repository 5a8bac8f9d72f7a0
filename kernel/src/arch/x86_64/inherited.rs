//! What firmware and boot loaders can leave in a processor and the kernel never uses:
//! switched off once, at boot, so that nobody meets it later.
//!
//! Left as they are, since nobody but the firmware knows what the machine needs: the memory
//! type range registers, and the page attribute table (the kernel uses entries 0, write-back, and
//! 3, uncached, which no loader changes).

use core::arch::asm;
#[cfg(target_os = "none")]
use core::fmt::Arguments;

use super::cpu::{cpuid, write_msr};

/// Debug registers: no breakpoint; the reserved bits that read as ones.
const DR7: u64 = 1 << 10;
const DR6: u64 = 0xFFFF_0FF0;

/// Registers that are zero from now on, each with the bit of CPUID that says it exists:
/// leaf, subleaf, register (0 EAX, 3 EDX), bit. Leaf 0: all processors with 64-bit mode.
const ZEROES: [(u32, (u32, u32, usize, u32)); 8] = [
    (0x1D9, (0, 0, 0, 0)), // DEBUGCTL: no branch records, no steps from branch to branch
    (0x174, (1, 0, 3, 11)), // SYSENTER_CS: SYSENTER faults
    (0x175, (1, 0, 3, 11)), // SYSENTER_ESP
    (0x176, (1, 0, 3, 11)), // SYSENTER_EIP
    (0xC000_0083, (0, 0, 0, 0)), // CSTAR: there is no 32-bit code to call from
    (0xC000_0102, (0, 0, 0, 0)), // KERNEL_GS_BASE: nobody swaps
    (0xC000_0103, (0x8000_0001, 0, 3, 27)), // TSC_AUX, which users read by RDTSCP
    (0xDA0, (0xD, 1, 0, 3)), // XSS: no supervisor state
];

fn exists((leaf, subleaf, register, bit): (u32, u32, usize, u32)) -> bool {
    let words = cpuid(leaf, subleaf);
    leaf == 0 || [words.eax, words.ebx, words.ecx, words.edx][register] >> bit & 1 != 0
}

/// Clears them.
///
/// # Safety
/// At boot, before anybody could have set them for a purpose.
pub unsafe fn clear() {
    for (register, _) in ZEROES.into_iter().filter(|(_, presence)| exists(*presence)) {
        // SAFETY: the processor has the register, and zero switches off what it is for.
        unsafe { write_msr(register, 0) };
    }
    // SAFETY: no breakpoint is set and none fires.
    unsafe {
        asm!("mov dr7, {}", in(reg) DR7, options(nostack, preserves_flags));
        asm!("mov dr6, {}", in(reg) DR6, options(nostack, preserves_flags));
        asm!("mov dr0, {0}", "mov dr1, {0}", "mov dr2, {0}", "mov dr3, {0}", in(reg) 0_u64,
             options(nostack, preserves_flags));
    }
}

/// Says to `note` which of them is not as it was left.
#[cfg(target_os = "none")]
pub fn check(note: &mut dyn FnMut(Arguments<'_>)) {
    for (register, _) in ZEROES.into_iter().filter(|(_, presence)| exists(*presence)) {
        // SAFETY: the processor has the register.
        let is = unsafe { super::cpu::read_msr(register) };
        if is != 0 {
            note(format_args!("the register {register:#x} is {is:#x} and not zero"));
        }
    }
    let (dr7, table): (u64, u16);
    // SAFETY: reading them has no effect.
    unsafe {
        asm!("mov {}, dr7", out(reg) dr7, options(nomem, nostack, preserves_flags));
        asm!("sldt {0:x}", out(reg) table, options(nomem, nostack, preserves_flags));
    }
    if dr7 != DR7 {
        note(format_args!("DR7 is {dr7:#x}: somebody has set breakpoints"));
    }
    if table != 0 {
        note(format_args!("there is a local descriptor table, {table:#x}"));
    }
}
