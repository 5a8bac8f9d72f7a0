//! RISC-V, 64 bits (RV64IMAC, supervisor mode, Sv48): what the kernel outside `arch` needs, as
//! far as it is there.
//!
//! There are: page tables and roots, the register frame, what calls find in it, traps told
//! apart, the console by the firmware (SBI), and a boot that says its first sentence. There
//! are not yet: entry from user mode, the tcb array, interrupt controllers, a second
//! processor. What is missing answers with an error or is absent; nothing pretends.

pub mod calls;
pub mod frame;
pub mod machine;
pub mod mem;
pub mod paging;
pub mod trap;

#[cfg(target_os = "none")]
pub mod boot;
#[cfg(target_os = "none")]
pub mod check;
#[cfg(target_os = "none")]
pub mod csr;
#[cfg(target_os = "none")]
pub mod elsewhere;
#[cfg(target_os = "none")]
pub mod entry;
#[cfg(target_os = "none")]
pub mod native;
#[cfg(target_os = "none")]
pub mod percpu;
#[cfg(target_os = "none")]
pub mod physmap;
#[cfg(target_os = "none")]
pub mod sbi;
#[cfg(target_os = "none")]
pub mod thread;
