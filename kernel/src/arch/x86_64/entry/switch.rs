//! Giving the processor to a thread on the complete path. The fast path does the
//! same in its last dozen instructions.

use abi::utcb;

use super::{again, armed};
use crate::arch::x86_64::asm::{read_bases, write_fs_base, write_gs_base};
use crate::arch::x86_64::cpu::{read_cr3, write_cr3};
use crate::arch::x86_64::features::{self, Features};
use crate::arch::x86_64::percpu::cpu;
use crate::arch::x86_64::thread::tcbs::TcbRef;
use crate::arch::x86_64::thread::{current, special, vector};
use crate::arch::x86_64::{mitigations, xsave};
use crate::elsewhere;
use crate::ipc::wait;
use crate::local;
use crate::resume;

/// Makes `next` the current thread; how it resumes is for the assembly to carry out
/// (`thread::tcb::Resume`, `armed::Leaves`).
pub extern "C" fn activate(next: TcbRef) -> u64 {
    let noted = cpu().pending_lines.get() != 0;
    if noted || next.special.get() != 0 || special::is_closed() {
        return activate_unusually(next);
    }
    // Open limits: the processor has WRGSBASE.
    enter(next);
    write_gs_base(gs_base(next), true);
    next.resume.get() as u64
}

/// The same if something about either thread is special, or an interrupt has been noted.
#[inline(never)]
fn activate_unusually(mut next: TcbRef) -> u64 {
    let mut turns = 0;
    while change_to(&mut next) && !resume::leaves(next, &mut turns) {}
    if next.is_armed() {
        return armed::leave(next);
    }
    // A foreign thread has a GS base of its own.
    if !next.is_foreign() {
        write_gs_base(gs_base(next), features::in_use().contains(Features::FSGSBASE));
    }
    next.resume.get() as u64
}

/// Makes `next` current, or whoever runs in its place; whether something has been done for other processors. A seat
/// that somebody gets for that is filled in windows, and nobody behind this handles what they note.
#[inline(always)] // a part of it
fn change_to(next: &mut TcbRef) -> bool {
    let wanted = resume::way_out(*next);
    *next = elsewhere::leave(wanted);
    let before = current();
    if *next != before {
        if next.special.get() != 0 || special::is_closed() {
            switch(before, *next);
        }
        enter(*next);
    }
    let leaves = *next != wanted || *next != before && before.is_elsewhere();
    if leaves {
        elsewhere::left(before);
    }
    leaves
}

/// The same, where branch predictions are to be forgotten between spaces (`mitigations.rs`).
pub extern "C" fn activate_flushing(next: TcbRef) -> u64 {
    const ROOT: u64 = 0x000F_FFFF_FFFF_F000;
    let before = read_cr3() & ROOT;
    let resume = activate(next);
    if read_cr3() & ROOT != before {
        mitigations::flush_predictions();
    }
    resume
}

/// Goes on with what `current` was doing; returns who runs next.
pub extern "C" fn resume(current: TcbRef) -> TcbRef {
    resume::resume(current, again::entered)
}

/// Current thread and address space.
#[inline(always)]
fn enter(next: TcbRef) {
    let root = next.root.get();
    if root != current().root.get() {
        // SAFETY: a tcb has its space's root (idle: the kernel's own).
        unsafe { write_cr3(root.value()) };
    }
    cpu().tss.rsp0.set(next.address());
}

/// What `%gs` shows to users: the UTCB pointer.
#[inline(always)]
pub(super) fn gs_base(next: TcbRef) -> u64 {
    next.utcb.get().wrapping_add_signed(utcb::SELF as i64 * 8)
}

/// What `from`, which uses vector registers and leaves the processor, wants of them back. An armed
/// thread whose IPC promises it more than control words is not armed any more ([`local::keep_vector`]).
fn leave_registers(from: TcbRef) {
    if from.is_armed() && local::waits_in_ipc(from) {
        vector::abandon(from);
    } else {
        vector::save(from);
    }
}

/// `to` gets the processor after `from`, another thread; at least one of them is special.
#[inline(never)]
fn switch(from: TcbRef, to: TcbRef) {
    if from.is_foreign() {
        let (fs, gs) = read_bases();
        from.own.fs_base.set(fs);
        from.own.gs_base.set(gs);
        write_fs_base(0);
    }
    if from.uses_vector() {
        leave_registers(from);
    }
    match (from.uses_vector(), to.uses_vector()) {
        (_, true) => vector::load(to),
        (true, false) => xsave::reset(),
        (false, false) => {}
    }
    if to.is_foreign() {
        write_fs_base(to.own.fs_base.get());
        write_gs_base(to.own.gs_base.get(), features::in_use().contains(Features::FSGSBASE));
    }
    wait::seal(from);
    special::update(to);
}
