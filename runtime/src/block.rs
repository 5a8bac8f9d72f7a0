//! Runs of words where no Rust reference leads: message registers in memory, A-stacks. Somebody else may write them at
//! any time, so each word is read once and none is looked at where it lies.

use core::arch::asm;

use service::{partial, take_partial};

/// Writes `bytes` to the words from `to` on, the last one filled up with zeros.
///
/// # Safety
/// There are as many words as that takes, and no reference leads to any of them.
#[inline(always)]
pub unsafe fn write(to: *mut u64, bytes: &[u8]) {
    let last: *mut u64;
    // SAFETY: reads the whole words of a slice and writes as many, as the caller promises. The direction flag is
    // clear wherever Rust code runs.
    unsafe {
        asm!(
            "rep movsq",
            inout("rcx") bytes.len() / 8 => _, inout("rsi") bytes.as_ptr() => _, inout("rdi") to => last,
            options(nostack, preserves_flags),
        );
    }
    let (_, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        // SAFETY: the word behind the whole ones, which the rest of the bytes takes.
        unsafe { last.write_volatile(partial(rest)) }
    }
}

/// Fills `room` with the bytes of the words from `from` on.
///
/// # Safety
/// There are as many words as that takes; what is in them does not matter.
#[inline(always)]
pub unsafe fn read(from: *const u64, room: &mut [u8]) {
    let last: *const u64;
    // SAFETY: reads words as the caller promises and writes whole ones of a slice; the direction flag as in `write`.
    unsafe {
        asm!(
            "rep movsq",
            inout("rcx") room.len() / 8 => _, inout("rdi") room.as_mut_ptr() => _, inout("rsi") from => last,
            options(nostack, preserves_flags),
        );
    }
    let (_, rest) = room.as_chunks_mut::<8>();
    if !rest.is_empty() {
        // SAFETY: the word behind the whole ones, of which the rest of the room takes some bytes.
        let word = unsafe { last.read_volatile() };
        take_partial(word, rest);
    }
}
