//! x86-64.

pub mod iobitmap;
pub mod paging;
pub mod pcid;
#[cfg(target_os = "none")]
pub mod physmap;
pub mod tlb;
