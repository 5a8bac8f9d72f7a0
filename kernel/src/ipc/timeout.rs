//! Timeouts of IPC: of the rendezvous (X.2 4.7) and of a transfer that meets
//! missing pages (4.5).

use abi::time::Deadline;
use abi::{IpcErrorKind, Phase, Timeouts, utcb};

use super::{cancel, fail_early};
use crate::arch::clock;
use crate::ipc::wait;
use crate::sched::{self, early};
use crate::thread::TcbRef;
use crate::thread::state::State;
use crate::usermem::Utcb;

/// The wakeup time of `thread` has come (called from the tick).
pub fn expired(thread: TcbRef) {
    if thread.wake_is_transfer.replace(false) && thread.transfer.part.get().is_some() {
        cancel::time_out_transfer(thread);
        return;
    }
    let phase = match wait::state(thread) {
        State::Polls(_) => Phase::Send,
        State::Waits(_) => Phase::Receive,
        _ => return,
    };
    cancel::leave_queue(thread);
    fail_early(thread, IpcErrorKind::Timeout, phase);
    sched::requeue(thread);
}

/// At the first page fault of a message, decides which transfer timeout governs:
/// the earlier of the sender's for sending and the receiver's for receiving, the
/// sender's on a tie. An error if it is zero.
pub fn start_transfer_timeout(sender: TcbRef, receiver: TcbRef) -> Result<(), IpcErrorKind> {
    if sender.transfer.deadline_us.get() != 0 {
        return Ok(());
    }
    let now_us = clock::now_us();
    let limit = |thread: TcbRef| {
        Timeouts(Utcb::of(thread).map_or(0, |utcb| utcb.word(utcb::XFER_TIMEOUTS)))
    };
    let own = at(limit(sender).send().deadline(now_us));
    let partner = at(limit(receiver).receive().deadline(now_us));
    sender.transfer.receiver_governs.set(partner < own);
    let deadline = own.min(partner);
    if deadline == 0 {
        return Err(expired_kind(sender));
    }
    sender.transfer.deadline_us.set(deadline);
    Ok(())
}

/// Arms the transfer's deadline on the thread that waits for its pager.
pub fn arm_transfer_timeout(sender: TcbRef, faulter: TcbRef) {
    let deadline = sender.transfer.deadline_us.get();
    if deadline != u64::MAX {
        early::wake_at(faulter, deadline);
        faulter.wake_is_transfer.set(true);
    }
}

/// Arms it again for `faulter`, which now waits for its pager's answer.
pub fn rearm_transfer_timeout(faulter: TcbRef) {
    if let Some(part) = faulter.transfer.part.get() {
        arm_transfer_timeout(part.pair(faulter).0, faulter);
    }
}

/// The sender's view of an expired transfer timeout.
#[must_use]
pub fn expired_kind(sender: TcbRef) -> IpcErrorKind {
    if sender.transfer.receiver_governs.get() {
        IpcErrorKind::XferTimeoutPartner
    } else {
        IpcErrorKind::XferTimeoutOwn
    }
}

/// A deadline as a clock value: 0 now, `u64::MAX` never.
fn at(deadline: Deadline) -> u64 {
    match deadline {
        Deadline::Now => 0,
        Deadline::At(us) => us,
        Deadline::Never => u64::MAX,
    }
}
