//! The server that is only there to be killed: a request is a number, its words and a
//! string that follow from it; so is the answer, with the next number.

use abi::Acceptor;
use runtime::accept::{self, TransferLimit};
use runtime::ipc::Parcel;
use runtime::{Msg, ipc, root};

use crate::pattern;

/// Its name, and the label of its requests.
pub const NAME: &str = "echo";
pub const LABEL: u64 = 0x710;
/// Label of an answer that says that the request was not whole.
pub const BROKEN: u64 = 0x711;
/// Most bytes of a string.
pub const BYTES: usize = 3 * 4096;
/// Words behind the number.
pub const WORDS: usize = 4;

/// Serves until it is killed.
pub fn run() {
    let mut buffer = [0; BYTES];
    let mut answer = [0; BYTES];
    root::register(NAME).unwrap_or_else(|why| panic!("echo cannot register: {why}"));
    let _ = Acceptor::UNTYPED;
    let mut reply = None;
    loop {
        let (from, msg) = accept::string(&mut buffer, TransferLimit::micros(1_000_000), || {
            ipc::next_request(reply)
        });
        let came = msg.string_in(&buffer).unwrap_or_default();
        let (number, bytes) = (msg.mr[0], came.len());
        let whole = msg.label() == LABEL
            && is_whole(&msg, number)
            && msg.mr[WORDS + 1] == bytes as u64
            && pattern::fits(came, number);
        reply = Some((
            from,
            if whole {
                next(number + 1, &mut answer[..bytes])
            } else {
                Parcel::from(Msg::new(BROKEN))
            },
        ));
    }
}

/// Whether the words of `msg` follow from `number`.
pub fn is_whole(msg: &Msg, number: u64) -> bool {
    msg.mr[0] == number && (1..=WORDS).all(|at| msg.mr[at] == pattern::word(number, at as u64))
}

/// A request or an answer with `number`.
pub fn next(number: u64, bytes: &mut [u8]) -> Parcel<'_> {
    pattern::fill(bytes, number);
    let msg = (1..=WORDS as u64)
        .fold(Msg::new(LABEL).word(number), |msg, at| msg.word(pattern::word(number, at)))
        .word(bytes.len() as u64);
    if bytes.is_empty() { Parcel::from(msg) } else { msg.string(bytes) }
}
