//! The processor, chosen here and nowhere else.
//!
//! Page tables have the processor's own format on the host too; only access to
//! physical memory and to privileged registers is replaced there.

#[cfg(target_arch = "x86_64")]
pub mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::{iobitmap, paging, pcid, tlb};

#[cfg(not(target_os = "none"))]
pub mod host;
#[cfg(not(target_os = "none"))]
pub use host::memory::{hardware, memory_state, phys_to_virt, virt_to_phys};
#[cfg(target_os = "none")]
pub use x86_64::physmap::{hardware, memory_state, phys_to_virt, virt_to_phys};
