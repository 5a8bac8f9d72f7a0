//! Wakes every few milliseconds, above all servers but the root task, and measures how
//! late, from one question of the killer to the next. Its pages are the root task's: no killed server is between it and its time.

use abi::Time;
use runtime::{clock, ipc, root};

use crate::tally::Tally;

/// The name of this canary.
pub const NAME: &str = "watch";
/// How long it sleeps, µs.
const NAP_US: u64 = 3_000;

/// Sleeps and wakes for ever.
pub fn run() {
    let _ = root::register(NAME);
    let mut tally = Tally::default();
    loop {
        let nap = Time::micros(NAP_US);
        let due_us = clock::now_us() + nap.period_us().unwrap_or(NAP_US);
        match ipc::wait(nap) {
            Ok((from, _)) => {
                let _ = ipc::reply(from, &tally.answer());
                tally.late_us = 0;
            }
            Err(_) => {
                tally.late_us = tally.late_us.max(clock::now_us().saturating_sub(due_us));
                tally.done += 1;
            }
        }
    }
}
