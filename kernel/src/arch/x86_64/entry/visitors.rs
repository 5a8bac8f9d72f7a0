//! A processor that runs the user code of the first one's threads, one at a time
//! (docs/decisions/0055-user-code-runs-elsewhere.md).
//!
//! One that is alone runs behind the pad (`armed`), so that whatever it does ends at [`came`]: its
//! registers go back to where its kernel state is, and the first processor is told. Nothing of
//! its space is left here then: the kernel's own root is loaded, in whose lower half nobody is.
//!
//! One that comes with others runs on its shadow (`seats`): what the fast paths serve stays here, and
//! all else ends at [`came`], too.

use core::arch::asm;
use core::hint::spin_loop;

use super::{asked, switch};
use crate::arch::preemption;
use crate::arch::x86_64::apic::{self, Message};
use crate::arch::x86_64::asm::{
    copy_frame, fault_address, read_bases, write_fs_base, write_gs_base,
};
use crate::arch::x86_64::cpu::{read_cr3, write_cr3};
use crate::arch::x86_64::elsewhere::seats;
use crate::arch::x86_64::features::{self, Features};
use crate::arch::x86_64::frame::{FRAME_SIZE, Frame, USER_CS, USER_SS, VECTOR_CALL};
use crate::arch::x86_64::paging::{Entry, Table};
use crate::arch::x86_64::percpu::cpu;
use crate::arch::x86_64::thread::pad::{self, PAD, PAD_TCB};
use crate::arch::x86_64::thread::tcbs::TcbRef;
use crate::arch::x86_64::thread::{current, leave, set_current, special, vector};
use crate::arch::x86_64::{mitigations, slots, vectors, xsave};
use crate::between::berth::{Berth, OtherSide, Stand};
use crate::irq::watch::LOOKS;

const HELLO: u64 = vectors::HELLO as u64;
const LINE: u64 = vectors::LINE as u64;

/// Lets a visitor in, if one may come: then this does not return. On the stack of the idle
/// thread, which goes on from its beginning afterwards.
#[inline(never)] // at three places
pub fn welcome() {
    if let Some(name) = slots::own().berth.accept() {
        match seats::come_in() {
            Some(shadow) => run_together(shadow),
            // SAFETY: the first processor has named a thread's tcb, which is this processor's until
            // it gives it back.
            None => run_alone(unsafe { TcbRef::from_address(name) }),
        }
    }
}

/// Runs the user code of `visitor`, behind the pad.
fn run_alone(visitor: TcbRef) -> ! {
    let users = seats::show_space(0, Table::at(visitor.root.get().value() & Entry::ADDRESS));
    load(visitor, users.address());
    special::close();
    enter(&raw const PAD as u64 + PAD_TCB as u64, visitor.frame())
}

/// Runs the user code of whose shadow `shadow` is, which the fast paths of this processor know.
fn run_together(shadow: TcbRef) -> ! {
    load(shadow, shadow.root.get().value());
    special::update_shadow(shadow);
    enter(shadow.address(), shadow.frame())
}

/// Loads what `visitor` has in registers that are in no frame, and the root table `root`.
fn load(visitor: TcbRef, root: u64) {
    // SAFETY: a root of this processor's. The space's tables are not taken from it
    // while anybody of it is here.
    unsafe { write_cr3(root) };
    if mitigations::forgets_predictions() {
        mitigations::flush_predictions();
    }
    let fsgsbase = features::in_use().contains(Features::FSGSBASE);
    // A shadow has a handler that nobody is.
    if visitor.is_foreign() && !visitor.stands_in.get() {
        write_fs_base(visitor.own.fs_base.get());
        write_gs_base(visitor.own.gs_base.get(), fsgsbase);
    } else {
        write_gs_base(switch::gs_base(visitor), fsgsbase);
    }
    if visitor.uses_vector() {
        vector::load(visitor);
    }
}

/// Makes the tcb at `address` current, which returns from an IPC as all that run do, and leaves the kernel by
/// `frame`, which need not lie below it.
fn enter(address: u64, frame: Frame) -> ! {
    cpu().tss.rsp0.set(address);
    // SAFETY: the frame leads to user mode, in the tables that are loaded; nobody uses this stack any more.
    unsafe {
        asm!("mov rsp, {frame}", "jmp baton_pop_frame", frame = in(reg) frame, options(noreturn))
    }
}

/// The visitor has met an exception or an interrupt, with its registers in `frame`. It goes on if nobody wants
/// anything: the first processor has said that somebody may come, has taken him back, and has said the same of
/// this one, whom the second of two interrupts would send home.
pub extern "C" fn met(frame: Frame) {
    let own = slots::own();
    let vector = frame.vector.get();
    if passes_on(vector) {
        return;
    }
    let is_late = vector == HELLO && !own.berth.is_called() && !own.errands.is_asked();
    if !is_late {
        came(frame);
    }
    // Whoever wants something from now on interrupts again.
    apic::end();
}

