//! Single instructions that Rust has no words for.

use core::arch::asm;

/// Model-specific registers the kernel writes.
pub mod msr {
    /// Segment selectors of SYSCALL and SYSRET.
    pub const STAR: u32 = 0xC000_0081;
    /// Entry point of SYSCALL.
    pub const LSTAR: u32 = 0xC000_0082;
    /// Flags that SYSCALL clears.
    pub const SFMASK: u32 = 0xC000_0084;
    /// GS base.
    pub const GS_BASE: u32 = 0xC000_0101;
}

/// Invalidates the current space's translations of the page at `address`.
pub fn invlpg(address: u64) {
    // SAFETY: dropping a translation never breaks memory safety.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags)) };
}

/// Reads CR3.
#[must_use]
pub fn read_cr3() -> u64 {
    let value;
    // SAFETY: reading a control register has no effect.
    unsafe { asm!("mov {}, cr3", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Switches the address space.
///
/// # Safety
/// `value` names a root table whose kernel half is the kernel's.
pub unsafe fn write_cr3(value: u64) {
    // SAFETY: the caller vouches for the table.
    unsafe { asm!("mov cr3, {}", in(reg) value, options(nostack, preserves_flags)) };
}

/// Sets (`true`) or clears CR0.TS, which makes vector instructions trap.
pub fn set_task_switched(on: bool) {
    // SAFETY: TS only decides whether vector instructions trap to `vector.rs`.
    unsafe {
        if on {
            asm!("mov {0}, cr0", "or {0}, 8", "mov cr0, {0}", out(reg) _, options(nostack));
        } else {
            asm!("clts", options(nostack, preserves_flags));
        }
    }
}

/// Writes a model-specific register.
///
/// # Safety
/// The value must be one with which the kernel keeps working.
pub unsafe fn wrmsr(register: u32, value: u64) {
    // SAFETY: the caller vouches for the value.
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32,
             options(nostack, preserves_flags));
    }
}

/// Sets GS base, through which a thread finds its UTCB.
pub fn write_gs_base(value: u64, fsgsbase: bool) {
    if fsgsbase {
        // SAFETY: the kernel itself does not use GS; CR4.FSGSBASE is set.
        unsafe { asm!("wrgsbase {}", in(reg) value, options(nostack, preserves_flags)) };
    } else {
        // SAFETY: as above.
        unsafe { wrmsr(msr::GS_BASE, value) };
    }
}

/// Reads the time-stamp counter.
#[must_use]
pub fn rdtsc() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reading the counter has no effect.
    unsafe { asm!("rdtsc", out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Address of the last page fault.
#[must_use]
pub fn fault_address() -> u64 {
    let value;
    // SAFETY: reading a control register has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}
