//! The usual way of a call between processors, without what only others need: a foreign thread that
//! runs elsewhere calls its handler, which waits, and goes back there with the answer.

use abi::inspect::Back;

use super::{LINE, Other, enter, has_left, keep_slice, keep_user_state, queue, wants_nothing_here};
use crate::arch::{self, TcbRef, cpu, current, visits};
use crate::ipc::rendezvous::{self, Busy};
use crate::ipc::words::Message;
use crate::ipc::{Kind, finish, send};
use crate::sched::{grant_slice, pick};
use crate::thread;
use crate::thread::tcb::Resume;

/// `guest` has come back by itself, or somebody on its slice. Returns whom it has told something, who is ready
/// now and not queued.
pub(super) fn has_come(number: u32, other: &Other, guest: TcbRef) -> Option<TcbRef> {
    let thread = has_left(number, other, guest);
    let calls = thread.is_foreign() && thread.frame().is_of_a_call();
    other.note_back(if calls { Back::Foreign } else { thread.frame().why_back() });
    let told = if calls { tell_handler(thread) } else { None };
    if told.is_none() {
        queue(number, other, thread);
    }
    told
}

/// `thread`, foreign, is back with a system call in its frame. If its handler waits for it, and is
/// more urgent, the handler has the message at once, as that of an interrupt: the thread itself need not
/// run here for that. Returns the handler then, who is ready.
fn tell_handler(thread: TcbRef) -> Option<TcbRef> {
    let handler = thread::lookup(thread.handler.get())?;
    let is_usual = handler.priority.get() > thread.priority.get()
        && handler.kind.get() == Kind::User
        && !handler.unusual.get()
        && !thread.halted.get()
        && thread.senders.is_empty();
    if !is_usual || !send::accepts(handler, thread) {
        return None;
    }
    arch::note_entry();
    thread.resume.set(Resume::Frame);
    thread.kind.set(Kind::SystemCall);
    thread.then_from.set(handler.id.get());
    finish::arrived(thread, handler, Message::made(Kind::SystemCall, thread));
    thread.partner.set(handler.id.get());
    rendezvous::set_busy(thread, Busy::Waiting);
    Some(handler)
}

/// The same for a processor that idles, if there is only one to which somebody has gone, and nothing else
/// to do: who runs next.
pub(super) fn only_one_has_come() -> Option<TcbRef> {
    let scheduler = &cpu().scheduler;
    let (number, other) = scheduler.guests.only()?;
    let guest = other.guest.get()?;
    let is_all = scheduler.ready.count() == 0 && scheduler.leaving.is_empty();
    if !is_all || scheduler.wanted.has(number) || !visits::berth(number).fetch() {
        return None;
    }
    let told = has_come(number, other, guest)?;
    grant_slice(told);
    Some(told)
}

/// `next`, another than the current thread, is about to run, and what has been noted is only that it goes on
/// elsewhere, where nobody is: then it goes there at once, and there is nothing to look at any more. Returns who
/// runs here instead.
#[must_use]
pub fn go_back(next: TcbRef) -> Option<TcbRef> {
    let (scheduler, noted) = (&cpu().scheduler, &cpu().pending_lines);
    let is_all = noted.get() == 1 << LINE && scheduler.leaving.is_only(next.id.get());
    let current = current();
    if !is_all || next == current || current.is_elsewhere() || !wants_nothing_here(next) {
        return None;
    }
    let number = u32::from(next.processor.get());
    let other = visits::other(number)?;
    let is_free = other.guest.get().is_none() && other.ready.count() == 0 && !other.rests();
    if !is_free || scheduler.guests.numbers().any(|number| visits::berth(number).has_returned()) {
        return None;
    }
    scheduler.leaving.clear();
    noted.set(0);
    keep_user_state(next);
    keep_slice(next);
    scheduler.ready.remove(next);
    rendezvous::set_away(next);
    enter(number, other, next);
    Some(pick())
}
