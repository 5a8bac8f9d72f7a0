//! Per-processor state: the task state segment, whose stack pointer is the
//! current thread, and everything that is kept per processor. Nothing here is shared: every
//! processor finds its own at this address (`replica.rs`), all zeros but for its number when
//! it is another than the first.
//!
//! The fast path reaches this page relative to its own instruction pointer.
//!
//! *The fast path's limits* are how a special sender is kept out of it for free
//! (Liedtke 1993, 5.5.5): the check of the message's length compares with a limit
//! in the line of the current-thread pointer, and the limit is 0 while the running
//! thread has vector registers in use or is foreign, or while its next direct
//! switch has to look at the ready queue first.

use core::cell::Cell;
use core::mem::offset_of;

use crate::arch::line::Line;
use crate::between::set::Processors;

/// The 64-bit task state segment (Intel SDM 3A, 8.7), without its first four bytes,
/// which are reserved: so its 64-bit fields are aligned.
#[repr(C)]
pub struct Tss {
    /// Kernel stack pointer for entries from user mode: the current tcb.
    pub rsp0: Cell<u64>,
    /// Where rings 1 and 2, which nobody uses, would have their stacks, in the line that every call
    /// reads and writes anyway: the fast path's limits, see [`LIMITS_OPEN`].
    pub limits: Cell<u32>,
    /// Likewise: which path an IPC takes while the limits are closed. 0: the complete one, or
    /// [`GATE_VECTOR`], or [`GATE_ARMED`], unless it is the next word's.
    pub gate: Cell<u32>,
    /// Likewise, for [`BESIDE`].
    pub gate_beside: Cell<u32>,
    unused: u32,
    reserved1: u64,
    /// Stacks for double fault, non-maskable interrupt, machine check.
    pub ist: [Cell<u64>; 3],
    /// Where a fourth one would be: RDI of the latest system call, in that line, too.
    pub user_rdi: Cell<u64>,
    unused_ist: [u64; 3],
    reserved2: u64,
    reserved3: u16,
    /// Offset of the I/O permission bitmap from the segment's base.
    pub iomap: Cell<u16>,
}

/// Everything one processor owns.
#[repr(C, align(4096))]
pub struct Cpu {
    pad: [u8; 60],
    /// The segment starts here ([`TSS_START`]).
    tss_reserved: u32,
    /// `rsp0` starts a cache line.
    pub tss: Tss,
    /// Segment descriptors.
    pub gdt: [Cell<u64>; 8],
    /// Its number, from 0, the processor on which the kernel was started.
    pub number: Cell<u32>,
    /// A preemption window is open: interrupts only note their line.
    pub in_window: Cell<bool>,
    /// Interrupt lines seen in a preemption window, still to be handled.
    pub pending_lines: Cell<u64>,
    /// Kernel entries on the complete path since boot.
    pub entries: Cell<u64>,
    /// Interrupts that met the kernel with AC set, which switches SMAP off; for the checker.
    pub unguarded: Cell<u64>,
    /// Non-maskable interrupts.
    pub nmis: super::nmi::Nmis,
    /// Machine checks that were survived.
    pub machine_checks: Cell<u64>,
    /// The processors where somebody is now (`elsewhere`).
    pub guests: Processors,
    /// A direct switch has to look at the ready queue first: an interrupt has left somebody
    /// waiting.
    pub look_first: Cell<bool>,
    /// Ready queues, wakeup lists, the running slice.
    pub scheduler: <Self as Line>::Scheduler,
}

const _: () = assert!(offset_of!(Cpu, number) < 4096);
const _: () = assert!(offset_of!(Cpu, tss) == 64 && offset_of!(Tss, iomap) + 2 == 100);

/// Offset of the task state segment in [`Cpu`].
pub const TSS_START: usize = offset_of!(Cpu, tss) - 4;

/// Offset of the current-thread pointer in [`Cpu`].
pub const CURRENT: usize = offset_of!(Cpu, tss);
/// Offset of [`Tss::user_rdi`] in [`Cpu`].
pub const USER_RDI: usize = CURRENT + offset_of!(Tss, user_rdi);
/// Offset of [`Tss::limits`] in [`Cpu`].
pub const LIMIT: usize = CURRENT + offset_of!(Tss, limits);
/// Offset of [`Tss::gate`] in [`Cpu`]; [`LIMIT`] and it are one word of eight bytes.
pub const GATE: usize = CURRENT + offset_of!(Tss, gate);
const _: () = assert!(GATE == LIMIT + 4 && LIMIT.is_multiple_of(8));
/// Offset of [`Tss::gate_beside`] in [`Cpu`]; it and the gate are compared with zero as one.
pub const BESIDE: usize = CURRENT + offset_of!(Tss, gate_beside);
const _: () = assert!(BESIDE == GATE + 4 && BESIDE / 64 == CURRENT / 64);
const _: () = assert!(USER_RDI / 64 == CURRENT / 64);
/// The gate while the running thread uses vector registers: fewer words go by `vector.S`
/// (low half).
pub const GATE_VECTOR: u32 = 8;
/// The gate while the running thread is armed: likewise by `armed.S` (high half).
pub const GATE_ARMED: u32 = 8 << 16;
/// What is behind the gate while the running thread is both: likewise by `beside.S`. Nobody else
/// has something there, and only the complete path changes that.
pub const GATE_BESIDE: u32 = 8;
/// Limits for an ordinary sender: fewer than 8 words (low half) go by registers, fewer
/// than 64 (high half) by the fast path at all.
pub const LIMITS_OPEN: u32 = 64 << 16 | 8;

// SAFETY: each processor accesses only its own `Cpu`, with interrupts off.
unsafe impl Sync for Cpu {}

#[unsafe(link_section = ".percpu")]
#[unsafe(no_mangle)]
pub static BATON_CPU: Cpu = Cpu {
    pad: [0; 60],
    tss_reserved: 0,
    tss: Tss {
        rsp0: Cell::new(0),
        limits: Cell::new(0),
        gate: Cell::new(0),
        gate_beside: Cell::new(0),
        unused: 0,
        reserved1: 0,
        ist: [const { Cell::new(0) }; 3],
        user_rdi: Cell::new(0),
        unused_ist: [0; 3],
        reserved2: 0,
        reserved3: 0,
        iomap: Cell::new(0),
    },
    gdt: [const { Cell::new(0) }; 8],
    number: Cell::new(0),
    in_window: Cell::new(false),
    pending_lines: Cell::new(0),
    entries: Cell::new(0),
    unguarded: Cell::new(0),
    nmis: super::nmi::Nmis::new(),
    machine_checks: Cell::new(0),
    guests: Processors::new(),
    look_first: Cell::new(false),
    scheduler: <Cpu as Line>::NOBODY,
};

/// This processor's state.
#[must_use]
pub fn cpu() -> &'static Cpu {
    &BATON_CPU
}

/// Lets interrupts in for a moment; whether any is now waiting to be handled.
#[must_use]
pub fn interrupt_pending() -> bool {
    let cpu = cpu();
    cpu.in_window.set(true);
    super::asm::window();
    cpu.in_window.set(false);
    interrupt_noted()
}

/// Whether any interrupt of an earlier window is waiting to be handled.
#[must_use]
pub fn interrupt_noted() -> bool {
    cpu().pending_lines.get() != 0
}

/// Counts an entry on the complete path.
pub fn note_entry() {
    let cpu = cpu();
    cpu.entries.set(cpu.entries.get() + 1);
}
