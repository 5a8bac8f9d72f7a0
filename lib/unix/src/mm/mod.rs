//! Address spaces: areas, pages, copy on write, faults, the calls on memory, futexes.
//!
//! | file | owns |
//! |---|---|
//! | `area` | ranges with one origin and one set of rights |
//! | `pages` | which pages are there, in which frames |
//! | `space` | an address space: both, its birth and end |
//! | `fork` | its copy |
//! | `fault` | making a page present; answering page faults |
//! | `oom` | whose process dies when memory is used up |
//! | `map`, `protect`, `remap`, `rearrange`, `advise`, `brk` | the calls on memory |
//! | `barrier` | barriers on behalf of others |
//! | `attach` | System V segments: attached, found, detached |
//! | `policy` | on which node memory is to be |
//! | `other` | memory of other processes |
//! | `sizes` | how large a space is, what is there, which files it may write |
//! | `shared` | what spaces share |
//! | `futex`, `futex_operation`, `robust` | waiting on words of memory; changing one that wakes; what ending threads leave |
//! | `futex_held`, `futex_moved` | words that say who holds them; moving there who waits elsewhere |
//!
//! The machine's mappings are a cache of the page map: what the page map lacks is never
//! mapped; what it has may be mapped, if the page says so.

use linux_raw_sys::general::{__NR_process_vm_readv, __NR_process_vm_writev};

use crate::call::{Entry, full};

pub mod advise;
pub mod area;
pub(crate) mod attach;
mod barrier;
pub mod brk;
pub mod fault;
mod fork;
pub mod futex;
pub mod futex_held;
mod futex_moved;
mod futex_operation;
pub mod futex_vector;
pub mod map;
mod oom;
mod other;
pub mod pages;
pub mod policy;
mod populate;
pub mod protect;
mod rearrange;
pub mod remap;
mod robust;
mod row;
pub mod shared;
mod sizes;
pub mod space;

pub use fault::page_fault;
pub use shared::Shared;
pub use sizes::Sizes;
pub use space::AddressSpace;

/// Lowest address a program can have.
pub const USER_START: u64 = 0x1000;
/// End of the addresses a program can have; above is the machine's.
pub const USER_END: u64 = 0x7fff_f000_0000;
/// Bytes of a page, as addresses count.
pub(crate) const PAGE: u64 = crate::memory::PAGE as u64;

/// `address` rounded down to a page.
#[must_use]
pub const fn page_of(address: u64) -> u64 {
    address & !(PAGE - 1)
}

/// `length` rounded up to pages; `None` when that is too much.
#[must_use]
pub const fn page_up(length: u64) -> Option<u64> {
    match length.checked_add(PAGE - 1) {
        Some(length) => Some(page_of(length)),
        None => None,
    }
}

/// The end of the range of `length` bytes from `start`, rounded up to pages. `None`: `start` is
/// no page's, nothing is in the range, or not all of it can belong to a program.
#[must_use]
pub const fn range_end(start: u64, length: u64) -> Option<u64> {
    if !start.is_multiple_of(PAGE) || start > USER_END || length > USER_END - start || length == 0 {
        return None;
    }
    match page_up(length) {
        Some(length) => Some(start + length),
        None => None,
    }
}

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[
    map::MMAP,
    map::MUNMAP,
    protect::MPROTECT,
    remap::MREMAP,
    rearrange::REMAP_FILE_PAGES,
    brk::BRK,
    advise::MADVISE,
    advise::MSYNC,
    advise::MINCORE,
    advise::MLOCK,
    advise::MLOCK2,
    advise::MUNLOCK,
    advise::MLOCKALL,
    advise::MUNLOCKALL,
    barrier::MEMBARRIER,
    policy::MBIND,
    policy::SET_MEMPOLICY,
    policy::GET_MEMPOLICY,
    policy::MIGRATE_PAGES,
    policy::MOVE_PAGES,
    policy::HOME_NODE,
    futex::FUTEX,
    full(__NR_process_vm_readv, "process_vm_readv", other::process_vm_readv),
    full(__NR_process_vm_writev, "process_vm_writev", other::process_vm_writev),
];
