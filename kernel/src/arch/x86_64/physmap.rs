//! Physical memory as the kernel sees it, and the privileged instructions that
//! the memory module needs.

/// The first address at which the map of all physical memory can begin, and where it is while
/// the kernel boots (docs/kernel-plan.md).
pub const FIRST: u64 = 0xFFFF_8000_0000_0000;
/// End of the addresses that it can take.
pub const END: u64 = 0xFFFF_FF00_0000_0000;
/// The map's place is a multiple of this, a page of the largest size.
const STEP: u64 = 1 << 30;

/// Where a map of `bytes` begins, chosen by `random`.
#[must_use]
pub fn place(bytes: u64, random: u64) -> u64 {
    let places = (END - FIRST).saturating_sub(bytes) / STEP + 1;
    FIRST + random % places * STEP
}

/// Where the map begins: a constant in the kernel's text, which boot replaces when it has
/// chosen the place (`patch::set_base`). Code that runs before asks `boot::physical`.
#[inline(always)]
#[must_use]
pub fn base() -> u64 {
    let base;
    // SAFETY: loads a constant; the note says where it is.
    unsafe {
        core::arch::asm!(
            "2: movabs {base}, {first}",
            ".pushsection .bases, \"a\"",
            ".quad 2b + 2",
            ".popsection",
            base = out(reg) base,
            first = const FIRST as i64,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    base
}

/// The kernel's address of the physical address `phys`.
#[inline]
#[must_use]
pub fn phys_to_virt(phys: u64) -> *mut u8 {
    (base() + phys) as *mut u8
}

/// The inverse of [`phys_to_virt`].
#[inline]
#[must_use]
pub fn virt_to_phys(pointer: *const u8) -> u64 {
    pointer as u64 - base()
}

/// Instructions that only the kernel may execute.
pub mod hardware {
    use core::arch::asm;

    /// The value of CR3.
    #[inline]
    #[must_use]
    pub fn loaded() -> u64 {
        let value: u64;
        // SAFETY: reading CR3 at privilege level 0 has no side effect.
        unsafe { asm!("mov {}, cr3", out(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    /// Reloads CR3, which drops the current space's translations.
    #[inline]
    pub fn reload() {
        load(loaded() & !(1 << 63));
    }

    /// Loads CR3 with another word for the tables that are loaded (another PCID).
    #[inline]
    pub fn load(value: u64) {
        // SAFETY: the same tables as before.
        unsafe { asm!("mov cr3, {}", in(reg) value, options(nostack, preserves_flags)) };
    }

    /// Drops the translation of `address` in the current space.
    #[inline]
    pub fn forget(address: u64) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_fits_wherever_it_is() {
        let bytes = 16 << 40;
        for random in [0, 1, 12_345, u64::MAX] {
            let base = place(bytes, random);
            assert!(base >= FIRST && base + bytes <= END && base % STEP == 0);
        }
        assert_eq!(place(bytes, 0), FIRST);
        let places = (END - FIRST - bytes) / STEP + 1;
        assert_eq!(place(bytes, places - 1) + bytes, END);
    }
}
