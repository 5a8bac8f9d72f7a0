//! Single instructions of the processor, as functions.

use core::arch::asm;

/// The counter that every processor of the machine shares (CSR time).
#[must_use]
pub fn ticks() -> u64 {
    let value;
    // SAFETY: reads a counter.
    unsafe { asm!("rdtime {}", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Halts for good.
pub fn stop() -> ! {
    loop {
        // SAFETY: interrupts stay off; the processor waits.
        unsafe { asm!("csrci sstatus, 2", "wfi", options(nomem, nostack)) };
    }
}

/// Copies `len` bytes upwards, eight at a time, then the rest.
///
/// # Safety
/// `len` bytes are readable at `from` and writable at `to`.
pub unsafe fn copy_bytes(to: *mut u8, from: *const u8, len: usize) {
    let words = len / 8;
    for index in 0..words {
        // SAFETY: inside both ranges, for which the caller vouches; they need no alignment.
        unsafe {
            let word = from.cast::<u64>().add(index).read_unaligned();
            to.cast::<u64>().add(index).write_unaligned(word);
        }
    }
    for index in words * 8..len {
        // SAFETY: as above.
        unsafe { to.add(index).write(from.add(index).read()) };
    }
}

/// Fills a page with a word.
///
/// # Safety
/// The page at `page` is the caller's.
pub unsafe fn fill_page(page: *mut u8, word: u64) {
    // SAFETY: the caller vouches for the page.
    unsafe { page.cast::<[u64; 512]>().write([word; 512]) };
}
