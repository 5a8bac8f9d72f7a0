//! The names that the kernel outside `arch` knows (`arch/mod.rs`), on the bare machine.

use core::fmt::Arguments;

pub use super::calls::{
    OwnRegisters, SYSTEM_CALL_BYTES, all_registers, set_all_registers, system_call_words,
};
pub use super::csr::{copy_bytes, fill_page, ticks};
pub use super::frame::{Frame, exception_words, set_exception_words};
pub use super::percpu::{Cpu, cpu, interrupt_noted, interrupt_pending, note_entry};
pub use super::physmap::{hardware, phys_to_virt, virt_to_phys};
pub use super::sbi::{EXIT_FAILURE, console_write, exit};

/// There are no non-maskable interrupts.
#[must_use]
pub fn nmis_have_come() -> bool {
    false
}

/// There is none to say.
pub fn say_an_nmi(_note: fn(Arguments<'_>)) -> bool {
    false
}

/// The image is where it was linked.
pub fn tell_place() {}

/// No interrupt controller is driven: there are no lines.
#[must_use]
pub fn line_exists(_line: u32) -> bool {
    false
}

/// There are no lines.
pub fn open_line(_line: u8) {}

/// There are no lines.
pub fn mask(_line: u8) {}

/// There are no lines.
pub fn unmask(_line: u8) {}

/// There is no timer.
#[must_use]
pub fn interrupt_at(_at_us: u64) -> bool {
    false
}

/// There is no timer.
pub fn tick_again() {}

/// The array's own memory.
pub mod kernel_tables {
    /// Leaf tables that the array can need.
    pub const RESERVED_FRAMES: u64 = 0;
}

/// There are no stubs: nobody waits where user mode could wake him.
#[must_use]
pub fn returns_at_once(_ip: u64) -> bool {
    false
}

/// There are no stubs: nobody waits for a critical section's work.
#[must_use]
pub fn is_for_work(_ip: u64) -> bool {
    false
}
