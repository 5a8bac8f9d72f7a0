//! Foreign threads: threads of programs written for another system. Each of their
//! system calls becomes a message to their handler: seven words, the call's number and its
//! arguments (`arch::system_call_words`). The handler's answer is one word, the call's result;
//! every other register, the vector unit's included, comes back as it was, but for those that
//! the instruction itself changes. An answer without words leaves the result's register alone.
//! Map items in the answer are accepted anywhere.
//!
//! Faults and exceptions go to the same handler, and nothing is read from the thread's
//! UTCB, which the program can write. The thread cannot call this kernel at all; it has
//! registers of its own that others lack (`arch::OwnRegisters`; "Unix system calls are implemented by IPC", Liedtke 1995,
//! 3). Both ways have a fast path (`foreign.S`); this is the complete one.
//!
//! ThreadState makes a thread foreign, and reads and writes all its registers.

use abi::syscall::state as bit;
use abi::{CallError, ThreadId};

use super::ceiling;
use crate::arch::{Frame, SYSTEM_CALL_BYTES, all_registers, set_all_registers};
use crate::elsewhere;
use crate::ipc::{cancel, kernel_message, wait};
use crate::local;
use crate::lrpc;
use crate::space::{SpaceRef, controlled};
use crate::thread::rendezvous::{self, Busy, Waits};
use crate::thread::state::State;
use crate::thread::tcb::{Resume, USES_VECTOR, Vectors};
use crate::thread::{Kind, TcbRef, VECTOR_BYTES, vector_state};
use crate::usermem::{Utcb, copy_from_cells, copy_to_cells};

/// A system call of the current thread, in its frame, that the fast path leaves to
/// this one; returns who runs next.
pub extern "C" fn call(thread: TcbRef) -> TcbRef {
    crate::arch::note_entry();
    thread.resume.set(Resume::Frame);
    kernel_message::system_call(thread)
}

/// Carries out ThreadState: `control` says what (`abi::syscall::state`), `buffer` is
/// where the caller has the vector state.
///
/// # Errors
/// `InvalidThread` if `dest` names no thread, or the caller itself for anything but a
/// declaration; `NoPrivilege` if the caller may not control it, or not let it go on; `InvalidParameter` if the thread is in
/// no state for it, or the buffer is not there.
pub fn thread_state(
    caller: TcbRef,
    dest: ThreadId,
    control: u64,
    buffer: u64,
) -> Result<(), CallError> {
    let own = caller.space().ok_or(CallError::NoPrivilege)?;
    let thread = controlled(caller, dest, CallError::InvalidThread)?;
    if thread == caller {
        return declare(own, thread, control);
    }
    if control & bit::DECLARE != 0 {
        return Err(CallError::InvalidParameter);
    }
    elsewhere::recall(thread);
    let utcb = Utcb::of(caller).ok_or(CallError::NoPrivilege)?;
    if control & bit::FOREIGN != 0 {
        make_foreign(thread, caller)?;
    }
    if control & bit::STOP != 0 {
        if waits_for_time(thread) && ceiling::is_out_of_time(thread, caller) {
            return Err(CallError::NoPrivilege);
        }
        stop(thread)?;
    }
    if control & (bit::READ | bit::WRITE) != 0 {
        let frame = frame_at_rest(thread)?;
        if control & bit::READ != 0 {
            read(thread, frame, utcb);
        }
        if control & bit::WRITE != 0 {
            write(thread, frame, utcb);
        }
    }
    vector(own, thread, control, buffer)
}

/// Whether `thread` tells its scheduler that its quantum is used up, or will when it is picked: on another processor it
/// has made that entry.
fn waits_for_time(thread: TcbRef) -> bool {
    let has_entered = thread.resume.get() == Resume::Entered && thread.frame().is_out_of_time();
    thread.kind.get() == Kind::Preemption || has_entered
}

