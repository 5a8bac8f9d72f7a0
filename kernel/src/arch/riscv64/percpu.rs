//! Per-processor state, of the one processor that is used.

use core::cell::Cell;

use crate::arch::line::Line;
use crate::between::set::Processors;

/// Everything one processor owns.
pub struct Cpu {
    /// Where the tcb of the running thread is; 0: nobody runs yet.
    pub current: Cell<u64>,
    /// Interrupt lines seen in a preemption window, still to be handled: none, since no
    /// interrupt controller is driven.
    pub pending_lines: Cell<u64>,
    /// Kernel entries since boot.
    pub entries: Cell<u64>,
    /// The processors where somebody is now (`elsewhere`).
    pub guests: Processors,
    /// A direct switch has to look at the ready queue first: an interrupt has left somebody
    /// waiting.
    pub look_first: Cell<bool>,
    /// Ready queues, wakeup lists, the running slice.
    pub scheduler: <Self as Line>::Scheduler,
}

struct OneCpu(Cpu);

// SAFETY: one processor, interrupts off.
unsafe impl Sync for OneCpu {}

static CPU: OneCpu = OneCpu(Cpu {
    current: Cell::new(0),
    pending_lines: Cell::new(0),
    entries: Cell::new(0),
    guests: Processors::new(),
    look_first: Cell::new(false),
    scheduler: <Cpu as Line>::NOBODY,
});

/// This processor's state.
#[must_use]
pub fn cpu() -> &'static Cpu {
    &CPU.0
}

/// Whether any interrupt is waiting to be handled: interrupts stay off, since no controller
/// is driven, so none is let in.
#[must_use]
pub fn interrupt_pending() -> bool {
    interrupt_noted()
}

/// Whether any interrupt of an earlier window is waiting to be handled.
#[must_use]
pub fn interrupt_noted() -> bool {
    cpu().pending_lines.get() != 0
}

/// Counts an entry.
pub fn note_entry() {
    let cpu = cpu();
    cpu.entries.set(cpu.entries.get() + 1);
}