/// Whether `vector` is that of a device's line and this is not the first processor, which gets the interrupt then:
/// a driver may have named any processor in its device's message.
pub fn passes_on(vector: u64) -> bool {
    let is_another = cpu().number.get() != 0 && (LINE..HELLO).contains(&vector);
    if is_another {
        apic::end();
        let _ = apic::send(slots::apic_of(0), Message::Interrupt(vector as u8));
    }
    is_another
}

/// The visitor, or somebody who came with it, has entered the kernel, by whatever way, with its
/// registers in `frame`, below the current tcb.
pub extern "C" fn came(frame: Frame) -> ! {
    let vector = frame.vector.get();
    let current = current();
    if core::ptr::eq(frame, pad::frame()) {
        // SAFETY: as in `welcome`: it has been accepted and not yet given back.
        let visitor = unsafe { TcbRef::from_address(slots::own().berth.visitor()) };
        if vector == VECTOR_CALL {
            // What an exception of another visitor has left there.
            frame.error.set(0);
        }
        copy_frame(frame, visitor.frame());
        keep(visitor);
    } else {
        keep(current);
        set_entry(current);
    }
    write_fs_base(0);
    // SAFETY: the kernel's half is the same in all of this processor's roots.
    unsafe { write_cr3(slots::own().root()) };
    let Some(idle) = cpu().scheduler.idle.get() else { unreachable!("a processor idles first") };
    set_current(idle);
    // What is given back is the stack, too, if it is a shadow's.
    let stack = idle.address() - FRAME_SIZE as u64;
    // SAFETY: nobody is on the idle thread's stack, whose end is aligned for a call.
    unsafe {
        asm!("mov rsp, {stack}", "call {give_back}", "ud2", stack = in(reg) stack,
            give_back = sym give_back, in("rdi") vector, options(noreturn))
    }
}

/// Tables are about to change that whoever was interrupted here uses, with its registers in `frame`: it stands still
/// until it may go on, and is not here any more if it is called meanwhile. This processor has its own
/// root loaded meanwhile, for it may walk tables at any time. It waits for the first one, which answers
/// interrupts, and looks at what an interrupt would tell it.
pub extern "C" fn stand_still(frame: Frame) {
    apic::end();
    let own = slots::own();
    // Whoever was to stop may have come back by itself before this, and somebody else be here, who goes on.
    if frame.is_users() {
        let users = read_cr3();
        // SAFETY: the kernel's half is the same in all of this processor's roots.
        unsafe { write_cr3(own.root()) };
        loop {
            match own.berth.stand() {
                Stand::GoesOn => break,
                Stand::Still if !own.errands.is_asked() => spin_loop(),
                _ => came(frame),
            }
        }
        seats::look_again();
        // SAFETY: it was loaded, and shows the visitors' tables as they are now.
        unsafe { write_cr3(users) };
    }
}

/// If `shadow` has made a system call, its frame says from where: a fast path that has refused it has used
/// the registers from which that was taken (`path.S`), and the tcb had it before.
fn set_entry(shadow: TcbRef) {
    let frame = shadow.frame();
    if frame.vector.get() == VECTOR_CALL {
        frame.error.set(0);
        // One that was about to copy a string had its stack there (`string.S`).
        frame.cs.set(u64::from(USER_CS));
        frame.ss.set(u64::from(USER_SS));
        frame.ip.set(shadow.ip.get());
        frame.rcx.set(shadow.ip.get());
        frame.sp.set(shadow.sp.get());
        frame.flags.set(shadow.flags.get());
        frame.r11.set(shadow.flags.get());
    }
}

/// Keeps of `visitor` what is in registers that are in no frame; nothing of it stays there.
fn keep(visitor: TcbRef) {
    visitor.fault_address.set(fault_address());
    if visitor.is_foreign() {
        let (fs, gs) = read_bases();
        visitor.own.fs_base.set(fs);
        visitor.own.gs_base.set(gs);
    }
    if visitor.uses_vector() {
        vector::save(visitor);
        xsave::reset();
    }
}

/// Nothing of the visitor is here any more: the first processor may have it. For a while this one
/// looks whether another comes.
extern "C" fn give_back(vector: u64) -> ! {
    let berth = &slots::own().berth;
    if berth.give_back() == OtherSide::IsAway {
        slots::interrupt(0);
    }
    if vector == HELLO {
        apic::end();
        // An errand may have been meant.
        asked::serve();
    }
    look_out(berth);
    leave(current())
}

/// Lets in who comes soon, without having to be interrupted; then this does not return.
fn look_out(berth: &Berth) {
    for _ in 0..LOOKS {
        if berth.is_offered() {
            welcome();
        }
        preemption::let_in();
        spin_loop();
    }
    while !berth.leave() {
        welcome();
    }
}
