//! Ready queue, send queues, wakeup lists (Liedtke 1993, 5.3.3 to 5.3.5): every ring
//! is sound, its members belong there, and nobody is linked anywhere else.

use abi::ThreadId;
use abi::id::SYSTEM_BASE;

use super::Findings;
use super::links::walk;
use crate::arch::cpu;
use crate::elsewhere;
use crate::sched::ready::ReadyQueue;
use crate::sched::wakeup::WakeupLists;
use crate::thread;
use crate::thread::rendezvous::{self, Busy, Waits};
use crate::thread::{TcbRef, current};

/// Checks all queues.
pub(super) fn check(found: &mut Findings) {
    let mut queued = Queued::default();
    ready(found, &mut queued);
    wakeup(found, &mut queued);
    thread::for_each(|receiver| send_queue(receiver, found, &mut queued));
    // Nobody ever receives for the kernel's own threads, but they have names to send to.
    for own in own_threads() {
        send_queue(own, found, &mut queued);
    }
    let said = cpu().scheduler.ready.count();
    found.note(
        said != queued.ready,
        format_args!(
            "the ready queue says that it holds {said} threads; it holds {}",
            queued.ready
        ),
    );
    elsewhere(found, &mut queued);
    let mut linked = Queued::default();
    thread::for_each(|thread| linked.count(thread));
    own_threads().for_each(|thread| linked.count(thread));
    for line in 0..SYSTEM_BASE {
        if let Some(source) = thread::lookup(ThreadId::irq(line)) {
            linked.count(source);
        }
    }
    for (what, rings, links) in [
        ("the ready queue", queued.ready, linked.ready),
        ("a wakeup list", queued.wake, linked.wake),
        ("a send queue", queued.sending, linked.sending),
    ] {
        found.note(
            rings != links,
            format_args!(
                "{links} threads say that they are in {what}, and {rings} are found there"
            ),
        );
    }
}

/// Checks those of a processor without threads: nobody is ready, and its idle thread runs.
pub(super) fn check_idle(found: &mut Findings) {
    let scheduler = &cpu().scheduler;
    found.note(
        scheduler.ready.first_queued().is_some() || scheduler.ready.count() != 0,
        format_args!("somebody is ready on a processor that has no threads"),
    );
    let idle = scheduler.idle.get();
    let owner = scheduler.slice_owner.get();
    found.note(
        Some(current()) != idle || owner.is_some_and(|owner| Some(owner) != idle),
        format_args!("a thread runs on a processor that has none"),
    );
}

/// Those who wait for another processor, by the same links, and have its seats.
fn elsewhere(found: &mut Findings, queued: &mut Queued) {
    elsewhere::for_each(|number, other| {
        ready_queue(other.queue(), found, queued);
        let scheduler = &cpu().scheduler;
        found.note(
            other.guest().is_some() != cpu().guests.has(number)
                || other.queue().count() != 0 && !scheduler.wanted.has(number),
            format_args!("nobody would look who is on processor {number}, or waits for it"),
        );
        found.note(
            !other.has_sound_seats(number),
            format_args!("a seat of processor {number} is not paid by whose it is"),
        );
    });
}

/// The idle thread and the waker.
fn own_threads() -> impl Iterator<Item = TcbRef> {
    let scheduler = &cpu().scheduler;
    [scheduler.idle.get(), scheduler.waker.get()].into_iter().flatten()
}

/// Numbers of threads in queues.
#[derive(Default)]
struct Queued {
    ready: u64,
    wake: u64,
    sending: u64,
}

impl Queued {
    /// Counts `thread` where its own links say that it is queued.
    fn count(&mut self, thread: TcbRef) {
        self.ready += u64::from(thread.ready.are_linked());
        self.wake += u64::from(thread.wake.are_linked());
        self.sending += u64::from(thread.sending.are_linked());
    }
}

fn ready(found: &mut Findings, queued: &mut Queued) {
    ready_queue(&cpu().scheduler.ready, found, queued);
}

fn ready_queue(queue: &ReadyQueue, found: &mut Findings, queued: &mut Queued) {
    queue.for_each_ring(|priority, ring, occupied| {
        let members = walk(ring, |thread| {
            found.note(
                thread.priority.get() != priority,
                format_args!(
                    "thread {} has priority {} and is queued at {priority}",
                    thread.id.get(),
                    thread.priority.get()
                ),
            );
        });
        found.note(
            members.is_none(),
            format_args!("the links of the ready queue of priority {priority} are broken"),
        );
        found.note(
            occupied == ring.is_empty(),
            format_args!("the ready queue's bitmap is wrong about priority {priority}"),
        );
        queued.ready += members.unwrap_or(0);
    });
}

fn wakeup(found: &mut Findings, queued: &mut Queued) {
    cpu().scheduler.wakeup.for_each_ring(|list, ring| {
        let members = walk(ring, |thread| {
            found.note(
                !WakeupLists::agree(list, thread.wake_list.get()),
                format_args!(
                    "thread {} is in wakeup list {list} and believes to be in {}",
                    thread.id.get(),
                    thread.wake_list.get()
                ),
            );
        });
        found.note(members.is_none(), format_args!("the links of wakeup list {list} are broken"));
        queued.wake += members.unwrap_or(0);
    });
}

fn send_queue(receiver: TcbRef, found: &mut Findings, queued: &mut Queued) {
    let id = receiver.id.get();
    let members = walk(&receiver.senders, |sender| {
        let waits = rendezvous::peek(sender);
        let polls = waits == Waits::Busy(Busy::Polling);
        let names = sender.partner.get() == id;
        found.note(
            !polls || !names,
            format_args!(
                "thread {} is queued to send to {id}, but names {} and is {waits:?}",
                sender.id.get(),
                sender.partner.get()
            ),
        );
    });
    found.note(members.is_none(), format_args!("the links of the send queue of {id} are broken"));
    queued.sending += members.unwrap_or(0);
}
