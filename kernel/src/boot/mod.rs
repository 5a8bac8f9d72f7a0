//! From the boot loader's door to the kernel proper.
//!
//! What loaders and firmware say, the boot image, the plan of memory: pure reading of bytes,
//! the same for every machine that has them. The sequence is the architecture's
//! (`arch/x86_64/entry/boot_sequence.rs`). Whatever is wrong with the input ends in one sentence on the log.

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

#[cfg(test)]
mod tests;
