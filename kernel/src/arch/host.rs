//! The host in the processor's place, for tests: the same names, without privilege.

pub mod console;
pub mod entry;
pub mod memory;
pub mod threads;
pub mod visits;

pub use super::processor::calls::{
    OwnRegisters, SYSTEM_CALL_BYTES, all_registers, set_all_registers, system_call_words,
};
pub use super::processor::frame::{Frame, exception_words, set_exception_words};
pub use console::{EXIT_FAILURE, console_write, exit, interrupt_at, tick_again, ticks};
pub use memory::{hardware, phys_to_virt, virt_to_phys};
pub use threads::{
    Cpu, LINKAGE_BASE, STACK_BYTES, STRETCH, TcbRef, VECTOR_BYTES, abandon_vector, clear_vector,
    close_fast_path, copy_bytes, cpu, current, declare_vector, fill_page, frames_of, has_stretch,
    has_vector_gate, install, interrupt_noted, interrupt_pending, is_fast_path_closed, is_for_work,
    keeps_vector, kernel_tables, last_version, line_exists, lookup, lookup_number, mask,
    note_entry, open_line, remove, returns_at_once, sanitise_vector, set_current, set_last_version,
    unmask, update_special, vector_state,
};

/// The host's processor is not the kernel's to check.
pub fn check_machine(_note: &mut dyn FnMut(core::fmt::Arguments<'_>)) {}

/// The host has none.
pub fn report_nmis(_note: fn(core::fmt::Arguments<'_>)) {}
