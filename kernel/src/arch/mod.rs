//! The processor, chosen here and nowhere else.
//!
//! Every architecture exports the same names. Page tables have the processor's
//! own format on the host too; access to physical memory, to privileged registers
//! and to threads is replaced there.

#[cfg(target_arch = "x86_64")]
pub mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::{iobitmap, paging, root, tlb};

#[cfg(target_os = "none")]
mod native {
    pub use super::x86_64::asm::{copy_bytes, fill_page, leave};
    pub use super::x86_64::check::check as check_machine;
    pub use super::x86_64::frame::{Frame, exception_words, set_exception_words};
    pub use super::x86_64::lines::{exists as line_exists, mask, open as open_line, unmask};
    pub use super::x86_64::local_paths::returns_at_once;
    pub use super::x86_64::nmi::report as report_nmis;
    pub use super::x86_64::percpu::{
        Cpu, cpu, current, interrupt_noted, interrupt_pending, note_entry, set_current,
    };
    pub use super::x86_64::physmap::{hardware, memory_state, phys_to_virt, virt_to_phys};
    pub use super::x86_64::special::{close as close_fast_path, update as update_special};
    pub use super::x86_64::tcbs::VECTOR_AREA as VECTOR_BYTES;
    pub use super::x86_64::tcbs::{
        STACK_BYTES, TcbRef, frames_of, install, last_version, lookup, lookup_number, remove,
        set_last_version,
    };
    pub use super::x86_64::vector::{
        clear as clear_vector, declare as declare_vector, sanitise as sanitise_vector,
        saved as vector_state,
    };
    pub use super::x86_64::{console_write, descriptors, exit, kernel_tables, ticks};
}
#[cfg(target_os = "none")]
pub use native::*;

#[cfg(not(target_os = "none"))]
pub mod host;
#[cfg(not(target_os = "none"))]
pub use host::*;
