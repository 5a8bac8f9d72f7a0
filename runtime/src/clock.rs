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

/// Whether the time-stamp counter counts instructions, as it does under an emulator that is
/// told to: then a loop of known length takes exactly that many ticks.
#[must_use]
pub fn counts_instructions() -> bool {
    const ROUNDS: u64 = 1000;
    // An interrupt in the middle adds its own: one undisturbed pair is enough.
    (0..8).any(|_| loop_ticks(3 * ROUNDS).wrapping_sub(loop_ticks(ROUNDS)) == 2 * 2 * ROUNDS)
}

/// Ticks that `rounds` rounds of a loop of two instructions take, and a constant.
fn loop_ticks(rounds: u64) -> u64 {
    let before = ticks();
    // SAFETY: counts a register down.
    unsafe {
        asm!("2: dec {}", "jnz 2b", inout(reg) rounds => _, options(nostack, nomem));
    }
    ticks() - before
}

/// Ticks of the time-stamp counter per second.
#[must_use]
pub fn ticks_per_second() -> u64 {
    // SAFETY: the kernel's user data page is mapped readable in every space; its third word
    // is the frequency (`kernel::arch::clock::ClockPage`).
    unsafe { ((abi::layout::USER_DATA + 16) as *const u64).read_volatile() }
}

/// Nanoseconds per tick, times 2^32.
#[must_use]
pub fn nanoseconds_per_tick() -> u64 {
    ((1_000_000_000_u128 << 32) / u128::from(ticks_per_second().max(1))) as u64
}
