//! Turns: who has had the server's time for as long as a slice goes on when the other programs have had theirs.
//!
//! The server answers with a switch, so whoever makes one call behind the other never meets the queue of those who
//! are ready. A helper thread stands in that queue for it, at their priority: it is made ready, at the
//! end, and calls the server when it runs (`docs/decisions/0104`).

use core::cell::Cell;

use abi::{ThreadId, Timeouts};
use runtime::{Msg, ipc, root, thread};
use unix::machine::Urgency;

/// Priority of programs: below all servers and drivers.
const PRIORITY: u8 = 100;

/// That of those who are so urgent.
pub const fn priority(urgency: Urgency) -> u8 {
    match urgency {
        Urgency::Background => PRIORITY - 1,
        Urgency::Ordinary => PRIORITY,
        Urgency::Boosted => PRIORITY + 1,
    }
}

/// Label of its message.
pub const LABEL: u64 = 0x404;

/// The helper, and whether it stands in the queue.
pub struct Turns {
    helper: ThreadId,
    /// Its name inside this task.
    local: ThreadId,
    /// It waits for the answer to its call.
    waits: Cell<bool>,
    /// Somebody wants it in the queue.
    wanted: Cell<bool>,
}

impl Turns {
    /// Starts the helper, which calls `server` at once; it stands among the programs that are so urgent.
    pub fn start(server: ThreadId, urgency: Urgency) -> Result<Self, root::Refusal> {
        let helper = thread::spawn(move || call_when_it_runs(server))?;
        root::set_priority(helper, priority(urgency))?;
        let local = thread::other_id(helper).unwrap_or(helper);
        Ok(Self { helper, local, waits: Cell::new(false), wanted: Cell::new(false) })
    }

    /// Whether `id` is the helper.
    pub fn is(&self, id: ThreadId) -> bool {
        id == self.local
    }

    /// Asks for a call when all programs that can run now have run.
    pub fn ask(&self) {
        self.wanted.set(true);
        if self.waits.replace(false) {
            let _ = ipc::answer(self.helper, 0);
        }
    }

    /// It has called: whether that had been asked for.
    pub fn called(&self) -> bool {
        self.waits.set(true);
        self.wanted.replace(false)
    }
}

fn call_when_it_runs(server: ThreadId) {
    loop {
        let _ = ipc::call_within(server, &Msg::new(LABEL), Timeouts::NEVER);
    }
}
