//! Interrupt lines: where each arrives, and how it is kept back from the delivery of its
//! message to the acknowledgement.
//!
//! Lines 0 to 15 are the ISA bus's, wherever firmware says that they arrive; a higher line is
//! the input with that number, and from [`MESSAGE_BASE`] on whatever device writes the line's message
//! (Intel SDM 3A, 11.11). With I/O APICs a line that signals by its level is masked when
//! it interrupts; one that signals by an edge is latched ([`super::latch`]), and so is
//! a message, which nothing here could keep from coming. A machine without them has its 8259s (`pic.rs`), whose lines are masked.

use core::cell::Cell;

use abi::id::MESSAGE_BASE;
use abi::kip::LineMessage;

use super::io_apic::{self, Entry};
use super::latch::{Came, Latch};
use super::{apic, pic, vectors};
use crate::boot::madt::{ISA_LINES, Input, Madt, Signal};

/// The timer's line: the local APIC's, or the 8259s'.
pub const TIMER: u8 = 0;

/// Where messages to local APICs are written; the number of the APIC is in bits 12 to 19.
const MESSAGE_WINDOW: u64 = 0xFEE0_0000;

/// How a line is kept back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    Absent,
    /// The local APIC's timer.
    Timer,
    Legacy,
    Level,
    Edge,
    /// No wire: a device's message.
    Message,
}

struct Line {
    kind: Cell<Hold>,
    entry: Cell<Entry>,
    latch: Latch,
}

impl Line {
    /// What it signals from now on comes through: for a message, which nothing keeps back, it always does.
    fn let_through(&self) {
        if self.kind.get() == Hold::Edge {
            self.entry.get().unmask();
        }
    }
}

struct Lines([Line; vectors::LINES as usize]);
// SAFETY: one processor uses them, with interrupts off.
unsafe impl Sync for Lines {}
static LINES: Lines = Lines(
    [const { Line { kind: Cell::new(Hold::Absent), entry: Cell::new(Entry::NONE), latch: Latch::new() } };
        vectors::LINES as usize],
);

/// Finds the lines: through APICs, as `madt` says, or else at the 8259s; how many inputs
/// the I/O APICs have. `take` takes frames of zeros for tables of the kernel's own.
///
/// # Errors
/// Why there are no APICs.
pub fn init(madt: Option<&Madt>, take: impl Fn() -> Option<u64>) -> Result<u32, &'static str> {
    let found = madt.ok_or("ACPI does not list any").and_then(|madt| with_apics(madt, take));
    if found.is_err() {
        for line in &LINES.0[..ISA_LINES] {
            line.kind.set(Hold::Legacy);
        }
    }
    found
}

fn with_apics(madt: &Madt, take: impl Fn() -> Option<u64>) -> Result<u32, &'static str> {
    // The local one comes last: if it cannot be used nothing of it has been changed.
    io_apic::init(madt.io_apics.as_slice(), &take)?;
    apic::init(madt.local, take)?;
    pic::close();
    let own = apic::id();
    for (number, line) in (0..u32::from(vectors::LINES)).zip(&LINES.0).skip(1) {
        if number >= MESSAGE_BASE {
            line.kind.set(Hold::Message);
            continue;
        }
        let Some(input) = input(madt, number) else { continue };
        let vector = vectors::LINE + number as u8;
        if let Some(entry) = io_apic::lead(input, own, vector) {
            line.kind.set(if input.signal.is_level { Hold::Level } else { Hold::Edge });
            line.entry.set(entry);
        }
    }
    LINES.0[usize::from(TIMER)].kind.set(Hold::Timer);
    for nmi in madt.nmis.as_slice() {
        io_apic::lead_nmi(*nmi, own);
    }
    let uid = madt.processors.as_slice().iter().find(|one| one.apic == own).map(|one| one.uid);
    apic::open_nmis(madt.local_nmis.as_slice(), uid.unwrap_or(0));
    Ok(io_apic::end())
}

/// Where line `number` arrives. PCI's lines signal by a low level.
fn input(madt: &Madt, number: u32) -> Option<Input> {
    match madt.isa.get(number as usize) {
        Some(isa) => *isa,
        None => Some(Input { number, signal: Signal { is_level: true, is_low: true } }),
    }
}

/// Whether there is a line `number`.
#[must_use]
pub fn exists(number: u32) -> bool {
    LINES.0.get(number as usize).is_some_and(|line| line.kind.get() != Hold::Absent)
}

/// Whether interrupts come through APICs.
#[must_use]
pub fn has_apics() -> bool {
    LINES.0[usize::from(TIMER)].kind.get() == Hold::Timer
}

/// By what message a device signals line [`MESSAGE_BASE`], if the machine has such lines: fixed
/// delivery to this processor, by an edge.
#[must_use]
pub fn message() -> Option<LineMessage> {
    has_apics().then(|| LineMessage {
        address: MESSAGE_WINDOW | u64::from(apic::id()) << 12,
        data: u32::from(vectors::MESSAGE),
    })
}

/// Takes an interrupt of line `number` from its APIC, with what keeps a device's line back.
/// False if its message is not due yet.
#[inline]
#[must_use]
pub fn accept(number: u8) -> bool {
    let mut is_due = true;
    if number != TIMER {
        let line = &LINES.0[usize::from(number) % LINES.0.len()];
        if line.kind.get() == Hold::Level {
            line.entry.get().mask();
            apic::order();
        } else if line.latch.come() == Came::Again {
            is_due = false;
            keep_back(line);
        }
    }
    apic::end();
    is_due
}

/// What `line`, which signals by edges, has signalled before its handler has acknowledged the last one is due then. (The
/// instrument knows this function: nobody waits for such an interrupt.)
#[cold]
#[inline(never)]
fn keep_back(line: &Line) {
    if line.kind.get() == Hold::Edge {
        line.entry.get().mask();
    }
}

/// Takes an interrupt of line `number` from the 8259s; a device's line is masked. False if it
/// is none.
#[must_use]
pub fn accept_legacy(number: u8) -> bool {
    let is_genuine = pic::accept(number);
    if is_genuine && number != TIMER {
        pic::mask(number);
    }
    is_genuine
}

/// Keeps line `number` from interrupting.
pub fn mask(number: u8) {
    let Some(line) = LINES.0.get(usize::from(number)) else { return };
    match line.kind.get() {
        Hold::Absent | Hold::Timer | Hold::Message => {}
        Hold::Legacy => pic::mask(number),
        Hold::Level | Hold::Edge => line.entry.get().mask(),
    }
}

/// Lets line `number` interrupt again: its handler has acknowledged.
pub fn unmask(number: u8) {
    let Some(line) = LINES.0.get(usize::from(number)) else { return };
    match line.kind.get() {
        Hold::Absent | Hold::Timer => {}
        Hold::Legacy => pic::unmask(number),
        Hold::Level => line.entry.get().unmask(),
        Hold::Edge | Hold::Message => {
            if line.latch.release() {
                line.let_through();
                apic::interrupt_self(vectors::LINE + number);
            }
        }
    }
}

/// Lets line `number` interrupt for the first time, or for a new handler: what came before is
/// not its business.
pub fn open(number: u8) {
    let Some(line) = LINES.0.get(usize::from(number)) else { return };
    match line.kind.get() {
        Hold::Edge | Hold::Message => {
            let _ = line.latch.release();
            line.let_through();
        }
        _ => unmask(number),
    }
}
