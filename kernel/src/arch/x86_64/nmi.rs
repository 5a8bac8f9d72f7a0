//! Non-maskable interrupts: a line that no driver owns, by which the chipset says that
//! something is wrong, and by which people stop a machine that hangs.
//!
//! One can come at any instruction of the kernel, on a stack of its own, even before
//! SYSCALL's entry has one. So [`enter`] only notes it; the next tick sees it, and leaves it to the log's
//! writer to say it: a line is some thousand instructions, for which handlers would wait.

use core::cell::Cell;
use core::fmt::Arguments;

use super::cpu::{in_byte, out_byte};
use super::frame::TrapFrame;
use super::percpu::cpu;

/// System control port B of the PC: what raised NMI, and switches for it.
const CONTROL: u16 = 0x61;
/// An error of memory or of the system bus (SERR).
const SYSTEM_ERROR: u8 = 1 << 7;
/// A device says that it failed (IOCHK).
const DEVICE_ERROR: u8 = 1 << 6;
/// Forgets the device's complaint while it is set.
const DEVICE_CLEAR: u8 = 1 << 3;
/// The bits that can be written.
const SWITCHES: u8 = 0x0F;

/// What is known of them.
pub struct Nmis {
    count: Cell<u64>,
    said: Cell<u64>,
    /// How many there were when all but the place of the last one was said; as `said` otherwise.
    half_said: Cell<u64>,
    /// The latest: instruction pointer, code segment, what the chipset says.
    place: Cell<u64>,
    segment: Cell<u64>,
    reason: Cell<u8>,
}

impl Nmis {
    /// None yet.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is part of a static")]
    pub const fn new() -> Self {
        Self {
            count: Cell::new(0),
            said: Cell::new(0),
            half_said: Cell::new(0),
            place: Cell::new(0),
            segment: Cell::new(0),
            reason: Cell::new(0),
        }
    }
}

/// Notes an NMI. Stops the machine if memory is not to be trusted any more: `note` is told why.
pub fn enter(frame: &TrapFrame, note: fn(Arguments<'_>)) {
    let nmis = &cpu().nmis;
    super::slots::note_nmi();
    // SAFETY: the port belongs to the chipset; reading it has no effect.
    let control = unsafe { in_byte(CONTROL) };
    nmis.count.set(nmis.count.get() + 1);
    nmis.place.set(frame.ip.get());
    nmis.segment.set(frame.cs.get());
    nmis.reason.set(control);
    if control & SYSTEM_ERROR != 0 {
        say(note);
        say_place(note);
        panic!("memory or system bus have failed (NMI, port 0x61 says {control:#x})");
    }
    if control & DEVICE_ERROR != 0 {
        // SAFETY: as above; the other switches keep their values.
        unsafe {
            out_byte(CONTROL, control & SWITCHES | DEVICE_CLEAR);
            out_byte(CONTROL, control & SWITCHES & !DEVICE_CLEAR);
        }
    }
}

/// Whether some have come that [`say_a_line`] has not said.
#[inline]
#[must_use]
pub fn have_come() -> bool {
    let nmis = &cpu().nmis;
    nmis.count.get() != nmis.said.get()
}

/// Says to `note` a line of what has come since the last time, if anything has.
pub fn say_a_line(note: fn(Arguments<'_>)) -> bool {
    let nmis = &cpu().nmis;
    let said = have_come();
    if said {
        if nmis.half_said.get() == nmis.said.get() { say(note) } else { say_place(note) }
    }
    said
}

#[cold]
#[inline(never)]
fn say(note: fn(Arguments<'_>)) {
    let nmis = &cpu().nmis;
    let fresh = nmis.count.get() - nmis.said.get();
    nmis.half_said.set(nmis.count.get());
    let reason = nmis.reason.get();
    let cause = match (reason & SYSTEM_ERROR, reason & DEVICE_ERROR) {
        (0, 0) => "the chipset names no cause",
        (0, _) => "a device has reported a failure",
        _ => "memory or system bus have failed",
    };
    note(format_args!(
        "baton: NMI, {fresh} since the last report, {} in all: {cause} (port 0x61: {reason:#x})\n",
        nmis.count.get(),
    ));
}

#[cold]
#[inline(never)]
fn say_place(note: fn(Arguments<'_>)) {
    let nmis = &cpu().nmis;
    nmis.said.set(nmis.half_said.get());
    let who = if nmis.segment.get() & 3 == 0 { "the kernel" } else { "a program" };
    let place = super::place::linked(nmis.place.get());
    note(format_args!("baton: the last NMI met {who} at {place:#x}\n"));
}
