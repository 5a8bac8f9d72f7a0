//! Unpredictable words: the processor's generator where it has one.

use core::arch::asm;
use core::arch::x86_64::__cpuid;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::clock;

/// CPUID.1:ECX bit of RDRAND (Intel SDM 2A, CPUID).
const RDRAND: u32 = 1 << 30;
/// RDRAND may come up empty; so often it is tried (Intel SDM 1, 7.3.17.1).
const TRIES: usize = 10;

static STATE: AtomicU64 = AtomicU64::new(0);

/// A word that nobody can foresee where the processor has a generator; elsewhere one
/// that follows from the times at which words were asked for, which is no secret.
#[must_use]
pub fn word() -> u64 {
    if __cpuid(1).ecx & RDRAND != 0 {
        for _ in 0..TRIES {
            let (value, ok): (u64, u8);
            // SAFETY: the processor has the instruction; it writes a register and flags.
            unsafe {
                asm!("rdrand {}", "setc {}", out(reg) value, out(reg_byte) ok, options(nomem, nostack))
            };
            if ok != 0 {
                return value;
            }
        }
    }
    // SplitMix64 over a counter that every time stamp stirs.
    let step = clock::ticks().wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut mixed = STATE.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}
