//! Taking the processor from others.

use abi::{ThreadId, Time};
use alloc::format;
use alloc::string::String;
use runtime::{clock, ipc, kernel, root, syscall, thread};

use crate::hostile::{Hostile, Reached, rest};
use crate::machine;
use crate::order::Help;

/// How long a hog computes, µs.
const HOG_US: u64 = 400_000;
/// It begins so late, so that its creator gets to its next call, µs.
const LATER_US: u64 = 5_000;
/// Longest time that a canary may be without the processor, µs: some slices of others.
const LONGEST_US: u64 = 60_000;
const UNCHANGED: u64 = !0;
/// A time control: the usual slice, 10 ms, and no limit of the quantum.
const USUAL: u64 = (Time::micros(10_000).0 as u64) << 16 | Time::NEVER.0 as u64;
/// After so long a slice is asked for again, µs.
const RENEWED_US: u64 = 2_000;
/// Thread of this task whose stack and UTCB the hog uses.
const INDEX: u64 = 15;

extern "C" fn hog(_: u64) -> ! {
    ipc::sleep(LATER_US);
    let end = clock::now_us() + HOG_US;
    while clock::now_us() < end {}
    rest()
}

/// Asks for a slice of the usual length all the time.
extern "C" fn renewing_hog(_: u64) -> ! {
    ipc::sleep(LATER_US);
    let end = clock::now_us() + HOG_US;
    while clock::now_us() < end {
        let again = clock::now_us() + RENEWED_US;
        let _ = syscall::schedule(thread::me().0, USUAL, UNCHANGED, UNCHANGED, UNCHANGED);
        while clock::now_us() < again {}
    }
    rest()
}

fn verdict(gap_us: u64, canary: &str) -> Reached {
    (gap_us > LONGEST_US)
        .then(|| format!("a canary {canary} was without the processor for {gap_us} us"))
}

/// Makes itself the scheduler of its own thread, and gives that an endless slice.
pub fn endless_slice(hostile: &Hostile) -> Reached {
    let hog_id = hostile.own_id(INDEX);
    // Its scheduler is the thread that makes it.
    if !machine::create(hog_id, INDEX) {
        return None;
    }
    // Slice and quantum: never.
    let (state, _) = syscall::schedule(hog_id.0, 0, UNCHANGED, UNCHANGED, UNCHANGED);
    if state == 0 {
        let _ = kernel::delete(hog_id);
        return None;
    }
    machine::start(hog_id, INDEX, hog, 0);
    let [gap_us, _] = hostile.ask(Help::Compute, 0);
    let _ = kernel::delete(hog_id);
    verdict(gap_us, "of the same priority")
}

/// Makes itself the scheduler of its own thread, which asks for a new slice before each is over.
pub fn renewed_slice(hostile: &Hostile) -> Reached {
    let id = hostile.own_id(INDEX);
    if !machine::create(id, INDEX) {
        return Some(String::from("the attacker cannot make a thread with its own number"));
    }
    let is_asked = is_let(id, USUAL, UNCHANGED);
    machine::start(id, INDEX, renewing_hog, 0);
    let [gap_us, _] = hostile.ask(Help::Compute, 0);
    let _ = kernel::delete(id);
    if !is_asked {
        return Some(String::from("the attacker cannot ask for a slice of the usual length"));
    }
    verdict(gap_us, "of the same priority")
}

/// Whether Schedule accepts an endless slice, or 65 ms of delay, for the own `thread`.
fn is_let(thread: ThreadId, time: u64, preemption: u64) -> bool {
    syscall::schedule(thread.0, time, UNCHANGED, UNCHANGED, preemption).0 != 0
}

/// Gives a task that it has made an endless slice.
pub fn below(hostile: &Hostile) -> Reached {
    let id = hostile.own_id(INDEX);
    if kernel::create(id, id, thread::me(), !0).is_err() {
        return Some(String::from("the attacker cannot make a task with its own number"));
    }
    let given = is_let(id, 0, UNCHANGED);
    let _ = kernel::delete(id);
    given.then(|| String::from("a task gave a task below it an endless slice"))
}

/// Lets its own thread delay its preemption for 65 ms.
pub fn long_delay(hostile: &Hostile) -> Reached {
    const DELAY: u64 = 65_000;
    let id = hostile.own_id(INDEX);
    if !machine::create(id, INDEX) {
        return Some(String::from("the attacker cannot make a thread with its own number"));
    }
    let given = is_let(id, UNCHANGED, 100 << 16 | DELAY) || is_let(id, UNCHANGED, 1);
    let _ = kernel::delete(id);
    given.then(|| String::from("a task let its own thread delay its preemption"))
}

/// A task of low priority makes a thread, which computes.
pub fn priority(hostile: &Hostile) -> Reached {
    let id = hostile.own_id(INDEX);
    if !machine::create(id, INDEX) {
        return None;
    }
    machine::start(id, INDEX, hog, 0);
    let [gap_us, _] = hostile.ask(Help::Compute, 1);
    let _ = kernel::delete(id);
    verdict(gap_us, "of higher priority than the attacker")
}

/// Asks the root task for a priority above its own, and for the victim's.
pub fn priority_on_request(hostile: &Hostile) -> Reached {
    let victim = ThreadId(hostile.ask(Help::Victim, 0)[0]);
    let me = thread::me();
    let tried = [
        ("above its own", root::set_priority(me, 101).is_ok()),
        ("above all", root::set_priority(me, 255).is_ok()),
        ("for another task's thread", root::set_priority(victim, 0).is_ok()),
        ("for the root task", root::set_priority(ThreadId::ROOT, 0).is_ok()),
        ("for an interrupt", root::set_priority(ThreadId::irq(4), 0).is_ok()),
    ];
    if root::set_priority(me, 100).is_err() {
        return Some(String::from("a task may not have the priority of its description"));
    }
    let (what, _) = tried.into_iter().find(|(_, done)| *done)?;
    Some(format!("the root task gave a task a priority {what}"))
}
