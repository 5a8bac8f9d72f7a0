//! The processor, chosen here and nowhere else.
//!
//! Every architecture exports the same names; the ones that a test on the host
//! must not execute are replaced by those of `host`.

#[cfg(target_arch = "x86_64")]
pub mod x86_64;

#[cfg(target_os = "none")]
pub use x86_64::{console_write, exit, ticks};

#[cfg(not(target_os = "none"))]
mod host;
#[cfg(not(target_os = "none"))]
pub use host::{console_write, exit, ticks};
