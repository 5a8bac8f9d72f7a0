//! x86-64.

pub mod boot;
pub mod cpu;
pub mod features;
pub mod frame;
pub mod inherited;
pub mod io_instruction;
pub mod iobitmap;
pub mod latch;
pub mod machine_error;
pub mod mitigations;
pub mod paging;
pub mod patch;
pub mod pcid;
pub mod physmap;
pub mod pic;
pub mod random;
pub mod serial;
pub mod stubs;
pub mod tables;
pub mod timer;
pub mod tlb;
pub mod vectors;

#[cfg(target_os = "none")]
pub mod apic;
#[cfg(target_os = "none")]
pub mod asm;
#[cfg(target_os = "none")]
pub mod boot_kernel;
#[cfg(target_os = "none")]
pub mod check;
#[cfg(target_os = "none")]
pub mod descriptors;
#[cfg(target_os = "none")]
pub mod io_apic;
#[cfg(target_os = "none")]
pub mod kernel_half;
#[cfg(target_os = "none")]
pub mod kernel_tables;
#[cfg(target_os = "none")]
pub mod lines;
#[cfg(target_os = "none")]
pub mod machine_check;
#[cfg(target_os = "none")]
pub mod nmi;
#[cfg(target_os = "none")]
pub mod percpu;
#[cfg(target_os = "none")]
pub mod processors;
#[cfg(target_os = "none")]
pub mod replica;
#[cfg(target_os = "none")]
pub mod special;
#[cfg(target_os = "none")]
pub mod switch;
#[cfg(target_os = "none")]
pub mod tcbs;
#[cfg(target_os = "none")]
pub mod tick;
#[cfg(target_os = "none")]
pub mod trap;
#[cfg(target_os = "none")]
pub mod vector;

pub use cpu::{exit, ticks};
pub use serial::write as console_write;
