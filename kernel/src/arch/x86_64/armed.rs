//! Entries and exits of threads that exchange messages in user mode (`ipc::local`).
//!
//! While such a thread runs, the processor's current-thread pointer is not its tcb but the
//! [`Pad`], which is like one: entries store there what they know, and every way on leads to
//! [`enter`], which finds out who it is that has come. An entry of anybody else executes not one
//! instruction for that: an interrupt's frame lies exactly below a tcb, or it does not.

use core::cell::Cell;
use core::mem::{offset_of, size_of};

use abi::ThreadId;
use abi::layout::stub_address;
use abi::syscall::Call;

use super::asm::write_gs_base;
use super::features::{self, Features};
use super::frame::{FRAME_SIZE, Frame, TrapFrame, USER_CS, USER_SS};
use super::local_paths::{Hands, LOCAL_PATHS, LocalPath, completion_point, is_behind_trap};
use super::percpu::{self, cpu};
use super::special;
use super::tcbs::TcbRef;
use super::visitors;
use crate::ipc::rendezvous::{self, Busy};
use crate::ipc::{self, local};
use crate::thread::tcb::{Resume, TCB_SIZE, Tcb};
use crate::usermem::Utcb;
use crate::{call, lrpc, unmap};

/// Bytes of stack below the pad's tcb; together they end before the page does, so that no
/// frame on the pad is taken for one below a tcb.
const STACK: usize = 4096 - TCB_SIZE - 64;
const _: () = assert!(STACK.is_multiple_of(64));
/// Vector of a single step.
const DEBUG: u64 = 1;
/// The bits of R8 that are timeouts: one more leads here (`stubs.S`).
const TIMEOUTS: u64 = 0xFFFF_FFFF;
/// A handler that nobody is: entries of a thread with a handler leave the common way.
pub(super) const NOBODY: ThreadId = ThreadId(0x40);

/// What stands in for the tcb of an armed thread while that runs.
#[repr(C, align(4096))]
pub struct Pad {
    stack: Cell<[u8; STACK]>,
    tcb: [Cell<u64>; size_of::<Tcb>() / 8],
    /// Who runs, unless somebody has taken its place in user mode; none on other processors than
    /// the first.
    thread: Cell<Option<TcbRef>>,
    /// Where the current word of its space is in the kernel's map of physical memory.
    word: Cell<u64>,
}

/// Offset of the pad's tcb.
pub const PAD_TCB: usize = offset_of!(Pad, tcb);
/// Offset of the thread that runs.
pub const PAD_THREAD: usize = offset_of!(Pad, thread);
/// Offset of where its space's current word is.
pub const PAD_WORD: usize = offset_of!(Pad, word);
const _: () = assert!(size_of::<Tcb>() <= TCB_SIZE && !(PAD_TCB + TCB_SIZE).is_multiple_of(4096));

// SAFETY: the processor's own, used with interrupts off.
unsafe impl Sync for Pad {}

/// The processor's pad.
pub static PAD: Pad = Pad {
    stack: Cell::new([0; STACK]),
    tcb: [const { Cell::new(0) }; size_of::<Tcb>() / 8],
    thread: Cell::new(None),
    word: Cell::new(0),
};

/// The address of the pad's page.
#[must_use]
pub fn page() -> u64 {
    &raw const PAD as u64
}

/// Prepares this processor's pad.
pub fn init() {
    PAD.tcb[offset_of!(Tcb, handler) / 8].set(NOBODY.0);
    let at = offset_of!(Tcb, stands_in);
    PAD.tcb[at / 8].set(1 << (at % 8 * 8));
    let frame = frame();
    frame.cs.set(u64::from(USER_CS));
    frame.ss.set(u64::from(USER_SS));
}

/// The register frame of an entry on the pad.
pub(super) fn frame() -> Frame {
    let tcb = &raw const PAD.tcb as u64;
    // SAFETY: the frame lies in the pad's stack, aligned.
    unsafe { &*((tcb - FRAME_SIZE as u64) as *const TrapFrame) }
}

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
    let frame = frame();
    // On another processor than the first a visitor runs there, or on a shadow.
    let Some(last) = PAD.thread.get() else { visitors::came(percpu::current().frame()) };
    rendezvous::set_busy(last, Busy::Ready);
    let current = last.space().map_or(ThreadId::NIL, |space| space.task.current_word.read());
    let hidden = current.0 != last.utcb.get();
    let claimed = if hidden { local::claimed(last, current) } else { None };
    let thread = claimed.unwrap_or(last);
    cpu().tss.rsp0.set(thread.address());
    mend(frame, thread);
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

/// If `thread` was interrupted in a path of local IPC, in which nothing counts before the
/// forward point and all behind it (2002, 4.3): back to the restart point, or on to the
/// completion point. A single step goes on in the kernel, or it would never get further.
#[inline(always)]
pub(super) fn mend(frame: Frame, thread: TcbRef) {
    let ip = frame.ip.get();
    if ip < stub_address(0) || is_behind_trap(ip) {
        return;
    }
    for path in &LOCAL_PATHS {
        if path.is_before(ip) {
            let stepped = frame.vector.get() == DEBUG;
            frame.ip.set(if stepped { path.slow() } else { path.restart() });
        } else if path.is_behind(ip) {
            complete(frame, thread, path);
        }
    }
}

/// Takes `thread`, to whom `path` has handed over, to the completion point.
fn complete(frame: Frame, thread: TcbRef, path: &LocalPath) {
    let receiver = match path.hands {
        Hands::Message => &frame.rsi,
        Hands::Work => &frame.rbp,
        Hands::End => &frame.rbx,
    };
    if receiver.get() != thread.utcb.get() {
        return;
    }
    match path.hands {
        Hands::Message => {
            frame.rsi.set(frame.rdi.get());
            frame.rdi.set(thread.utcb.get());
        }
        Hands::Work => {}
        Hands::End => frame.r9.set(0),
    }
    frame.sp.set(local::public_sp(thread));
    frame.ip.set(path.done());
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
