//! Facts about the processor and its machine that the interface depends on.

pub use abi::riscv64::{EXCEPTION_WORDS, USER_FLAGS, USER_FLAGS_MASK};

use crate::boot::memory::Range;

/// The version string of the kernel interface page.
pub const VERSION: &str = concat!("Baton ", env!("CARGO_PKG_VERSION"), " (riscv64)");
/// Physical memory that may be given out repeatedly: none is known of machines in general.
pub const SHARED_WINDOWS: [Range; 0] = [];

/// Status of every user: interrupts on when it runs; and of none: from the kernel (SPP).
const FLAGS_ALWAYS: u64 = 1 << 5;
const FLAGS_NEVER: u64 = 1 << 8;

/// Whether a user may have `flags`; for the checker.
#[must_use]
pub const fn are_users_flags(flags: u64) -> bool {
    flags & FLAGS_ALWAYS != 0 && flags & FLAGS_NEVER == 0
}
