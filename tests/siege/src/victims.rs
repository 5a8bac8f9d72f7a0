//! Who is killed, and how the killer tells that it serves again.

use abi::{ThreadId, Time, Timeouts};
use proto::{console, unix};
use runtime::{Msg, clock, ipc, root};

use crate::{caller, echo, tally, toucher, writer};

/// A server.
#[derive(Clone, Copy)]
pub struct Victim {
    /// The name of its task.
    pub task: &'static str,
    /// How often it is chosen, relatively.
    pub weight: u64,
    /// It has to serve again within this time, µs.
    pub limit_us: u64,
    /// Whether it serves. The number is a new one each time.
    serves: fn(u64) -> bool,
}

/// The servers of the default system, and one of this program's own.
pub const ALL: [Victim; 4] = [
    Victim { task: "pager", weight: 4, limit_us: 100_000, serves: pager },
    Victim { task: "serial", weight: 4, limit_us: 100_000, serves: serial },
    Victim { task: "unix", weight: 2, limit_us: 3_000_000, serves: unix_server },
    Victim { task: "echo", weight: 4, limit_us: 100_000, serves: echo_server },
];
/// Pause between two attempts, µs.
const RETRY_US: u64 = 200;
/// System calls after which the Unix server's first program is well under way.
const SYSTEM_CALLS: u64 = 40;

impl Victim {
    /// Waits until it serves; how long that took, µs. `None`: longer than its limit, stretched by `slack`.
    pub fn serves_again(&self, since_us: u64, number: u64, slack: u64) -> Option<u64> {
        loop {
            let spent_us = clock::now_us() - since_us;
            if (self.serves)(number) {
                return Some(clock::now_us() - since_us);
            }
            if spent_us > self.limit_us * slack {
                return None;
            }
            ipc::sleep(RETRY_US);
        }
    }
}

fn patience(us: u64) -> Timeouts {
    Timeouts::new(Time::micros(us), Time::micros(us))
}

/// A task that needs all its pages answers.
fn pager(_: u64) -> bool {
    let Ok(thread) = root::lookup(toucher::NAME) else { return false };
    ipc::call_within(thread, &Msg::new(tally::PROBE), patience(100_000)).is_ok()
}

/// The driver takes a line.
fn serial(number: u64) -> bool {
    root::lookup(console::NAME).is_ok_and(|driver| writer::write(driver, number) == Some(true))
}

/// Linux programs have made system calls since it started.
fn unix_server(_: u64) -> bool {
    let Ok(server) = root::lookup(unix::NAME) else { return false };
    ipc::call_within(server, &Msg::new(unix::STATISTICS), patience(20_000))
        .is_ok_and(|answer| answer.mr[0] >= SYSTEM_CALLS)
}

/// A call comes back right.
fn echo_server(number: u64) -> bool {
    let server = root::lookup(echo::NAME).unwrap_or(ThreadId::NIL);
    !server.is_nil() && caller::call(server, number) == Some(true)
}
