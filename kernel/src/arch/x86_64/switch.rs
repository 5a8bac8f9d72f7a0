//! Giving the processor to a thread on the complete path. The fast path does the
//! same in its last dozen instructions.

use abi::utcb;

use super::asm::write_gs_base;
use super::cpu::{read_cr3, write_cr3};
use super::features::{self, Features};
use super::percpu::{cpu, current};
use super::tcbs::TcbRef;
use super::{mitigations, special};
use crate::thread::tcb::Resume;
use crate::{irq, sched};

/// What CR3's tag bits allow to compare: bit 63 is not kept by the processor.
const CR3_KEPT: u64 = !(1 << 63);

/// Makes `next` the current thread; how it resumes is for the assembly to carry out.
pub extern "C" fn activate(next: TcbRef) -> Resume {
    let next = if cpu().pending_lines.get() == 0 { next } else { after_interrupts(next) };
    if next.uses_vector.get() {
        return activate_vector_user(next);
    }
    if next != current() {
        if special::is_closed() {
            special::switch(current(), next);
        }
        enter(next);
    }
    show_utcb(next);
    next.resume.get()
}

/// [`activate`] for a thread that uses vector registers; foreign ones all do.
#[inline(never)]
fn activate_vector_user(next: TcbRef) -> Resume {
    if next != current() {
        special::switch(current(), next);
        enter(next);
    }
    // A foreign thread has a GS base of its own.
    if !next.is_foreign() {
        show_utcb(next);
    }
    next.resume.get()
}

/// The same, where branch predictions are to be forgotten between spaces (`mitigations.rs`).
pub extern "C" fn activate_flushing(next: TcbRef) -> Resume {
    const ROOT: u64 = 0x000F_FFFF_FFFF_F000;
    let before = read_cr3() & ROOT;
    let resume = activate(next);
    if read_cr3() & ROOT != before {
        mitigations::flush_predictions();
    }
    resume
}

/// Current thread and address space.
#[inline(always)]
fn enter(next: TcbRef) {
    cpu().tss.rsp0.set(next.address());
    let cr3 = next.cr3.get();
    if cr3 & CR3_KEPT != read_cr3() & CR3_KEPT {
        // SAFETY: a tcb's cr3 is its space's root table (idle: the kernel's own).
        unsafe { write_cr3(cr3) };
    }
}

#[inline(always)]
fn show_utcb(next: TcbRef) {
    let gs_base = next.utcb.get().wrapping_add_signed(utcb::SELF as i64 * 8);
    write_gs_base(gs_base, features::in_use().contains(Features::FSGSBASE));
}

/// Interrupts came in windows of a long operation and are still to be handled.
#[inline(never)]
fn after_interrupts(next: TcbRef) -> TcbRef {
    sched::requeue(next);
    irq::handle_pending(next)
}
