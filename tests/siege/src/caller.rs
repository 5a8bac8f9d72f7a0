//! Calls the echo server without end, with strings of all lengths. A call that fails
//! because the server was killed is made again, to the next one.

use abi::{ThreadId, Time, Timeouts};
use runtime::accept::{self, TransferLimit};
use runtime::{ipc, root, utcb};

use crate::tally::{self, Tally};
use crate::{echo, pattern};

/// The name of this load task.
pub const NAME: &str = "call";
/// How long an answer may take, µs: nobody kills for so long.
const PATIENCE_US: u64 = 1_000_000;
/// Calls between two looks for the killer's questions.
const CALLS: u64 = 16;

/// Calls for ever.
pub fn run() {
    let _ = root::register(NAME);
    // A server that dies in the middle of a transfer must not keep this task waiting.
    utcb::set_xfer_timeouts(Timeouts::new(Time::micros(PATIENCE_US), Time::micros(PATIENCE_US)));
    let (mut tally, mut number) = (Tally::default(), 1);
    let mut server = ThreadId::NIL;
    loop {
        for _ in 0..CALLS {
            number += 1;
            if server.is_nil() {
                server = root::find(echo::NAME, 1_000).unwrap_or(ThreadId::NIL);
            }
            match call(server, number) {
                Some(true) => tally.done += 1,
                Some(false) => tally.harm += 1,
                None => {
                    tally.missed += 1;
                    server = ThreadId::NIL;
                }
            }
        }
        if let Some(from) = tally::serve(&tally, 300) {
            let _ = ipc::reply(from, &tally.answer());
        }
    }
}

/// One call with a string whose length follows from `number`: whether the answer was
/// right and whole; `None` if there was none.
pub fn call(server: ThreadId, number: u64) -> Option<bool> {
    let mut request = [0; echo::BYTES];
    let mut buffer = [0; echo::BYTES];
    let bytes = (pattern::word(number, 99) % (echo::BYTES as u64 + 1)) as usize & !7;
    let bytes = if number.is_multiple_of(3) { 0 } else { bytes };
    let msg = echo::next(number, &mut request[..bytes]);
    let patience = Timeouts::new(Time::micros(PATIENCE_US), Time::micros(PATIENCE_US));
    let limit = TransferLimit::micros(1_000_000);
    let call = || ipc::call_within(server, &msg, patience);
    let answer = accept::string(&mut buffer, limit, call).ok()?;
    let came = answer.string_in(&buffer).unwrap_or_default();
    let right = answer.label() == echo::LABEL
        && echo::is_whole(&answer, number + 1)
        && answer.mr[echo::WORDS + 1] == bytes as u64
        && came.len() == bytes
        && pattern::fits(came, number + 1);
    Some(right)
}
