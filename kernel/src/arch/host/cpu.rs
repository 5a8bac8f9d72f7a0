//! The processor's state on the host: each test thread is a machine.

use std::cell::{Cell, RefCell};

use crate::arch::line::Line;
use crate::between::set::Processors;

/// The tcb array's own memory: none on the host.
pub mod kernel_tables {
    /// Leaf tables that the array can need.
    pub const RESERVED_FRAMES: u64 = 0;
}

/// The processor's state (`x86_64::percpu` has the fields' meaning).
pub struct Cpu {
    pub pending_lines: Cell<u64>,
    /// A line, and how many windows pass by until it interrupts.
    pub interrupt: Cell<Option<(u32, u32)>>,
    /// What happens in each window beside that.
    pub in_windows: RefCell<Option<Box<dyn Fn()>>>,
    pub entries: Cell<u64>,
    pub guests: Processors,
    pub look_first: Cell<bool>,
    pub scheduler: <Self as Line>::Scheduler,
}

thread_local! {
    static CPU: &'static Cpu = Box::leak(Box::new(Cpu {
        pending_lines: Cell::new(0),
        interrupt: Cell::new(None),
        in_windows: RefCell::new(None),
        entries: Cell::new(0),
        guests: Processors::new(),
        look_first: Cell::new(false),
        scheduler: <Cpu as Line>::NOBODY,
    }));
}

/// This machine's processor.
#[must_use]
pub fn cpu() -> &'static Cpu {
    CPU.with(|cpu| *cpu)
}

/// Interrupts come when a test wants them.
#[must_use]
pub fn interrupt_pending() -> bool {
    let cpu = cpu();
    if let Some((windows, line)) = cpu.interrupt.get() {
        let comes = windows == 0;
        cpu.interrupt.set(if comes { None } else { Some((windows - 1, line)) });
        cpu.pending_lines.set(cpu.pending_lines.get() | u64::from(comes) << line);
    }
    let happens = cpu.in_windows.take();
    if let Some(happens) = &happens {
        happens();
    }
    cpu.in_windows.replace(happens);
    interrupt_noted()
}

/// Whether any interrupt of an earlier window is waiting to be handled.
#[must_use]
pub fn interrupt_noted() -> bool {
    cpu().pending_lines.get() != 0
}

/// Counts an entry.
pub fn note_entry() {
    cpu().entries.set(cpu().entries.get() + 1);
}

/// As many as a PC has.
#[must_use]
pub fn line_exists(line: u32) -> bool {
    line < 16
}

/// No interrupt controller.
pub fn open_line(_line: u8) {}

/// There are no stubs: all threads wait where user mode could wake them.
#[must_use]
pub fn returns_at_once(_ip: u64) -> bool {
    true
}

/// There are no stubs: nobody waits for a critical section's work.
#[must_use]
pub fn is_for_work(_ip: u64) -> bool {
    false
}

/// No interrupt controller.
pub fn mask(_line: u8) {}

/// No interrupt controller.
pub fn unmask(_line: u8) {}

/// Fills a page with a word.
///
/// # Safety
/// The page at `page` is the caller's.
pub unsafe fn fill_page(page: *mut u8, word: u64) {
    // SAFETY: the caller vouches for the page.
    unsafe { page.cast::<[u64; 512]>().write([word; 512]) };
}

/// Copies `len` bytes.
///
/// # Safety
/// `len` bytes are readable at `from` and writable at `to`.
pub unsafe fn copy_bytes(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller vouches for both ranges.
    unsafe { core::ptr::copy(from, to, len) };
}
