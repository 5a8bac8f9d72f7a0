//! Writes numbered lines on the console, some in words, some as strings.

use abi::ThreadId;
use interfaces::console::Client;
use proto::console as op;
use runtime::service::Thread;
use runtime::{ipc, root};

use crate::tally::{self, Tally};

/// The name of this load task.
pub const NAME: &str = "write";
/// Pause between two lines, µs: the line is not faster.
const PAUSE_US: u64 = 4_000;

/// Writes for ever.
pub fn run() {
    let _ = root::register(NAME);
    let mut tally = Tally::default();
    let mut driver = ThreadId::NIL;
    loop {
        if driver.is_nil() {
            driver = root::find(op::NAME, 1_000).unwrap_or(ThreadId::NIL);
        }
        match write(driver, tally.done) {
            Some(true) => tally.done += 1,
            Some(false) => tally.harm += 1,
            None => {
                tally.missed += 1;
                driver = ThreadId::NIL;
            }
        }
        if let Some(from) = tally::serve(&tally, PAUSE_US) {
            let _ = ipc::reply(from, &tally.answer());
        }
    }
}

/// Writes line `number`; whether the driver took it, `None` if it did not answer.
pub fn write(driver: ThreadId, number: u64) -> Option<bool> {
    let mut line = *b"siege: line 00000000 of a writer that never stops\n";
    let mut rest = number;
    for digit in line[12..20].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let driver = Client::new(Thread(driver));
    let answer =
        if number.is_multiple_of(2) { driver.write(&line) } else { driver.write_long(&line) };
    answer.ok().map(|answer| answer.is_ok())
}
