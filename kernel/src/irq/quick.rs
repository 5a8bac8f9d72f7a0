//! The usual way of a message between processors, without what only others need: a thread that runs
//! elsewhere is back with a message for somebody here who waits for it, and waits for the answer; how it goes
//! back there with that is [`crate::elsewhere::go_back`].

use abi::inspect::Back;
use abi::{MsgTag, ThreadId};

use crate::arch::exchange::Exchange;
use crate::arch::{self, cpu};
use crate::elsewhere::{Other, has_left, queue, requeue};
use crate::ipc::words::Message;
use crate::ipc::{finish, send};
use crate::sched::{self, grant_slice};
use crate::thread;
use crate::thread::rendezvous::{self, Busy};
use crate::thread::tcb::{ELSEWHERE, Resume, USES_VECTOR};
use crate::thread::{Kind, TcbRef, current};

/// `guest` has come back by itself, or somebody on its slice. Returns whom it has told something, who is ready
/// now and not queued.
pub(super) fn has_come(number: u32, other: &Other, guest: TcbRef) -> Option<TcbRef> {
    let thread = has_left(number, other, guest);
    let calls = thread.is_foreign() && thread.frame().is_of_a_call();
    let why = if calls { Back::Foreign } else { thread.frame().why_back() };
    other.note_back(why);
    let told = pass_on(thread, why);
    if told.is_none() {
        queue(number, other, thread);
    }
    told
}

/// Whether `thread`, which is back, may tell `receiver` something without running here. It
/// would pass on its slice, and who has a message without that waits behind others of its priority: so
/// only somebody who is more urgent, or if nobody else wants the processor.
#[inline(always)]
fn may_tell(thread: TcbRef, receiver: TcbRef) -> bool {
    (receiver.priority.get() > thread.priority.get() || nobody_waits())
        && receiver.kind.get() == Kind::User
        && !receiver.unusual.get()
        && !thread.halted.get()
        && thread.senders.is_empty()
        && send::accepts(receiver, thread)
}

/// Whether the first processor idles, and nobody is ready.
fn nobody_waits() -> bool {
    let scheduler = &cpu().scheduler;
    scheduler.ready.count() == 0
        && scheduler.leaving.is_empty()
        && scheduler.idle.get() == Some(current())
}

/// `thread` is back, for `why`. If that is a message of words in its registers to somebody who waits for it, and the
/// thread then waits for the answer or for anybody, or a foreign thread's system call, for which its handler waits, that one
/// has the message at once, as that of an interrupt: the thread itself need not run here for it. Returns the receiver then,
/// who is ready.
fn pass_on(thread: TcbRef, why: Back) -> Option<TcbRef> {
    let exchange = match why {
        Back::Foreign => None,
        Back::Message => Some(thread.frame().exchange().filter(|it| is_usual(thread, it))?),
        _ => return None,
    };
    let receiver = thread::lookup(exchange.as_ref().map_or(thread.handler.get(), |it| it.to))?;
    // Whom it has posed as last is not asked any more.
    thread.transfer.pose_as_nobody();
    if !may_tell(thread, receiver) {
        return None;
    }
    let target = finish::registers_of(receiver)?;
    arch::note_entry();
    let frame = thread.frame();
    let (from, tag) = match exchange {
        Some(Exchange { from, timeouts, tag, .. }) => {
            thread.ip.set(frame.ip.get());
            thread.sp.set(frame.sp.get());
            thread.flags.set(frame.flags.get());
            thread.resume.set(Resume::Ipc);
            thread.timeouts.set(timeouts);
            frame.exchange_words(tag.untyped(), |index, word| target.set_mr(index, word));
            // The receiver's user code runs here.
            (from, tag.with(MsgTag::XCPU))
        }
        None => {
            thread.resume.set(Resume::Frame);
            thread.kind.set(Kind::SystemCall);
            let message = Message::made(Kind::SystemCall, thread);
            message.copy(target, 0);
            (receiver.id.get(), message.tag)
        }
    };
    target.set_mr(0, tag.0);
    receiver.result_from.set(thread.name_for(receiver));
    sched::set_runnable(receiver);
    thread.then_from.set(from);
    thread.partner.set(from);
    // In the only way in which one waits whose user code runs elsewhere.
    rendezvous::set_busy(thread, Busy::Waiting);
    Some(receiver)
}

/// Whether nothing but what is said in `exchange` has to be known of it.
fn is_usual(thread: TcbRef, exchange: &Exchange) -> bool {
    (exchange.from == exchange.to || exchange.from == ThreadId::ANY)
        && thread.special.get() & !USES_VECTOR == ELSEWHERE
        && !(exchange.keeps_vector && thread.uses_vector())
}

/// The first processor idles, and `guest` of processor `number` has come back and has been fetched: who runs next
/// if there is nothing else to do; else it is queued, and `None`.
pub(super) fn only_one_has_come(number: u32, other: &Other, guest: TcbRef) -> Option<TcbRef> {
    let is_all = nobody_waits() && !cpu().scheduler.wanted.has(number);
    let told = has_come(number, other, guest)?;
    if is_all {
        grant_slice(told);
        return Some(told);
    }
    requeue(told);
    None
}
