//! The second processor, played: threads of users that live there, and the fast path of procedure calls between them
//! (`lrpc.S`), which stays there with what its party has brought along.

use std::sync::atomic::Ordering;

use abi::ThreadId;
use abi::lrpc::Status;
use abi::syscall::Call;
use kernel::arch::{clock, cpu};
use kernel::between::SEATS;
use kernel::control::processor;
use kernel::elsewhere::visits::{accept, enter, linkages, other, runs, set_processors, shadow};
use kernel::elsewhere::{self, Other};
use kernel::ipc::wait;
use kernel::irq::comers;
use kernel::lrpc::{call, give_back};
use kernel::sched;
use kernel::thread::linkage::PLACE;
use kernel::thread::rendezvous::{self, Busy};
use kernel::thread::tcb::Resume;
use kernel::thread::{RecordRef, TcbRef, current, lookup, set_current};

use crate::common::tasks::registers;

/// The vector of a system call (`arch::x86_64::frame`).
const SYSTEM_CALL: u64 = 256;
/// A vector of an exception.
const PAGE_FAULT: u64 = 14;
/// So long after a question whoever is asked for is with others again, µs.
const REST_US: u64 = 2_000;

/// What a call or a return there has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// It stayed there.
    Stays,
    /// The first processor did it.
    ComesHere,
}

/// From now on `threads` live on the second processor.
pub fn move_there(threads: &[TcbRef]) {
    set_processors(2);
    idle();
    for thread in threads {
        processor::set_processor(*thread, 1);
    }
    settle();
}

/// The first processor has nothing to do.
pub fn idle() {
    sched::requeue(current());
    set_current(cpu().scheduler.idle.get().expect("there is one"));
}

/// The first processor leaves the kernel, a while after it did last: who wants to goes.
pub fn settle() {
    clock::PAGE.offset_us.fetch_add(REST_US, Ordering::Relaxed);
    comers::look();
    cpu().pending_lines.set(0);
}

/// Who is there, and lets it come if it has not.
fn guest() -> Option<TcbRef> {
    let charged = other(1).and_then(Other::guest)?;
    let _ = accept(1);
    let together = runs(1).and_then(|shadow| lookup(shadow.id.get()));
    Some(together.unwrap_or(charged))
}

/// `thread`, which is ready, has its turn there.
pub fn turn_of(thread: TcbRef) {
    for _ in 0..8 {
        settle();
        let Some(guest) = guest() else { break };
        if guest == thread {
            return;
        }
        other(1).and_then(Other::guest).expect("somebody is there").slice_left_us.set(0);
        comers::tick(current());
    }
    panic!("{thread:?} never has its turn: it is {:?}", rendezvous::peek(thread));
}

/// The shadow that is shown for `thread`, if any.
fn seen(thread: TcbRef) -> Option<TcbRef> {
    (0..SEATS).map(|seat| shadow(1, seat)).find(|it| it.id.get() == thread.id.get())
}

fn flip(thread: TcbRef, from: Busy, to: Busy) {
    let own = thread.id.get();
    assert_eq!(thread.rendezvous.get(), rendezvous::busy_word(own, from), "{thread:?}");
    thread.rendezvous.set(rendezvous::busy_word(own, to));
}

/// The record that the fast path finds for `token`.
fn found(caller: TcbRef, token: u64) -> Option<RecordRef> {
    let page = (0..SEATS).filter_map(|seat| linkages(1, seat));
    let page = page.clone().find(|page| page.word() == caller.linkages.get())?;
    let record = (0..48).filter_map(|index| page.record(index));
    record.clone().find(|record| record.offset() == token & PLACE)
}

/// What `lrpc.S` does there for the shadow `caller`.
fn calls_fast(caller: TcbRef, token: u64, procedure: u64) -> Option<()> {
    let record = found(caller, token)?;
    if record.token.get() != token || procedure >= record.procedures.get() {
        return None;
    }
    let host = record.host.get().expect("a record that is shown has a host");
    let to = seen(host).expect("the host of a record that is shown is there");
    record.hide();
    record.caller.set(lookup(caller.id.get()));
    flip(caller, Busy::Ready, Busy::Calls);
    caller.ip.set(0x2000);
    to.priority.set(caller.priority.get());
    flip(to, Busy::Lent, Busy::Ready);
    host.result_from.set(ThreadId(record.a_stack.get()));
    Some(())
}

/// The same for a return of the shadow `host`.
fn returns_fast(host: TcbRef) -> Option<()> {
    let record = RecordRef::of(host)?;
    let caller = record.caller.take()?;
    let to = seen(caller).expect("who has called there is there");
    record.show();
    flip(host, Busy::Ready, Busy::Lent);
    host.ip.set(0x2000);
    flip(to, Busy::Calls, Busy::Ready);
    caller.result_from.set(ThreadId(Status::Done as u64));
    Some(())
}

/// `thread` has made the system call `number` there and is back with it: it is about to make it here.
fn comes_here(thread: TcbRef, number: Call) {
    let frame = runs(1).unwrap_or(thread).frame();
    frame.make_call((number as u64).wrapping_neg(), [0; 5]);
    enter(1, SYSTEM_CALL);
    comers::look();
    cpu().pending_lines.set(0);
    assert_eq!(thread.resume.get(), Resume::Entered, "{thread:?} is back");
    sched::requeue(current());
    set_current(thread);
    thread.resume.set(Resume::Ipc);
}

/// `next` runs here, or leaves, as the processor's switch sees to it.
fn activate(next: TcbRef) {
    let before = current();
    let next = elsewhere::leave(next);
    if next != before {
        wait::seal(before);
        set_current(next);
        elsewhere::left(before);
    }
    settle();
}

/// `caller`, which is ready, calls `procedure` there.
pub fn calls_there(caller: TcbRef, token: u64, procedure: u64) -> Way {
    turn_of(caller);
    if runs(1).is_some_and(|shadow| calls_fast(shadow, token, procedure).is_some()) {
        return Way::Stays;
    }
    comes_here(caller, Call::LrpcCall);
    registers(caller).set_mr(0, procedure);
    activate(call(caller, token));
    Way::ComesHere
}

/// `host`, which is ready, returns there.
pub fn returns_there(host: TcbRef, clerk: ThreadId) -> Way {
    turn_of(host);
    if runs(1).is_some_and(|shadow| returns_fast(shadow).is_some()) {
        return Way::Stays;
    }
    comes_here(host, Call::LrpcReturn);
    activate(give_back(host, clerk));
    Way::ComesHere
}

/// Whoever runs there faults, and goes on.
pub fn faults_there() {
    let Some(thread) = guest() else { return };
    enter(1, PAGE_FAULT);
    comers::look();
    assert_eq!(thread.resume.get(), Resume::Entered);
    thread.resume.set(Resume::Frame);
    kernel::sched::leaving::wants_to_leave(thread);
    settle();
}
