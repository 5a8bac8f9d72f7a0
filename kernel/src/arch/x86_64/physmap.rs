//! Physical memory as the kernel sees it, and the privileged instructions that
//! the memory module needs.
//!
//! The kernel runs with interrupts off on one processor: what is `Sync` here is
//! so because nothing else runs.

use crate::mem::State;

/// Where the map of all physical memory begins (docs/kernel-plan.md).
pub const PHYS_MAP: u64 = 0xFFFF_8000_0000_0000;

struct OneCpu(State);

// SAFETY: the kernel runs on one processor with interrupts off; no two
// references are ever used concurrently.
unsafe impl Sync for OneCpu {}

static STATE: OneCpu = OneCpu(State::new());

/// The memory module's only global state.
#[inline]
pub fn memory_state() -> &'static State {
    &STATE.0
}

/// The kernel's address of the physical address `phys`.
#[inline]
#[must_use]
pub fn phys_to_virt(phys: u64) -> *mut u8 {
    (PHYS_MAP + phys) as *mut u8
}

/// The inverse of [`phys_to_virt`].
#[inline]
#[must_use]
pub fn virt_to_phys(pointer: *const u8) -> u64 {
    pointer as u64 - PHYS_MAP
}

/// Instructions that only the kernel may execute.
pub mod hardware {
    use core::arch::asm;

    /// The value of CR3.
    #[inline]
    #[must_use]
    pub fn read_cr3() -> u64 {
        let value: u64;
        // SAFETY: reading CR3 at privilege level 0 has no side effect.
        unsafe { asm!("mov {}, cr3", out(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    /// Reloads CR3, which drops the current space's translations.
    #[inline]
    pub fn reload_cr3() {
        write_cr3(read_cr3() & !(1 << 63));
    }

    /// Loads CR3 with another word for the tables that are loaded (another PCID).
    #[inline]
    pub fn write_cr3(value: u64) {
        // SAFETY: the same tables as before.
        unsafe { asm!("mov cr3, {}", in(reg) value, options(nostack, preserves_flags)) };
    }

    /// Drops the translation of `address` in the current space.
    #[inline]
    pub fn invlpg(address: u64) {
        // SAFETY: dropping a cached translation is always allowed.
        unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags)) };
    }

    /// INVPCID: kind 0 one address of `pcid`, kind 1 all of `pcid`.
    #[inline]
    pub fn invpcid(kind: u64, pcid: u16, address: u64) {
        let descriptor = [u64::from(pcid), address];
        // SAFETY: only called when the CPU has PCIDs and INVPCID; dropping
        // cached translations is always allowed.
        unsafe {
            asm!("invpcid {}, [{}]", in(reg) kind, in(reg) &descriptor,
                 options(nostack, preserves_flags));
        }
    }
}
