//! ExchangeRegisters (X.2 5.4): read and write a thread's registers, abort its
//! IPC, halt and resume it.

use abi::syscall::exregs as bit;
use abi::{Phase, ThreadId, utcb};

use super::ceiling;
use crate::elsewhere;
use crate::ipc::{cancel, handler_of, wait};
use crate::lrpc;
use crate::sched::{self};
use crate::thread::rendezvous::{self, Busy};
use crate::thread::state::State;
use crate::thread::{TcbRef, lookup, resolve};
use crate::usermem::Utcb;

/// Values in or out.
#[derive(Clone, Copy, Default)]
pub struct Registers {
    /// Control word.
    pub control: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Instruction pointer.
    pub ip: u64,
    /// Flags.
    pub flags: u64,
    /// UserDefinedHandle.
    pub handle: u64,
    /// Pager.
    pub pager: ThreadId,
}

/// Exchanges registers of `dest`; returns the thread's other name and the old values,
/// or `None` if the caller names no active thread that it may touch.
#[must_use]
pub fn exchange_registers(
    caller: TcbRef,
    dest: ThreadId,
    new: &Registers,
) -> Option<(ThreadId, Registers)> {
    let thread = resolve(caller, dest)?;
    let utcb = Utcb::of(thread)?;
    if State::seen(thread) == State::Inactive || !may(caller, thread) {
        return None;
    }
    elsewhere::recall(thread);
    let old = read(thread, utcb);
    if new.control & !bit::DELIVER != 0 {
        lrpc::changes(thread);
    }
    write(thread, utcb, new);
    // Who used up what a chief gave it goes on when that one says so.
    let stays = ceiling::is_out_of_time(thread, caller);
    if !stays && new.control & phase_bit(thread) != 0 {
        cancel::cancel(thread);
    }
    if new.control & bit::HALT_VALID != 0 {
        match new.control & bit::HALT != 0 {
            true => halt(thread),
            false if stays => {}
            false => resume(thread),
        }
    }
    let name = if dest.is_local() { thread.id.get() } else { ThreadId::local(thread.utcb.get()) };
    Some((name, old))
}

/// Threads of the same space may, those of the pager's space, and those of the chiefs.
fn may(caller: TcbRef, thread: TcbRef) -> bool {
    if caller.same_space(thread) {
        return true;
    }
    let pagers =
        lookup(handler_of(thread, utcb::PAGER)).is_some_and(|pager| pager.same_space(caller));
    pagers || caller.space().is_some_and(|space| space.may_control(thread.space()).is_ok())
}

fn read(thread: TcbRef, utcb: Utcb) -> Registers {
    let (ip, sp) = thread.user_ip_sp();
    let halted = thread.halted.get() || wait::state(thread) == State::Halted;
    Registers {
        control: phase_bit(thread) | if halted { bit::HALT } else { 0 },
        sp,
        ip,
        flags: thread.user_flags(),
        handle: utcb.word(utcb::USER_DEFINED_HANDLE),
        pager: utcb.thread(utcb::PAGER),
    }
}

/// The bit of `control` that stands for the phase of an IPC that `thread` is in.
fn phase_bit(thread: TcbRef) -> u64 {
    match cancel::phase(thread) {
        Some(Phase::Send) => bit::ABORT_SEND,
        Some(Phase::Receive) => bit::ABORT_RECEIVE,
        None => 0,
    }
}

fn write(thread: TcbRef, utcb: Utcb, new: &Registers) {
    if new.control & bit::SP != 0 {
        thread.set_user_sp(new.sp);
    }
    if new.control & bit::IP != 0 {
        thread.set_user_ip(new.ip);
    }
    if new.control & bit::FLAGS != 0 {
        thread.set_user_flags(new.flags);
    }
    if new.control & bit::HANDLE != 0 {
        utcb.set_word(utcb::USER_DEFINED_HANDLE, new.handle);
    }
    if new.control & bit::PAGER != 0 {
        utcb.set_word(utcb::PAGER, new.pager.0);
    }
}

/// Halts `thread`: a ready one at once, one in an IPC when that ends.
fn halt(thread: TcbRef) {
    thread.halt();
    match wait::state(thread) {
        State::Ready => rendezvous::set_busy(thread, Busy::Halted),
        // The fast path must not wake it: only the complete path may see the wait.
        State::Waits(from) => {
            thread.partner.set(from);
            rendezvous::set_busy(thread, Busy::Waiting);
        }
        State::Inactive | State::Halted => {}
        State::BetweenPhases | State::Polls(_) | State::Transfers(_) => {}
        State::Calls | State::Lent => {}
    }
}

/// Resumes `thread` if it is halted.
fn resume(thread: TcbRef) {
    thread.unhalt();
    if wait::state(thread) == State::Halted {
        sched::make_ready(thread);
    }
}
