//! Vector and floating-point registers (docs/decisions/0019-vector-registers.md).
//!
//! Nothing here relies on CR0.TS, which stays clear: a thread that may use the unit has
//! its own state in the registers from its first instruction on. A thread of a task that
//! has said that it uses none (`TcbRef::uses_vector` is false) runs on initial registers,
//! or on what others of its kind have put there against their word: nobody's secret.
//!
//! While a thread waits, its state is in one of two areas of its own frame: everything
//! (`vector_area`), or the two control words and nothing else (`vector_initial`), after
//! an IPC that has declared the rest dead. `vector_from` says which.

use core::arch::asm;
use core::cell::Cell;

use super::special;
use super::tcbs::{TcbRef, VECTOR_AREA};
use crate::arch::virt_to_phys;
use crate::arch::x86_64::asm::copy_bytes;
use crate::arch::x86_64::features::{self, Features};
use crate::arch::x86_64::xsave::{
    FCW_INITIAL, HEADER, HEADER_BYTES, MXCSR, MXCSR_INITIAL, reset, restore,
};
use crate::mem::PhysFrame;
use crate::thread::tcb::{USES_VECTOR, Vectors};

/// Offset in a thread's frame of the area that holds nothing but its control words.
const INITIAL_AT: u64 = 3072;
const _: () = assert!(INITIAL_AT >= features::XSAVE_LIMIT as u64 && INITIAL_AT.is_multiple_of(64));
/// Gives a new thread the initial state. Its frame has arbitrary content. Where there is
/// XSAVE, a header without components says that nothing beside it and MXCSR counts, and
/// the processor leaves the rest where it is, or writes it before it reads it; where there
/// is not, everything counts.
pub fn prepare(thread: TcbRef) {
    if !features::in_use().contains(Features::XSAVE) {
        return clear(thread);
    }
    let kept = thread.vector_area.get();
    for header in [kept + HEADER as u64, kept + INITIAL_AT + HEADER as u64] {
        // SAFETY: both headers lie in the thread's own frame, aligned.
        unsafe { (header as *mut [u64; HEADER_BYTES / 8]).write([0; HEADER_BYTES / 8]) };
    }
    set_initial(thread);
}

/// The same for a thread that has not run and whose state others will see
/// ([`crate::control::foreign`]): every byte of its frame is its own.
pub fn clear(thread: TcbRef) {
    let frame = PhysFrame::at(virt_to_phys(thread.vector_area()));
    crate::mem::frames::zero(frame);
    set_initial(thread);
}

fn set_initial(thread: TcbRef) {
    let kept = thread.vector_area.get();
    thread.vector_initial.set(kept + INITIAL_AT);
    thread.vector_from.set(kept);
    for area in [kept, kept + INITIAL_AT] {
        // SAFETY: both areas lie in the thread's own frame, aligned.
        unsafe {
            (area as *mut u16).write(FCW_INITIAL);
            ((area + MXCSR as u64) as *mut u32).write(MXCSR_INITIAL);
        }
    }
}

/// What has been saved of `from`, which has handed over elsewhere to `to`, is that one's; `from` keeps the
/// control words.
pub fn pass(from: TcbRef, to: TcbRef) {
    let ((source, size), (target, _)) = (saved(from), saved(to));
    // SAFETY: the areas are two threads' own frames, as in [`saved`], and cells may be written through references.
    unsafe { copy_bytes(target.as_ptr().cast_mut().cast(), source.as_ptr().cast(), size) };
    to.vector_from.set(to.vector_area.get());
    // What is initial need not have been written.
    let is_initial = features::in_use().contains(Features::XSAVE) && source[HEADER].get() & 1 == 0;
    let saved_fcw = u16::from_le_bytes(core::array::from_fn(|byte| source[byte].get()));
    let fcw = if is_initial { FCW_INITIAL } else { saved_fcw };
    let mxcsr = u32::from_le_bytes(core::array::from_fn(|byte| source[MXCSR + byte].get()));
    let area = from.vector_initial.get();
    // SAFETY: as in `set_initial`.
    unsafe {
        (area as *mut u16).write(fcw);
        ((area + MXCSR as u64) as *mut u32).write(mxcsr);
    }
    from.vector_from.set(area);
}

