//! Turns: whoever has cost the server much, or says so itself, goes on when others who can run have done so
//! (`docs/decisions/0104`).

use alloc::rc::Rc;

use crate::machine::Urgency;
use crate::thread::Thread;
use crate::unix::Unix;
use crate::wait::Later;

/// How many have their answers before others are asked for again, and who calls meanwhile is heard.
const MOST_AT_ONCE: usize = 64;

/// Holds a thread back once it has its answer: asked for before its event is handled, so that the answer is no
/// quick one, this is done twice, and the thread is in the queue the second time.
struct TurnGiver {
    thread: Rc<Thread>,
    is_second: bool,
}

impl Later for TurnGiver {
    fn run(&self, unix: &Unix) {
        if self.is_second || self.thread.queued.get() {
            unix.give_turn(&self.thread);
        } else {
            unix.run_queue.later(Rc::new(Self { thread: self.thread.clone(), is_second: true }));
        }
    }
}

impl Unix {
    /// If `thread` is in the queue, it goes on when others who can run have done so.
    pub(crate) fn give_turn(&self, thread: &Rc<Thread>) {
        let urgency = thread.urgency.get();
        if self.run_queue.hold(thread, urgency) {
            self.machine.ask_for_turn(urgency);
        }
    }

    /// `thread` has raised an event, which is to be handled now. If it is to go on at once, others who can run do
    /// so first, unless it goes first itself ([`crate::process::boost`]).
    pub fn give_turn_next(&self, thread: &Rc<Thread>) {
        if thread.credit.is_first() {
            return;
        }
        let giver = TurnGiver { thread: thread.clone(), is_second: false };
        self.run_queue.later(Rc::new(giver));
    }

    /// The others have had their turn, as asked for with `Machine::ask_for_turn`.
    pub fn turn(&self, urgency: Urgency) {
        if self.run_queue.release(urgency, MOST_AT_ONCE) {
            self.machine.ask_for_turn(urgency);
        }
    }

    /// One of those who wait for others that are as urgent goes on, for they may not get on either.
    pub(crate) fn end_a_turn(&self, urgency: Urgency) {
        let _ = self.run_queue.release(urgency, 1);
    }
}
