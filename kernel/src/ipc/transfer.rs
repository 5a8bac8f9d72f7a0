//! The transfer: words, then typed items, from a sender to a receiver that met.
//!
//! Items can be long (strings of 4 MiB, flexpages of 1 GiB) and can meet missing
//! pages, so their transfer is a state that lives in the sender's tcb and advances
//! in bounded steps. Whoever of the two runs goes on with it: the current thread at
//! the rendezvous, the preempted one when it runs again, the one whose page fault
//! has been answered.

use abi::syscall::COMPLETE_PATH;
use abi::{Acceptor, Fpage, IpcErrorKind, Item, MapItem, MsgTag, StringItem};

use super::words::{self, Message, Source};
use super::{finish, kernel_message, simple_string, strings, timeout};
use crate::arch::preemption::{self, STINT, Stint};
use crate::mem::{Access, MapJob, OnePage, Step, map_one_page};
use crate::sched::{self, slice};
use crate::thread::part::Part;
use crate::thread::rendezvous::{self, Busy};
use crate::thread::tcb::{Job, Resume};
use crate::thread::{Kind, TcbRef, current};
use crate::usermem::Utcb;

/// The sizes of a tag with one item and no untyped word.
const ONE_ITEM: usize = MsgTag::new(0, 0, 2).0 as usize;
/// Instructions, roughly, for an item that is one page in the usual case.
const PAGE_WORK: u32 = 175;

/// What one look at the next item led to.
pub enum Progress {
    /// All items are transferred.
    Done,
    /// There is more to do; so many instructions were spent, roughly.
    More { work: u32 },
    /// This page is missing, to be accessed so, in the space of that side.
    Fault { address: u64, access: Access, side: Side },
}

/// One of the two of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Whose message it is.
    Sender,
    /// To whom it goes.
    Receiver,
}

/// Sender and receiver have met: transfers the message; returns who runs next.
/// One of the two is the current thread.
#[must_use]
#[inline(always)]
pub fn start(sender: TcbRef, receiver: TcbRef, message: Message) -> TcbRef {
    let tag = message.tag.without_flags();
    let target = match message.source {
        Source::Made(..) => finish::registers_of(receiver),
        Source::Registers(utcb) => match at_once(sender, receiver, utcb, tag) {
            AtOnce::Not if tag.typed() == 0 => finish::registers_of(receiver),
            AtOnce::Not => return start_items(sender, receiver, tag),
            AtOnce::Answer => None,
            AtOnce::String(target, string) => {
                let message = Message { tag, ..message };
                return finish::string_delivered(sender, receiver, (target, string), message);
            }
        },
    };
    finish::delivered(sender, receiver, target, Message { tag, ..message })
}

/// What became of a message with one item.
enum AtOnce {
    /// Nothing: it is anything else than the two below.
    Not,
    /// The page is there that the receiver faulted for.
    Answer,
    /// The string that this describes has arrived; the rest belongs into these registers.
    String(Utcb, StringItem),
}

/// The two usual messages with one item: a simple string, and a pager's answer to a fault.
/// Their item is transferred without the state that longer transfers need.
#[inline(always)]
fn at_once(sender: TcbRef, receiver: TcbRef, utcb: Utcb, tag: MsgTag) -> AtOnce {
    // Two typed words, and they are registers: one comparison.
    let untyped = ((tag.0 & MsgTag::new(0, 63, 63).0) as usize).wrapping_sub(ONE_ITEM);
    if untyped > 63 - 2 || sender.timeouts.get() >> COMPLETE_PATH.trailing_zeros() & 1 != 0 {
        return AtOnce::Not;
    }
    let item = [utcb.mr(untyped + 1), utcb.mr(untyped + 2)];
    match receiver.kind.get() {
        Kind::User => {
            let string = StringItem(item[0]);
            simple_string::copy(sender, receiver, string, item[1])
                .map_or(AtOnce::Not, |target| AtOnce::String(target, string))
        }
        Kind::PageFault if untyped == 0 && answer(sender, receiver, item) => AtOnce::Answer,
        _ => AtOnce::Not,
    }
}

