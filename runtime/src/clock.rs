//! Time.

use core::arch::asm;

use crate::syscall;

/// The system clock in microseconds.
#[must_use]
pub fn now_us() -> u64 {
    syscall::system_clock()
}

/// The processor's time-stamp counter. Under an emulator that counts
/// instructions it ticks once per instruction.
#[inline(always)]
#[must_use]
pub fn ticks() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: reads a counter. Not marked pure or nomem: it stays where it is written.
    unsafe { asm!("rdtsc", out("rax") low, out("rdx") high, options(nostack, preserves_flags)) };
    high << 32 | low
}
