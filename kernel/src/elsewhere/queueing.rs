//! The queues of those who are ready, as other processors' threads come and go: what changes them is here once, for it
//! is short where it is called often, and would be most of what is written where it is not.

use abi::ThreadId;

use crate::sched;
use crate::sched::ready::ReadyQueue;
use crate::thread;
use crate::thread::TcbRef;

/// As [`ReadyQueue::first_queued`].
#[inline(never)]
pub(super) fn first(queue: &ReadyQueue) -> Option<TcbRef> {
    queue.first_queued()
}

/// As [`ReadyQueue::remove`].
#[inline(never)]
pub(super) fn remove(queue: &ReadyQueue, thread: TcbRef) {
    queue.remove(thread);
}

/// As [`sched::make_ready`].
#[inline(never)]
pub fn make_ready(thread: TcbRef) {
    sched::make_ready(thread);
}

/// As [`sched::requeue`].
#[inline(never)]
pub fn requeue(thread: TcbRef) {
    sched::requeue(thread);
}

/// As [`thread::lookup`].
#[inline(never)]
pub(super) fn lookup(id: ThreadId) -> Option<TcbRef> {
    thread::lookup(id)
}
