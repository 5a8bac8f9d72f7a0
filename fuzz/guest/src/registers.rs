//! A bystander's registers: filled with patterns, and looked at again and again.

use core::arch::global_asm;

global_asm!(include_str!("registers.S"));

/// Words of a table of patterns: four for each of 16 vector registers, one for each MMX
/// register, MXCSR, x87 control word.
pub const PATTERNS: usize = 74;
/// Rounding modes and masks that nobody else uses.
const MXCSR: u64 = 0x7F80;
const CONTROL_WORD: u64 = 0x0F7F;

unsafe extern "C" {
    fn fuzz_canary(rounds: u64, table: *const u64) -> u64;
}

/// What did not keep its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Changed {
    /// A vector register.
    Vector,
    /// A floating-point control register.
    Control,
    /// A general register.
    General,
}

/// Fills all registers with patterns from `table`, whose last two words are overwritten, and
/// compares them `rounds` times.
pub fn kept(rounds: u64, table: &mut [u64; PATTERNS]) -> Result<(), Changed> {
    table[PATTERNS - 2] = MXCSR;
    table[PATTERNS - 1] = CONTROL_WORD;
    // SAFETY: the function keeps to the C convention and reads the table only.
    match unsafe { fuzz_canary(rounds, table.as_ptr()) } {
        0 => Ok(()),
        1 => Err(Changed::Vector),
        2 => Err(Changed::Control),
        _ => Err(Changed::General),
    }
}
