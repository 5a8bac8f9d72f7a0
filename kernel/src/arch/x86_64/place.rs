//! Where the kernel's image is: at boot it moves to a random place, before anything else runs.
//!
//! The image is linked at [`KERNEL_BASE`]. The build puts the places of all addresses in it that
//! depend on that into a list (`boot_places`); [`go`] adds the distance to each, on `boot.S`'s
//! tables, and booting begins anew where the image is now. It stays where it was loaded, and
//! goes up by whole pages only: what is a displacement between two of its parts stays right.
//!
//! The place is a secret of the kernel, as that of the map of physical memory is: reports name
//! [`linked`] addresses, which tools know; only a panic tells the distance.

use super::boot::{self, KERNEL_BASE};
#[cfg(any(test, target_os = "none"))]
use super::tables::IMAGE_END;

#[cfg(any(test, target_os = "none"))]
const PAGE: u64 = 4096;

/// By how much the image lies above where it was linked.
#[must_use]
pub fn distance() -> u64 {
    boot::base() - KERNEL_BASE
}

/// Tells the distance, in a panic's report.
#[cfg(target_os = "none")]
pub fn tell() {
    let distance = distance();
    if distance != 0 {
        crate::kprintln!(
            "baton: the kernel's image lies {distance:#x} above where it was linked; what it \
             names of its own text is as linked"
        );
    }
}

/// `address` as the linker knows it, if it is one of the image's.
#[must_use]
pub fn linked(address: u64) -> u64 {
    let [start, end] = boot::image_bounds();
    if (start..end).contains(&address) { address - distance() } else { address }
}

/// The distance that `random` chooses, for an image that is linked up to `end`: whole pages, and
/// not none.
#[cfg(any(test, target_os = "none"))]
fn choose(end: u64, random: u64) -> u64 {
    let places = (IMAGE_END.saturating_sub(end) / PAGE).max(1);
    (1 + random % places) * PAGE
}

/// Whether the image has not moved, and can: the build has made its list.
#[cfg(target_os = "none")]
#[must_use]
pub fn can_move() -> bool {
    let list = boot::physical(&raw const symbols::boot_places as u64) as *const u16;
    // SAFETY: the list is part of the image, below 4 GiB, and not empty.
    distance() == 0 && unsafe { list.read_volatile() != 0 }
}

#[cfg(target_os = "none")]
mod symbols {
    //! In `boot.S`.
    unsafe extern "C" {
        pub static boot_places: u16;
        pub static boot_moved_directory: u8;
        pub static boot_moved_tables: u8;
        pub fn boot_move();
    }
}

/// Moves the image to the place that `random` chooses, and boots from the beginning there.
///
/// # Safety
/// On `boot.S`'s tables, before anything has written an address of the image's to memory; if
/// [`can_move`].
#[cfg(target_os = "none")]
pub unsafe fn go(random: u64, protocol: u32, information: u32) -> ! {
    /// Present, writable.
    const TABLE: u64 = 3;
    let [start, end] = boot::image_bounds();
    let distance = choose(end, random);
    let directory = &raw const symbols::boot_moved_directory as u64;
    let tables = &raw const symbols::boot_moved_tables as u64;
    let set = |table: u64, index: u64, entry: u64| {
        let place = boot::physical(table + index % 512 * 8) as *mut u64;
        // SAFETY: the tables are `boot.S`'s own, and nobody uses them yet.
        unsafe { place.write(entry) };
    };
    let first = (start + distance) >> 21;
    for page in (start..end).step_by(PAGE as usize) {
        let to = page + distance;
        // The linker script sees to it that there are tables enough.
        let table = tables + ((to >> 21) - first) * PAGE;
        set(directory, to >> 21, table | TABLE);
        set(table, to >> 12, (page - KERNEL_BASE) | TABLE);
    }
    // SAFETY: the caller's promise; the code is at its physical address and needs no stack.
    unsafe {
        core::arch::asm!(
            "jmp {code}",
            code = in(reg) symbols::boot_move as *const () as u64,
            in("edi") protocol,
            in("esi") information,
            in("edx") distance as u32,
            options(noreturn),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_moves_by_pages_and_stays_below_what_comes_next() {
        let end = KERNEL_BASE + 0x26_5000;
        let places = (IMAGE_END - end) / PAGE;
        assert!(places > 100_000);
        for random in [0, 1, places - 1, places, u64::MAX] {
            let distance = choose(end, random);
            assert!(distance > 0 && distance.is_multiple_of(PAGE) && end + distance <= IMAGE_END);
        }
        assert_eq!(choose(end, places - 1) + end, IMAGE_END);
    }
}
