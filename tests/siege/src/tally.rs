//! What a load task has done so far, and how the killer asks for it.

use abi::{ThreadId, Time, Timeouts};
use runtime::{Msg, ipc, root};

/// Label of the question. Answer: work done, refusals (its server was gone), harm, the
/// longest delay in µs.
pub const LABEL: u64 = 0x700;
/// Label of a request to do a piece of work at once; the answer comes when it is done.
pub const PROBE: u64 = 0x701;
/// How long the killer waits for an answer, µs.
const PATIENCE_US: u64 = 2_000_000;

/// Counts of one load task.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Pieces of work that were done.
    pub done: u64,
    /// Pieces of work that failed because the server was killed.
    pub missed: u64,
    /// Messages or memory that were not whole.
    pub harm: u64,
    /// Longest delay, µs.
    pub late_us: u64,
}

impl Tally {
    /// The answer to the killer.
    #[must_use]
    pub fn answer(&self) -> Msg {
        Msg::new(proto::OK).words(&[self.done, self.missed, self.harm, self.late_us])
    }

    /// Asks the task that registered as `name`.
    #[must_use]
    pub fn ask(name: &str) -> Option<Self> {
        let thread = root::find(name, 1_000).ok()?;
        let patience = Timeouts::new(Time::micros(PATIENCE_US), Time::micros(PATIENCE_US));
        let mr = ipc::call_within(thread, &Msg::new(LABEL), patience).ok()?.mr;
        Some(Self { done: mr[0], missed: mr[1], harm: mr[2], late_us: mr[3] })
    }
}

/// Takes the killer's requests for `us` µs; answers questions, returns at a probe.
pub fn serve(tally: &Tally, us: u64) -> Option<ThreadId> {
    let end = runtime::clock::now_us() + us;
    loop {
        let left = end.saturating_sub(runtime::clock::now_us());
        if left == 0 {
            return None;
        }
        match ipc::wait(Time::micros(left)) {
            Ok((from, msg)) if msg.label() == LABEL => {
                let _ = ipc::reply(from, &tally.answer());
            }
            Ok((from, msg)) if msg.label() == PROBE => return Some(from),
            _ => {}
        }
    }
}
