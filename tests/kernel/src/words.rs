//! Words that victims are made of: registers, pieces of code, tags.

use abi::MsgTag;
use abi::protocol::{self, exception as reg};

/// The registers of an exception message (X.2 6.4).
pub type Registers = [u64; protocol::EXCEPTION_WORDS];

/// Vector of `int3` at user level: its gate is closed (X.2 6.4).
pub const GENERAL_PROTECTION: u64 = 13;

/// Whether `error` is that of a closed gate of vector `n`. It is 8 n + 2 (Intel
/// SDM 3A, 6.13); QEMU before 8.0 says 16 n + 2 in 64-bit mode.
#[must_use]
pub const fn is_gate_error(error: u64, n: u64) -> bool {
    error == 8 * n + 2 || error == 16 * n + 2
}

/// Registers with a usable stack pointer, everything else 0.
#[must_use]
pub fn registers() -> Registers {
    [0; protocol::EXCEPTION_WORDS]
}

/// `mov rax, [rbx]`.
pub const LOAD: &[u8] = &[0x48, 0x8B, 0x03];
/// `mov [rbx], rax`.
pub const STORE: &[u8] = &[0x48, 0x89, 0x03];
/// `jmp` to itself.
pub const SPIN: &[u8] = &[0xEB, 0xFE];
/// Increments the word at RBX for ever.
pub const COUNT: &[u8] = &[0x48, 0xFF, 0x03, 0xEB, 0xFB];

/// Where MR0..MR7 are in an exception message.
pub const MRS: [usize; 8] =
    [reg::R9, reg::RAX, reg::RBX, reg::R10, reg::R12, reg::R13, reg::R14, reg::R15];

/// Registers with RBX = `address`, RAX = `value`.
#[must_use]
pub fn at(address: u64, value: u64) -> Registers {
    let mut regs = registers();
    (regs[reg::RBX], regs[reg::RAX]) = (address, value);
    regs
}

/// The tag of a message with two words of typed items.
#[must_use]
pub const fn item_tag() -> u64 {
    MsgTag::new(0, 0, 2).0
}
