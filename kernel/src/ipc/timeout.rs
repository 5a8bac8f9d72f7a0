//! Timeouts of IPC: of the rendezvous (X.2 4.7) and of a transfer that meets
//! missing pages (4.5).

use abi::time::Deadline;
use abi::{IpcErrorKind, Phase, Timeouts, utcb};

use super::rendezvous::{self, Busy, Waits};
use super::transfer::Role;
use super::{cancel, fail_early, queue};
use crate::arch::{TcbRef, cpu};
use crate::usermem::Utcb;
use crate::{clock, sched, thread};

/// The wakeup time of `thread` has come (called from the tick).
pub fn expired(thread: TcbRef) {
    if thread.wake_is_transfer.replace(false) && thread.transfer.role.get() != Role::None {
        cancel::time_out_transfer(thread);
        return;
    }
    match rendezvous::waits(thread) {
        Waits::Busy(Busy::Polling) => {
            if let Some(receiver) = thread::lookup(thread.partner.get()) {
                queue::remove(receiver, thread);
            }
            fail_early(thread, IpcErrorKind::Timeout, Phase::Send);
            sched::requeue(thread);
        }
        Waits::Busy(Busy::Waiting) => {
            fail_early(thread, IpcErrorKind::Timeout, Phase::Receive);
            sched::requeue(thread);
        }
        _ => {}
    }
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
        cpu().scheduler.wakeup.insert(faulter, deadline);
        faulter.wake_is_transfer.set(true);
    }
}

/// Arms it again for `faulter`, which now waits for its pager's answer.
pub fn rearm_transfer_timeout(faulter: TcbRef) {
    match (faulter.transfer.role.get(), faulter.transfer.peer.get()) {
        (Role::Sender, _) => arm_transfer_timeout(faulter, faulter),
        (Role::Receiver, Some(sender)) => arm_transfer_timeout(sender, faulter),
        _ => {}
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