/// The saved vector state of `thread`, which is not the current one, and its size in
/// bytes; nothing of it is in the registers afterwards.
pub fn saved(thread: TcbRef) -> (&'static [Cell<u8>], usize) {
    // SAFETY: the area is the thread's own frame, and nothing else refers to it: the
    // state is not in the registers, so no instruction reads or writes it meanwhile.
    let area = unsafe { core::slice::from_raw_parts(thread.vector_area().cast(), VECTOR_AREA) };
    (area, features::vector_bytes() as usize)
}

/// Makes whatever was written to the saved state of `thread` one that XRSTOR accepts:
/// known components only, the standard format, no reserved bits (Intel SDM 1, 13.8.1).
pub fn sanitise(thread: TcbRef) {
    let (area, _) = saved(thread);
    let word = |at: usize| u64::from_le_bytes(core::array::from_fn(|byte| area[at + byte].get()));
    let set = |at: usize, bytes: &[u8]| {
        area[at..].iter().zip(bytes).for_each(|(cell, byte)| cell.set(*byte));
    };
    set(MXCSR, &(word(MXCSR) as u32 & 0xFFFF).to_le_bytes());
    set(HEADER, &(word(HEADER) & features::xcr0()).to_le_bytes());
    set(HEADER + 8, &[0; 56]);
}

/// The running thread says whether it will use vector registers, which are initial now.
pub fn declare(thread: TcbRef, vectors: Vectors) {
    thread.set_special(USES_VECTOR, vectors == Vectors::Used);
    reset();
    special::update(thread);
}

/// Whether `thread`, which does not run, gets its registers back when it goes on.
pub fn keeps(thread: TcbRef) -> bool {
    thread.vector_from.get() != thread.vector_initial.get()
}

/// `owner`, which has run until now, needs nothing of the registers but the control words.
pub fn abandon(owner: TcbRef) {
    let area = owner.vector_initial.get();
    // SAFETY: the area is the owner's own, and what is written are its control words.
    unsafe {
        asm!("fnstcw [{area}]", "stmxcsr [{area} + {mxcsr}]", area = in(reg) area,
            mxcsr = const MXCSR, options(nostack));
    }
    owner.vector_from.set(area);
}

/// Saves everything that is in the registers as the state of `owner`.
pub fn save(owner: TcbRef) {
    owner.vector_from.set(owner.vector_area.get());
    let (area, use_now) = (owner.vector_area(), features::in_use());
    // SAFETY: the area is the owner's own frame, aligned and at least as large as the
    // state that `features` enabled. XSAVEOPT may leave stale bytes in components that are
    // initial; for foreign threads, whose state is shown to others, all are written.
    unsafe {
        if use_now.contains(Features::XSAVEOPT) && !owner.is_foreign() {
            asm!("xsaveopt64 [{}]", in(reg) area, in("eax") !0u32, in("edx") !0u32, options(nostack));
        } else if use_now.contains(Features::XSAVE) {
            asm!("xsave64 [{}]", in(reg) area, in("eax") !0u32, in("edx") !0u32, options(nostack));
        } else {
            asm!("fxsave64 [{}]", in(reg) area, options(nostack));
        }
    }
}

/// Loads the state with which `thread` goes on.
pub fn load(thread: TcbRef) {
    let from = thread.vector_from.get();
    // SAFETY: `vector_from` is one of the thread's two areas, and both always hold a state
    // that the processor accepts: `prepare`, `save`, `sanitise` and `vector.S` make them.
    unsafe { restore(from as *const u8) };
    if from == thread.vector_initial.get() {
        // SAFETY: the area begins with a control word; no exception is pending.
        unsafe { asm!("fldcw word ptr [{}]", in(reg) from, options(nostack)) };
    }
}
