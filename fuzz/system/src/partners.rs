//! Two canaries that call each other in the middle of the crowd: words and a string, to a
//! server that everybody may send to and that is found by its name.

use abi::{Time, Timeouts};
use fuzzing::rng::mix;
use runtime::accept::TransferLimit;
use runtime::{Msg, accept, ipc, root};

use crate::canary::{Harm, Tale};
use crate::order;

/// The server's name, and the label of their messages.
pub const NAME: &str = "canary";
const LABEL: u64 = 0xCA11;
/// Words of the string, and where it is in the buffer, which has room around it.
const STRING: usize = 700;
const ROOM: usize = 64;
const GUARD: u8 = 0x6A;
/// How long a stranger's faults may last in a transfer; time limits of a call and of the rest
/// between two, µs.
const XFER: TransferLimit = TransferLimit::micros(2_000);
const CALL_US: u64 = 400_000;
const REST_US: u64 = 5_000;

fn bytes(number: u64) -> [u8; STRING * 8] {
    let mut text = [0; STRING * 8];
    for (index, chunk) in (100..).zip(text.chunks_mut(8)) {
        chunk.copy_from_slice(&mix(number, index).to_le_bytes());
    }
    text
}

/// The server: answers its partner, forgets everybody else.
pub fn serve() -> ! {
    let mut tale = Tale::new();
    let partner = order::find("call").map_or(abi::ThreadId::NIL, |about| about.main);
    root::register(NAME).unwrap_or_else(|why| panic!("the canary cannot register: {why}"));
    let mut buffer = [GUARD; STRING * 8 + 2 * ROOM];
    let mut reply = None;
    loop {
        let middle = &mut buffer[ROOM..ROOM + STRING * 8];
        let (from, msg) = accept::string(middle, XFER, || ipc::next_request(reply.take()));
        let around = buffer[..ROOM].iter().chain(&buffer[ROOM + STRING * 8..]);
        if around.into_iter().any(|byte| *byte != GUARD) {
            tale.harm(Harm::Beyond, [0, 0]);
        }
        if tale.answer(from, &msg) || from != partner {
            continue;
        }
        let number = tale.rounds();
        if msg.label() != LABEL || msg.mr[0] != number {
            tale.harm(Harm::Forged, [msg.tag.0, msg.mr[0]]);
        }
        if (1..4).any(|at| msg.mr[at as usize] != mix(number, at)) || msg.tag.typed() != 2 {
            tale.harm(Harm::Message, [msg.tag.0, msg.mr[1]]);
        }
        if buffer[ROOM..ROOM + STRING * 8] != bytes(number) {
            tale.harm(Harm::Text, [number, 0]);
        }
        tale.got_on();
        let next = tale.rounds();
        reply = Some((from, Msg::new(LABEL).words(&[next, mix(next, 3)])));
    }
}

/// The client: finds its server by name each time.
pub fn call() -> ! {
    let mut tale = Tale::new();
    let call_us = CALL_US * order::read().slack;
    let server = loop {
        if let Ok(server) = root::find(NAME, 1_000) {
            break server;
        }
    };
    loop {
        let number = tale.rounds();
        match root::lookup(NAME) {
            Ok(found) if found == server => {}
            Ok(found) => tale.harm(Harm::Lookup, [found.0, server.0]),
            Err(why) => tale.harm(Harm::Lookup, [why as u64, server.0]),
        }
        let text = bytes(number);
        let words = [number, mix(number, 1), mix(number, 2), mix(number, 3)];
        let msg = Msg::new(LABEL).words(&words).string(&text);
        let patience = Timeouts::new(Time::micros(call_us), Time::micros(call_us));
        match ipc::call_within(server, &msg, patience) {
            Ok(answer) if answer.mr[..2] == [number + 1, mix(number + 1, 3)] => tale.got_on(),
            Ok(answer) => tale.harm(Harm::Message, [answer.tag.0, answer.mr[0]]),
            Err(error) => tale.harm(Harm::Message, [error.word(), number]),
        }
        tale.listen(REST_US);
    }
}
