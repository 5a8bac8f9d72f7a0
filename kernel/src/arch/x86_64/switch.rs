//! Giving the processor to a thread on the complete path. The fast path does the
//! same in its last dozen instructions.

use abi::utcb;

use super::asm::write_gs_base;
use super::cpu::{read_cr3, write_cr3};
use super::features::{self, Features};
use super::percpu::{cpu, current};
use super::tcbs::TcbRef;
use super::{mitigations, special, vector};
use crate::thread::tcb::Resume;
use crate::{irq, sched, techniques};

/// What CR3's tag bits allow to compare: bit 63 is not kept by the processor.
const CR3_KEPT: u64 = !(1 << 63);

/// Makes `next` the current thread; how it resumes is for the assembly to carry out.
pub extern "C" fn activate(next: TcbRef) -> Resume {
    let next = if cpu().pending_lines.get() == 0 { next } else { after_interrupts(next) };
    let switches = next != current();
    if switches {
        if special::is_closed() {
            special::leave(current());
        }
        cpu().tss.rsp0.set(next.address());
        let cr3 = next.cr3.get();
        if cr3 & CR3_KEPT != read_cr3() & CR3_KEPT {
            // SAFETY: a tcb's cr3 is its space's root table (idle: the kernel's own).
            unsafe { write_cr3(cr3) };
        }
    }
    if !techniques::LAZY_VECTOR && next.space().is_some() {
        vector::enter(next);
    }
    if next.is_foreign() {
        if switches {
            special::enter(next);
        }
    } else {
        let gs_base = next.utcb.get().wrapping_add_signed(utcb::SELF as i64 * 8);
        write_gs_base(gs_base, features::in_use().contains(Features::FSGSBASE));
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

/// Interrupts came in windows of a long operation and are still to be handled.
#[inline(never)]
fn after_interrupts(next: TcbRef) -> TcbRef {
    sched::requeue(next);
    irq::handle_pending(next)
}
