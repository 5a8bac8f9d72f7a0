//! Facts about the processor and its machine that the interface depends on.

pub use abi::x86_64::{EXCEPTION_WORDS, USER_FLAGS, USER_FLAGS_MASK};

use crate::boot::memory::Range;

/// The version string of the kernel interface page.
pub const VERSION: &str = concat!("Baton ", env!("CARGO_PKG_VERSION"), " (x86-64)");
/// Physical memory that may be given out repeatedly: the VGA window and the ROMs behind it.
pub const SHARED_WINDOWS: [Range; 2] =
    [Range::new(0xA_0000, 0xC_0000), Range::new(0xC_0000, 0xF_0000)];

/// Flags that every user has: interrupts on; and that none has: IOPL, virtual-8086 mode.
const FLAGS_ALWAYS: u64 = 0x200;
const FLAGS_NEVER: u64 = 0x2_3000;

/// Whether a user may have `flags`; for the checker.
#[must_use]
pub const fn are_users_flags(flags: u64) -> bool {
    flags & FLAGS_ALWAYS != 0 && flags & FLAGS_NEVER == 0
}
