//! The names that the kernel outside `arch` knows (`arch/mod.rs`), on the bare machine.

pub use super::asm::{copy_bytes, fill_page};
pub use super::calls::{
    OwnRegisters, SYSTEM_CALL_BYTES, all_registers, set_all_registers, system_call_words,
};
pub use super::cpu::{EXIT_FAILURE, exit, ticks};
pub use super::frame::{Frame, exception_words, set_exception_words};
pub use super::kernel_tables;
pub use super::lines::{exists as line_exists, mask, open as open_line, unmask};
pub use super::local_paths::{is_for_work, returns_at_once};
pub use super::nmi::{have_come as nmis_have_come, say_a_line as say_an_nmi};
pub use super::percpu::{Cpu, cpu, interrupt_noted, interrupt_pending, note_entry};
pub use super::physmap::{hardware, phys_to_virt, virt_to_phys};
pub use super::place::tell as tell_place;
pub use super::serial::write as console_write;
pub use super::tick_source::{interrupt_at, tick_again};
