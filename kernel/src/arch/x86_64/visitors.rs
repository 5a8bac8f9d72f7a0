//! A processor that runs the user code of the first one's threads, one at a time
//! (docs/decisions/0055-user-code-runs-elsewhere.md).
//!
//! The visitor runs behind the pad (`armed`), so that whatever it does ends at [`came`]: its
//! registers go back to where its kernel state is, and the first processor is told. Nothing of
//! its space is left here then: the kernel's own root is loaded, in whose lower half nobody is.

use core::arch::asm;

use super::apic::{self, Message};
use super::armed::{self, PAD, PAD_TCB};
use super::asm::{fault_address, leave, read_bases, write_fs_base, write_gs_base};
use super::cpu::write_cr3;
use super::features::{self, Features};
use super::frame::{Frame, TrapFrame};
use super::paging::{Entry, KERNEL_HALF, Table};
use super::percpu::{cpu, set_current};
use super::tcbs::TcbRef;
use super::{iobitmap, mitigations, processors, special, vector, vectors};

const HELLO: u64 = vectors::HELLO as u64;

/// Lets a visitor in, if one may come: then this does not return. On the stack of the idle
/// thread, which goes on from its beginning afterwards.
pub fn welcome() {
    if let Some(name) = processors::own().berth.accept() {
        // SAFETY: the first processor has named a thread's tcb, which is this processor's until
        // it gives it back.
        run(unsafe { TcbRef::from_address(name) });
    }
}

/// Runs the user code of `visitor`.
fn run(visitor: TcbRef) -> ! {
    let slot = processors::own();
    let users = slot.users();
    let table = visitor.root.get().value() & Entry::ADDRESS;
    // Word by word: the first processor may add an entry meanwhile, which is found or not.
    (0..KERNEL_HALF).for_each(|at| Table(users).set(at, Table(table).get(at)));
    iobitmap::copy(Table(table), Table(users));
    // SAFETY: this processor's second root. The space's tables are not taken from it
    // while anybody of it is here.
    unsafe { write_cr3(users) };
    if mitigations::forgets_predictions() {
        mitigations::flush_predictions();
    }
    let fsgsbase = features::in_use().contains(Features::FSGSBASE);
    if visitor.is_foreign() {
        write_fs_base(visitor.own.fs_base.get());
        write_gs_base(visitor.own.gs_base.get(), fsgsbase);
    } else {
        write_gs_base(super::switch::gs_base(visitor), fsgsbase);
    }
    if visitor.uses_vector() {
        vector::load(visitor);
    }
    let (from, to) = (core::ptr::from_ref(visitor.frame()), armed::frame());
    // SAFETY: both are frames, of which only this processor knows now; cells may be written.
    unsafe { core::ptr::copy_nonoverlapping(from, core::ptr::from_ref(to).cast_mut(), 1) };
    special::close();
    let pad = &raw const PAD as u64 + PAD_TCB as u64;
    cpu().tss.rsp0.set(pad);
    // SAFETY: the frame below the pad's tcb leads to user mode, in the tables that are loaded.
    unsafe {
        asm!("mov rsp, {pad}", "jmp baton_frame_of_tcb", pad = in(reg) pad, options(noreturn))
    }
}

/// The visitor has entered the kernel, by whatever way, with its registers in `frame`, the pad's.
pub fn came(frame: Frame) -> ! {
    let slot = processors::own();
    // SAFETY: as in `welcome`: it has been accepted and not yet given back.
    let visitor = unsafe { TcbRef::from_address(slot.berth.visitor()) };
    let vector = frame.vector.get();
    visitor.fault_address.set(fault_address());
    let (from, to): (*const TrapFrame, *const TrapFrame) = (frame, visitor.frame());
    // SAFETY: as in `run`.
    unsafe { core::ptr::copy_nonoverlapping(from, to.cast_mut(), 1) };
    if visitor.is_foreign() {
        let (fs, gs) = read_bases();
        visitor.own.fs_base.set(fs);
        visitor.own.gs_base.set(gs);
    }
    write_fs_base(0);
    if visitor.uses_vector() {
        vector::save(visitor);
        vector::reset();
    }
    // SAFETY: the kernel's half is the same in both of this processor's roots.
    unsafe { write_cr3(slot.root()) };
    let Some(idle) = cpu().scheduler.idle.get() else { unreachable!("a processor idles first") };
    set_current(idle);
    slot.berth.give_back();
    let _ = apic::send(processors::apic_of(0), Message::Interrupt(vectors::HELLO));
    if vector == HELLO {
        apic::end();
        // If an errand was meant, it is done on the idle thread's stack: this one is small.
        apic::interrupt_self(vectors::HELLO);
    }
    leave(idle)
}
