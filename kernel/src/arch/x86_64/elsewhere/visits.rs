//! Threads of the first processor's on the others, seen from the first one
//! (`elsewhere`): the berths, and who is told by an interrupt.
//!
//! The other side is `entry::visitors`.

use core::hint::spin_loop;
use core::mem::size_of;
use core::ops::Range;
use core::sync::atomic::Ordering;

use crate::arch::phys_to_virt;
use crate::arch::x86_64::apic::{self, Message};
use crate::arch::x86_64::percpu::cpu;
use crate::arch::x86_64::slots::{self, PATIENCE_US};
use crate::arch::x86_64::thread::{TcbRef, frames_of, mend};
use crate::arch::x86_64::vectors;
use crate::between::berth::Berth;
use crate::elsewhere::Other;
use crate::thread::tcb::TCB_SIZE;

pub use super::seats::{
    alone, copy_frame, frames_of_seat, is_up, linkages, may_meet, put_up, put_up_linkages, room,
    shadow, show, take_down, take_linkages, together,
};
pub use crate::arch::x86_64::local_paths::completion_point;
pub use crate::arch::x86_64::slots::interrupt;

const PAGE: u64 = 4096;
const _: () =
    assert!(size_of::<Other>() <= PAGE as usize, "what is kept of a processor is a frame");
/// How long another processor may take to give a thread back: it answers an interrupt at once,
/// unless an emulator has no time for it.
const PATIENCE: u64 = 30 * PATIENCE_US;

/// How many processors run.
#[must_use]
pub fn processors() -> u32 {
    slots::count()
}

/// The numbers of those of whom this processor keeps something: none on the others, who look at themselves for the
/// checker.
#[must_use]
pub fn kept() -> Range<u32> {
    1..if cpu().number.get() == 0 { processors() } else { 1 }
}

/// What the first processor keeps of number `number`, if that runs.
#[must_use]
pub fn other(number: u32) -> Option<&'static Other> {
    let other = slots::slot(number).other.load(Ordering::Relaxed) as *const Other;
    // SAFETY: null, as for the first one and those that do not run, or a frame of the kernel's
    // that holds one for good.
    unsafe { other.as_ref() }
}

/// Makes what the first processor keeps of another, in `frame`; its address.
pub(super) fn make_other(frame: u64) -> u64 {
    let place = phys_to_virt(frame).cast::<Other>();
    // SAFETY: the frame has been taken for this.
    unsafe { place.write(Other::new()) };
    place as u64
}

/// The berth of number `number`.
#[must_use]
pub fn berth(number: u32) -> &'static Berth {
    &slots::slot(number).berth
}

/// Interrupts number `number`, whose visitor is to stop where it is.
pub fn interrupt_to_stop(number: u32) {
    let _ = apic::send(slots::apic_of(number), Message::Interrupt(vectors::STOP));
}

/// Waits until the visitor of number `number` has stopped, or has come back.
pub fn wait_for_stop(number: u32) {
    const LOOKS: u32 = 64;
    let berth = berth(number);
    for _ in 0..LOOKS {
        if berth.stands_still() {
            return;
        }
        spin_loop();
    }
    wait(number, &|| berth.stands_still());
}

/// What names `thread` in a berth: its tcb's address in the map of physical memory, which all
/// processors share.
#[must_use]
pub fn name(thread: TcbRef) -> u64 {
    let [_, top] = frames_of(thread);
    phys_to_virt(top + PAGE - TCB_SIZE as u64) as u64
}

/// Waits until `done`, which number `number` sees to.
#[inline(never)]
pub fn wait(number: u32, done: &dyn Fn() -> bool) {
    if !slots::wait(PATIENCE, done) {
        panic!("processor {number} does not give back the thread that runs there");
    }
    spin_loop();
}

/// `thread`, which has come back, may have been in a path of local IPC: it begins anew, or has gone through it.
pub fn mend(thread: TcbRef) {
    mend::mend(thread.frame(), thread);
}
