//! The host in the processor's place, for tests: the same names, without privilege.

pub mod check;
pub mod console;
pub mod cpu;
pub mod elsewhere;
pub mod entry;
pub mod memory;
pub mod thread;

pub use super::processor::calls::{
    OwnRegisters, SYSTEM_CALL_BYTES, all_registers, set_all_registers, system_call_words,
};
pub use super::processor::frame::{Frame, exception_words, set_exception_words};
pub use console::{EXIT_FAILURE, console_write, exit, interrupt_at, tick_again, ticks};
pub use cpu::{
    Cpu, copy_bytes, cpu, fill_page, interrupt_noted, interrupt_pending, is_for_work,
    kernel_tables, line_exists, mask, note_entry, open_line, returns_at_once, unmask,
};
pub use memory::{hardware, phys_to_virt, virt_to_phys};

/// The host has none.
pub fn nmis_have_come() -> bool {
    false
}

/// There is none to say.
pub fn say_an_nmi(_note: fn(core::fmt::Arguments<'_>)) -> bool {
    false
}