/// One page to a thread that faulted.
#[inline(never)]
fn answer(sender: TcbRef, receiver: TcbRef, item: [u64; 2]) -> bool {
    match (Item::decode(item[0], item[1]), sender.space(), receiver.space()) {
        (Item::Map(item), Some(source), Some(target)) => {
            map_one_page(source, target, item, Fpage::COMPLETE)
        }
        _ => false,
    }
}

/// The message of `tag` has typed items: it is in the sender's registers.
#[inline(never)]
fn start_items(sender: TcbRef, receiver: TcbRef, tag: MsgTag) -> TcbRef {
    let (untyped, typed) = (tag.untyped(), tag.typed());
    sender.transfer.tag.set(tag);
    if untyped + typed > 63 {
        return finish::finish(sender, receiver, Err(IpcErrorKind::Overflow));
    }
    if let Some(source) = Utcb::of(sender) {
        match (receiver.kind.get(), Utcb::of(receiver)) {
            (Kind::User, Some(target)) => target.copy_mrs(source, untyped + typed),
            _ => words::take(source, receiver, untyped),
        }
    }
    begin(sender, receiver, untyped + 1, untyped + 1 + typed);
    run(sender, receiver)
}

fn begin(sender: TcbRef, receiver: TcbRef, next: usize, end: usize) {
    for (thread, part) in
        [(sender, Part::SendsTo(receiver)), (receiver, Part::ReceivesFrom(sender))]
    {
        rendezvous::set_busy(thread, Busy::Transfer);
        thread.wake_at_us.set(0);
        if let Some(outer) = thread.transfer.part.replace(Some(part)) {
            thread.transfer.outer.set(Some(outer));
        }
    }
    let state = &sender.transfer;
    state.then_from.set(sender.then_from.get());
    state.timeouts.set(sender.timeouts.get());
    state.next.set(next);
    state.end.set(end);
    state.bytes.set(0);
    state.string.reset();
    sender.job.set(None);
    state.deadline_us.set(0);
}

/// Goes on with the transfer that `thread`, the current one, takes part in.
#[must_use]
pub fn resume(thread: TcbRef) -> TcbRef {
    thread.resume.set(thread.kind.get().home());
    let Some(part) = thread.transfer.part.get() else { return sched::go_on(thread) };
    rendezvous::set_busy(thread, Busy::Transfer);
    let (sender, receiver) = part.pair(thread);
    run(sender, receiver)
}

fn run(sender: TcbRef, receiver: TcbRef) -> TcbRef {
    let mut stint = Stint::default();
    loop {
        match step(sender, receiver) {
            Ok(Progress::Done) => return finish::finish(sender, receiver, Ok(())),
            Ok(Progress::More { work }) => {
                if stint.must_stop_after(work) {
                    return preempted();
                }
            }
            Ok(Progress::Fault { address, access, side }) => {
                return fault(sender, receiver, address, access, side);
            }
            Err(kind) => return finish::finish(sender, receiver, Err(kind)),
        }
    }
}

/// An interrupt came between two steps, and is handled on the way out of the kernel: the current thread goes on
/// later, or at once if that leads to nobody else.
fn preempted() -> TcbRef {
    let thread = current();
    rendezvous::set_busy(thread, Busy::Ready);
    thread.resume.set(Resume::Transfer);
    sched::requeue(thread);
    thread
}

/// `thread` is about to go on with a transfer that an interrupt has met. If what an item finds in its
/// way has been shared by others, those who are more urgent than these may be go first, until
/// the next interrupt (docs/decisions/0061).
#[must_use]
pub fn give_way(thread: TcbRef) -> TcbRef {
    let Some(part) = thread.transfer.part.get() else { return thread };
    let (sender, _) = part.pair(thread);
    let job = sender.job.take();
    let sharers = match &job {
        Some(Job::Map(job)) => job.sharers(),
        _ => [None; 2],
    };
    sender.job.set(job);
    slice::give_way_to_those_above(thread, sharers)
}

