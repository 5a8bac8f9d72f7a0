//! A random word at boot, for the places of things.
//!
//! From the processor's generator where there is one; the time stamp counter is mixed in, and
//! is all there is without: some twenty bits that an attacker on the machine can guess at.

use core::arch::asm;

use super::cpu::{cpuid, ticks};

/// Attempts before a generator that has nothing to give is given up (Intel SDM 1, 7.3.17.1).
const PATIENCE: u32 = 32;

/// A word that nobody outside can foretell.
#[must_use]
pub fn word() -> u64 {
    let has_seed = cpuid(7, 0).ebx >> 18 & 1 != 0;
    let has_random = cpuid(1, 0).ecx >> 30 & 1 != 0;
    let mut sum = mix(ticks());
    if has_random {
        sum = mix(sum ^ attempts(random));
    }
    if has_seed {
        sum = mix(sum ^ attempts(seed));
    }
    mix(sum ^ ticks())
}

fn attempts(draw: impl Fn() -> Option<u64>) -> u64 {
    (0..PATIENCE).find_map(|_| draw()).unwrap_or(0)
}

fn random() -> Option<u64> {
    let (value, given): (u64, u8);
    // SAFETY: only called where CPUID says that the instruction exists.
    unsafe {
        asm!("rdrand {0}", "setc {1}", out(reg) value, out(reg_byte) given, options(nomem, nostack))
    };
    (given != 0).then_some(value)
}

fn seed() -> Option<u64> {
    let (value, given): (u64, u8);
    // SAFETY: only called where CPUID says that the instruction exists.
    unsafe {
        asm!("rdseed {0}", "setc {1}", out(reg) value, out(reg_byte) given, options(nomem, nostack))
    };
    (given != 0).then_some(value)
}

/// Spreads every bit over all (the finaliser of SplitMix64; Steele, Lea, Flood 2014).
const fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ word >> 31
}
