//! Entries and exits of threads that exchange messages in user mode (`local`).
//!
//! While such a thread runs, the processor's current-thread pointer is not its tcb but the
//! [`PAD`], which is like one: entries store there what they know, and every way on leads to
//! [`enter`], which finds out who it is that has come. An entry of anybody else executes not one
//! instruction for that: an interrupt's frame lies exactly below a tcb, or it does not.

use abi::ThreadId;
use abi::syscall::Call;

use super::visitors;
use crate::arch::x86_64::asm::write_gs_base;
use crate::arch::x86_64::features::{self, Features};
use crate::arch::x86_64::local_paths::completion_point;
use crate::arch::x86_64::percpu::cpu;
use crate::arch::x86_64::thread::pad::{self, PAD};
use crate::arch::x86_64::thread::tcbs::TcbRef;
use crate::arch::x86_64::thread::{current, mend, special};
use crate::ipc;
use crate::local;
use crate::thread::rendezvous::{self, Busy};
use crate::thread::tcb::Resume;
use crate::usermem::Utcb;
use crate::{call, lrpc, unmap};

/// The bits of R8 that are timeouts: one more leads here (`stubs.S`).
const TIMEOUTS: u64 = 0xFFFF_FFFF;

/// How the assembly leaves the kernel for an armed thread ([`leave`]): numbers that are none of [`Resume`].
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Leaves {
    /// As [`Resume::Ipc`].
    Ipc = Resume::COUNT,
    /// As [`Resume::Frame`].
    Frame = Resume::COUNT + 1,
}

/// `next`, which is armed and current, is about to go on: as the value of [`Resume`] or
/// [`Leaves`] says that is returned.
pub fn leave(next: TcbRef) -> u64 {
    let leaves = match next.resume.get() {
        Resume::Ipc => Leaves::Ipc,
        Resume::Frame | Resume::Anew => Leaves::Frame,
        other => return other as u64,
    };
    local::show(next);
    rendezvous::set_armed_running(next);
    // What `beside.S` keeps of its registers it keeps there.
    next.vector_from.set(next.vector_initial.get());
    PAD.thread.set(Some(next));
    let (word, in_kernel) = next.space().map_or((0, 0), |space| space.task.current_word.places());
    PAD.word.set(in_kernel);
    write_gs_base(word, features::in_use().contains(Features::FSGSBASE));
    leaves as u64
}

/// An entry on the pad, with all registers in its frame: finds out who has come, and moves
/// the frame there. The thread that is returned is current.
pub extern "C" fn enter() -> TcbRef {
    let frame = pad::frame();
    // On another processor than the first a visitor runs there, or on a shadow.
    let Some(last) = PAD.thread.get() else { visitors::came(current().frame()) };
    rendezvous::set_busy(last, Busy::Ready);
    let current = last.space().map_or(ThreadId::NIL, |space| space.task.current_word.read());
    let hidden = current.0 != last.utcb.get();
    let claimed = if hidden { local::claimed(last, current) } else { None };
    let thread = claimed.unwrap_or(last);
    cpu().tss.rsp0.set(thread.address());
    mend::mend(frame, thread);
    if thread != last {
        local::handed_over(last, thread, completion_point());
    }
    if let Some(utcb) = Utcb::of(thread) {
        utcb.set_word(abi::utcb::LIPC_WAIT, abi::utcb::LIPC_RUNS);
    }
    // SAFETY: the pad's stack is nobody's, and cells may be written through references.
    unsafe { core::ptr::copy_nonoverlapping(frame, (&raw const *thread.frame()).cast_mut(), 1) };
    thread
}

/// A system call of `thread`, which is armed and has its registers in its frame; returns who
/// runs next.
pub extern "C" fn call(thread: TcbRef) -> TcbRef {
    let frame = thread.frame();
    let number = Call::decode(frame.r8.get());
    let is_unmap = number == Some(Call::Unmap);
    let visits = matches!(number, Some(Call::LrpcCall | Call::LrpcReturn));
    if frame.r8.get() >> 63 != 0 && !is_unmap && !visits {
        // The stub has moved RDI there.
        frame.rdi.set(frame.r14.get());
        return call::dispatch(thread, frame);
    }
    thread.ip.set(frame.ip.get());
    thread.sp.set(frame.sp.get());
    thread.flags.set(frame.flags.get());
    thread.resume.set(Resume::Ipc);
    if let Some(utcb) = Utcb::of(thread) {
        let words = [
            &frame.r9, &frame.rax, &frame.rbx, &frame.r10, &frame.r12, &frame.r13, &frame.r14,
            &frame.r15,
        ];
        (0..).zip(words).for_each(|(index, word)| utcb.set_mr(index, word.get()));
    }
    if is_unmap {
        return unmap::unmap(thread, frame.rdx.get());
    }
    if visits {
        return visit(thread, number, frame.rsi.get());
    }
    if thread.uses_vector() && frame.rdi.get() & 1 == 0 {
        local::keep_vector(thread);
        special::update(thread);
    } else if local::grow_weary(thread) {
        special::update(thread);
    }
    let (to, from) = (ThreadId(frame.rsi.get()), ThreadId(frame.rdx.get()));
    ipc::syscall::ipc(thread, to, from, frame.r8.get() & TIMEOUTS)
}

/// A procedure call or return of `thread`, which is armed, or whose user code runs elsewhere.
fn visit(thread: TcbRef, number: Option<Call>, word: u64) -> TcbRef {
    if number == Some(Call::LrpcCall) {
        lrpc::call(thread, word)
    } else {
        lrpc::give_back(thread, ThreadId(word))
    }
}