fn fault(sender: TcbRef, receiver: TcbRef, address: u64, access: Access, side: Side) -> TcbRef {
    if let Err(kind) = timeout::start_transfer_timeout(sender, receiver) {
        return finish::finish(sender, receiver, Err(kind));
    }
    let by_sender = side == Side::Sender || sender.same_space(receiver);
    let faulter = if by_sender { sender } else { receiver };
    timeout::arm_transfer_timeout(sender, faulter);
    kernel_message::transfer_fault(faulter, address, access, side)
}

/// One bounded step of the transfer.
fn step(sender: TcbRef, receiver: TcbRef) -> Result<Progress, IpcErrorKind> {
    let state = &sender.transfer;
    if let Some(Job::Map(job)) = sender.job.take() {
        return map_step(sender, job);
    }
    let (next, end) = (state.next.get(), state.end.get());
    if next >= end {
        return Ok(Progress::Done);
    }
    if let Some(header) = state.string.header.get() {
        return strings::step(sender, receiver, header);
    }
    let utcb = Utcb::of(sender).ok_or(IpcErrorKind::Overflow)?;
    let words = words_at(utcb, next);
    match Item::decode(words[0], words[1]) {
        Item::Map(item) if next + 2 <= end => map_items(sender, receiver, utcb, (item, words)),
        Item::String(header) => strings::step(sender, receiver, header),
        _ => Err(IpcErrorKind::Overflow),
    }
}

/// The words of the item at `next`.
fn words_at(utcb: Utcb, next: usize) -> [u64; 2] {
    [utcb.mr(next), utcb.mr(next + 1)]
}

/// The receiver is told of the item at `next` that is about to be carried out, and of no other: another thread of
/// the sender's may have written the sender's registers since they were copied.
fn tell(told: Option<Utcb>, next: usize, words: [u64; 2]) {
    if let Some(target) = told {
        (next..).zip(words).for_each(|(index, word)| target.set_mr(index, word));
    }
}

/// Carries out the map item at the position, and those behind it as long as they are usual.
fn map_items(
    sender: TcbRef,
    receiver: TcbRef,
    utcb: Utcb,
    (first, words): (MapItem, [u64; 2]),
) -> Result<Progress, IpcErrorKind> {
    let told = finish::registers_of(receiver);
    let window = match receiver.kind.get() {
        Kind::User => told.map_or(Fpage::NIL, |utcb| Acceptor(utcb.br(0)).receive_window()),
        // A clerk is nobody whom its client trusts with that.
        Kind::Start | Kind::Bind => Fpage::NIL,
        _ => Fpage::COMPLETE,
    };
    if window.is_nil() {
        return Err(IpcErrorKind::Overflow);
    }
    let (Some(source), Some(target)) = (sender.space(), receiver.space()) else {
        return Err(IpcErrorKind::Overflow);
    };
    let state = &sender.transfer;
    let (mut next, end) = (state.next.get(), state.end.get());
    let (mut pages, mut item) = (OnePage::new(source, target, window), first);
    let mut stint = Stint::default();
    tell(told, next, words);
    while pages.map(item) {
        next += 2;
        state.next.set(next);
        if stint.must_stop_after(PAGE_WORK) {
            return Ok(Progress::More { work: STINT });
        }
        let words = words_at(utcb, next);
        match Item::decode(words[0], words[1]) {
            Item::Map(map) if next + 2 <= end => item = map,
            _ => return Ok(Progress::More { work: PAGE_WORK }),
        }
        tell(told, next, words);
    }
    state.next.set(next + 2);
    let job = MapJob::new(source, target, item, window, sender.marker());
    // Letting the two meet takes as much as may come before a window.
    if preemption::must_stop() {
        sender.job.set(Some(Job::Map(job)));
        return Ok(Progress::More { work: STINT });
    }
    map_step(sender, job)
}

fn map_step(sender: TcbRef, mut job: MapJob) -> Result<Progress, IpcErrorKind> {
    match job.advance() {
        Ok(Step::Done) => {}
        Ok(Step::More) => sender.job.set(Some(Job::Map(job))),
        // The receiver's quota is used up: it has no room for the item.
        Err(_) => return Err(IpcErrorKind::Overflow),
    }
    Ok(Progress::More { work: STINT })
}
