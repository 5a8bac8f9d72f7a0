//! Messages that the kernel sends for a thread (X.2 6): page fault, I/O fault,
//! exception, preemption, fault in a transfer. Each is a call of the thread to a
//! handler, with infinite timeouts; the thread's own message registers stay as
//! they are, since the words come from and go to elsewhere (`words`).

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{Fpage, IpcErrorKind, MsgTag, Rights, ThreadId, protocol, utcb};

use super::transfer::Side;
use super::words::Message;
use super::{cancel, handler_of, send};
use crate::arch::{clock, log};
use crate::mem::Access;
use crate::sched::waker;
use crate::thread::rendezvous::{self, Busy};
use crate::thread::tcb::Resume;
use crate::thread::{Kind, TcbRef};
use crate::{lrpc, sched};

/// The instruction pointer reported for a fault in the receiver's string buffer (X.2 4.5).
const RECEIVER_FAULT_IP: u64 = !0;
/// The instruction pointer reported for a fault in the sender's string: an address of the kernel.
const SENDER_FAULT_IP: u64 = 0xFFFF_FFFF_8000_0000;

/// A page fault of the current thread in user mode; returns who runs next.
#[must_use]
#[inline(never)]
pub fn page_fault(thread: TcbRef, address: u64, access: Rights, ip: u64) -> TcbRef {
    set_words(thread, fault_tag(access), address, ip);
    call(thread, Kind::PageFault, handler_of(thread, utcb::PAGER))
}

/// An access of the current thread to ports it does not have.
#[must_use]
pub fn io_fault(thread: TcbRef, ports: Fpage, ip: u64) -> TcbRef {
    set_words(thread, MsgTag::protocol(protocol::IO_FAULT, 6, 2, 0), ports.0, ip);
    call_rarely(thread, Kind::IoFault, handler_of(thread, utcb::PAGER))
}

/// A page missing in a transfer, at `faulter`'s side.
#[must_use]
pub fn transfer_fault(faulter: TcbRef, address: u64, access: Access, side: Side) -> TcbRef {
    let ip = match side {
        Side::Sender => SENDER_FAULT_IP,
        Side::Receiver => RECEIVER_FAULT_IP,
    };
    set_words(faulter, fault_tag(access.right()), address, ip);
    call_rarely(faulter, Kind::TransferFault, handler_of(faulter, utcb::PAGER))
}

const fn fault_tag(access: Rights) -> MsgTag {
    MsgTag::protocol(protocol::PAGE_FAULT, access.0 as u32, 2, 0)
}

fn set_words(thread: TcbRef, tag: MsgTag, word1: u64, word2: u64) {
    thread.message[0].set(tag.0);
    thread.message[1].set(word1);
    thread.message[2].set(word2);
}

/// An exception of the current thread; its registers are in its frame.
#[must_use]
#[inline(never)]
pub fn exception(thread: TcbRef) -> TcbRef {
    call(thread, Kind::Exception, handler_of(thread, utcb::EXCEPTION_HANDLER))
}

/// The current thread's total quantum is used up: its scheduler decides (X.2 6.6).
#[must_use]
pub fn preemption(thread: TcbRef) -> TcbRef {
    set_words(thread, MsgTag::protocol(protocol::PREEMPTION, 0, 2, 0), clock::now_us(), 0);
    call_rarely(thread, Kind::Preemption, thread.scheduler.get())
}

/// A system call of the current, foreign thread; its registers are in its frame.
#[must_use]
pub fn system_call(thread: TcbRef) -> TcbRef {
    call_rarely(thread, Kind::SystemCall, thread.handler.get())
}

/// The current thread asks `clerk` for a binding; its call's arguments are in its frame.
#[must_use]
pub fn bind(thread: TcbRef, clerk: ThreadId) -> TcbRef {
    thread.message.iter().for_each(|word| word.set(0));
    call_rarely(thread, Kind::Bind, clerk)
}

/// Sends the message of `kind` to `handler` and waits for its reply.
#[inline(always)]
fn call(thread: TcbRef, kind: Kind, handler: ThreadId) -> TcbRef {
    thread.kind.set(kind);
    thread.then_from.set(handler);
    send::send(thread, Message::made(kind, thread), handler)
}

/// The same where few instructions are not worth a copy of all that.
#[inline(never)]
fn call_rarely(thread: TcbRef, kind: Kind, handler: ThreadId) -> TcbRef {
    call(thread, kind, handler)
}

/// A kernel-made message of `thread` can't be delivered or answered. Without a
/// handler there is nothing the thread could do, so it halts, and the log says why.
pub fn failed(thread: TcbRef, why: IpcErrorKind) {
    let kind = thread.kind.replace(Kind::User);
    match kind {
        Kind::TransferFault if why == IpcErrorKind::NonExisting => {
            cancel::abort_transfer(thread, IpcErrorKind::Aborted);
        }
        Kind::User | Kind::TransferFault => sched::set_runnable(thread),
        // Without an answer's words it is refused.
        Kind::Bind => {
            thread.resume.set(Resume::Bind);
            sched::set_runnable(thread);
        }
        // An interrupt has no code of its own: its message is lost.
        Kind::Interrupt => {
            thread.kind.set(kind);
            rendezvous::set_busy(thread, Busy::Halted);
        }
        Kind::Start => {
            // Nobody is left to say where it starts: it rests until ExchangeRegisters does.
            match why {
                IpcErrorKind::NonExisting => thread.halt(),
                _ => thread.unhalt(),
            }
            thread.resume.set(kind.home());
            sched::set_runnable(thread);
        }
        Kind::PageFault | Kind::IoFault | Kind::Exception | Kind::Preemption | Kind::SystemCall => {
            if why == IpcErrorKind::NonExisting {
                // Once: a thread that is resumed without a handler must not flood the log.
                if !thread.reported.replace(true) && may_report(clock::now_us()) {
                    report(thread, kind);
                    waker::write_log();
                }
                thread.halt();
                lrpc::fail_visit(thread);
            }
            thread.resume.set(kind.home());
            sched::set_runnable(thread);
        }
    }
}

/// Reports at once, and how often one more is due, µs. A line takes as long as the
/// serial port needs for it: users decide how many threads halt,
/// but not how much of the processor's time goes into telling.
const REPORTS: u64 = 60;
const REPORT_EVERY_US: u64 = 1_000_000;
static REPORTED: AtomicU64 = AtomicU64::new(0);

/// Whether there is room in the log for one more report of a halted thread.
#[must_use]
pub fn may_report(now_us: u64) -> bool {
    let reported = REPORTED.load(Ordering::Relaxed);
    let room = reported < REPORTS + now_us / REPORT_EVERY_US;
    if room {
        REPORTED.store(reported + 1, Ordering::Relaxed);
    }
    room
}

fn report(thread: TcbRef, kind: Kind) {
    let frame = thread.frame();
    let id = thread.id.get();
    match kind {
        Kind::PageFault | Kind::IoFault => log::note(format_args!(
            "baton: thread {id} halted: it touched {:#x} at ip {:#x} and its pager does not exist; give it a pager\n",
            thread.message[1].get(),
            frame.ip.get()
        )),
        _ => log::note(format_args!(
            "baton: thread {id} halted: exception {} (error {:#x}) at ip {:#x} and no exception handler exists; set one\n",
            frame.vector.get(),
            frame.error.get(),
            frame.ip.get()
        )),
    }
}
