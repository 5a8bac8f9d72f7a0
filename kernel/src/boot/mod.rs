//! From the boot loader's door to the kernel proper.
//!
//! [`start`] runs once, on the boot stack, with interrupts off: it reads what the
//! loader left, checks the boot image, plans the memory, loads the servers, builds
//! the kernel's page tables, the KIP and the bootinfo, and hands all of it over.
//! Whatever is wrong with the input ends in one sentence on the log.

pub mod acpi;
pub mod bootinfo;
pub mod image;
pub mod info;
pub mod madt;
pub mod memory;
pub mod multiboot2;
pub mod plan;
pub mod pvh;
pub mod refusal;

#[cfg(target_os = "none")]
mod start;
#[cfg(target_os = "none")]
pub use start::{Handover, start};

#[cfg(test)]
mod tests;