/// The caller says of itself and of the threads that its task will create whether they use
/// vector registers. Whoever says that it uses none, and uses them, finds there what others
/// have left who lied, too; nobody else's registers are ever concerned.
fn declare(own: SpaceRef, caller: TcbRef, control: u64) -> Result<(), CallError> {
    let vectors = match control {
        bit::NO_VECTOR => Vectors::Unused,
        bit::VECTOR => Vectors::Used,
        _ => return Err(CallError::InvalidThread),
    };
    own.task.no_vector.set(vectors == Vectors::Unused);
    local::start_anew(caller);
    lrpc::becomes_special(caller);
    crate::thread::declare_vector(caller, vectors);
    Ok(())
}

/// The register frame of a thread that is foreign and does not run.
fn frame_at_rest(thread: TcbRef) -> Result<Frame, CallError> {
    if !thread.is_foreign() || thread.transfer.part.get().is_some() {
        return Err(CallError::InvalidParameter);
    }
    thread.frame_if_used().ok_or(CallError::InvalidParameter)
}

/// The thread, which has not started yet, becomes foreign and waits for an answer of
/// `caller`, with all registers zero.
fn make_foreign(thread: TcbRef, caller: TcbRef) -> Result<(), CallError> {
    if !matches!(wait::state(thread), State::Waits(_))
        || thread.kind.get() != Kind::Start
        || Utcb::of(thread).is_none()
    {
        return Err(CallError::InvalidParameter);
    }
    // Armed, its calls would be taken for this kernel's.
    local::disarm(thread);
    thread.frame().reset();
    crate::thread::clear_vector(thread);
    thread.set_special(USES_VECTOR, true);
    thread.handler.set(caller.id.get());
    await_answer(thread);
    Ok(())
}

/// `thread`, whose registers are in its frame, waits for an answer of its handler.
fn await_answer(thread: TcbRef) {
    thread.kind.set(Kind::SystemCall);
    thread.resume.set(Resume::Frame);
    thread.partner.set(thread.handler.get());
    thread.then_from.set(thread.handler.get());
    rendezvous::set_busy(thread, Busy::Waiting);
}

/// Stops a foreign thread: afterwards it waits for an answer, as if it had made a call
/// that changed nothing. A call that the handler has not received yet is made again.
fn stop(thread: TcbRef) -> Result<(), CallError> {
    let frame = frame_at_rest(thread)?;
    match wait::state(thread) {
        State::Ready | State::BetweenPhases => await_answer(thread),
        State::Polls(_) => {
            cancel::leave_queue(thread);
            if thread.kind.get() == Kind::SystemCall {
                // Somebody may have written the register meanwhile: never the kernel's end.
                thread.set_user_ip(frame.ip.get().wrapping_sub(SYSTEM_CALL_BYTES));
            }
            await_answer(thread);
        }
        State::Waits(from) if from == thread.handler.get() => await_answer(thread),
        _ => return Err(CallError::InvalidParameter),
    }
    Ok(())
}

fn read(thread: TcbRef, frame: Frame, utcb: Utcb) {
    all_registers(frame, &thread.own, |index, word| utcb.set_mr(index, word));
}

fn write(thread: TcbRef, frame: Frame, utcb: Utcb) {
    set_all_registers(frame, &thread.own, |index| utcb.mr(index));
    // The reply's fast path returns with what a system call left in the registers that it changes.
    if wait::waits(thread) == Waits::Busy(Busy::Waiting) {
        rendezvous::set_busy(thread, Busy::Waiting);
    }
}

/// Copies the vector state out or in.
fn vector(own: SpaceRef, thread: TcbRef, control: u64, buffer: u64) -> Result<(), CallError> {
    if control & (bit::READ_VECTOR | bit::WRITE_VECTOR) == 0 {
        return Ok(());
    }
    frame_at_rest(thread)?;
    let (area, len) = vector_state(thread);
    // On the host there is no vector state.
    #[allow(clippy::unnecessary_min_or_max)]
    let area = area.get(..len.min(VECTOR_BYTES)).ok_or(CallError::InvalidParameter)?;
    if control & bit::READ_VECTOR != 0 {
        copy_from_cells(own, buffer, area).ok_or(CallError::InvalidParameter)?;
    }
    if control & bit::WRITE_VECTOR != 0 {
        let copied = copy_to_cells(own, buffer, area);
        crate::thread::sanitise_vector(thread);
        copied.ok_or(CallError::InvalidParameter)?;
    }
    Ok(())
}
