//! Physical memory as the kernel sees it, and the privileged instructions that the memory
//! module needs.

/// Where the map of all physical memory begins: the first address of the kernel's half.
pub const BASE: u64 = 0xFFFF_8000_0000_0000;

/// The kernel's address of the physical address `phys`.
#[inline]
#[must_use]
pub fn phys_to_virt(phys: u64) -> *mut u8 {
    (BASE + phys) as *mut u8
}

/// The inverse of [`phys_to_virt`].
#[inline]
#[must_use]
pub fn virt_to_phys(pointer: *const u8) -> u64 {
    pointer as u64 - BASE
}

/// Instructions that only the kernel may execute.
pub mod hardware {
    use core::arch::asm;

    /// The word of the tables that are loaded (satp).
    #[inline]
    #[must_use]
    pub fn loaded() -> u64 {
        let value;
        // SAFETY: reading satp has no effect.
        unsafe { asm!("csrr {}, satp", out(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    /// Drops all translations.
    #[inline]
    pub fn reload() {
        // SAFETY: dropping cached translations is always allowed.
        unsafe { asm!("sfence.vma", options(nostack, preserves_flags)) };
    }

    /// Drops the translation of `address`.
    #[inline]
    pub fn forget(address: u64) {
        // SAFETY: dropping a cached translation is always allowed.
        unsafe { asm!("sfence.vma {}", in(reg) address, options(nostack, preserves_flags)) };
    }
}
