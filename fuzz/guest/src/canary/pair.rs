//! Two canaries that call each other in the middle of the crowd: words and a string,
//! to a server that everybody may send to.

use core::sync::atomic::Ordering;

use abi::{StringItem, ThreadId, Time, Timeouts, utcb as index};
use runtime::{Msg, ipc, utcb};

use super::{CAGES, CANARIES, Cage, Harm};
use crate::machine;
use crate::rng::mix;

/// Words of the string.
const STRING: usize = 700;
/// Where it is in the server's memory, with room around it that must stay as it is.
const PLACE: usize = 100;
const GUARD: u64 = 0x6A6A_6A6A_1234_5678;
/// The label of their messages.
const LABEL: u64 = 0xCA11;
/// The rest between two calls, µs.
const REST_US: u64 = 5_000;
/// How long a stranger's faults may last in a transfer, µs.
const XFER_US: u64 = 2_000;

fn partner(cage: &Cage) -> ThreadId {
    ThreadId(cage.partner.load(Ordering::Relaxed))
}

/// Writes words into this thread's UTCB, counted from U.
fn set_word(at: isize, value: u64) {
    machine::write(utcb::pointer().wrapping_add_signed(at as i64 * 8), value);
}

/// The body of the server: answers its partner, forgets everybody else.
pub extern "C" fn serve(number: u64) -> ! {
    let cage = &CAGES[number as usize % CANARIES];
    utcb::set_exception_handler(ThreadId::ROOT);
    utcb::set_xfer_timeouts(Timeouts::new(Time::ZERO, Time::micros(XFER_US)));
    cage.memory.iter().for_each(|word| word.store(GUARD, Ordering::Relaxed));
    let buffer = &raw const cage.memory[PLACE] as u64;
    let words = StringItem::simple(buffer, STRING as u64 * 8);
    let mut expected = 0;
    loop {
        set_word(index::BR0, 1);
        set_word(index::BR0 - 1, words[0]);
        set_word(index::BR0 - 2, words[1]);
        let Ok((from, msg)) = ipc::wait(Time::NEVER) else { continue };
        guards(cage);
        if from != partner(cage) {
            continue;
        }
        if msg.label() != LABEL || msg.mr[0] != expected {
            cage.harm(Harm::Forged, [msg.tag.0, msg.mr[0]]);
        }
        request(cage, &msg, expected);
        expected += 1;
        cage.got_on();
        let _ = ipc::reply(from, &Msg::new(LABEL).word(expected).word(mix(expected, 3)));
    }
}

fn guards(cage: &Cage) {
    let around = cage.memory[..PLACE].iter().chain(&cage.memory[PLACE + STRING..]);
    for word in around {
        if word.load(Ordering::Relaxed) != GUARD {
            cage.harm(Harm::Beyond, [word.load(Ordering::Relaxed), 0]);
            word.store(GUARD, Ordering::Relaxed);
        }
    }
}

fn request(cage: &Cage, msg: &Msg, number: u64) {
    let wrong = (1..4).find(|at| msg.mr[*at as usize] != mix(number, *at));
    if let Some(at) = wrong {
        cage.harm(Harm::Message, [at, msg.mr[at as usize]]);
    }
    if msg.tag.typed() != 2 {
        cage.harm(Harm::Message, [msg.tag.0, 0]);
    }
    for (at, word) in (0..).zip(&cage.memory[PLACE..PLACE + STRING]) {
        let value = word.load(Ordering::Relaxed);
        if value != mix(number, 100 + at) {
            return cage.harm(Harm::StringData, [at, value]);
        }
    }
}

/// The body of the client.
pub extern "C" fn call(number: u64) -> ! {
    let cage = &CAGES[number as usize % CANARIES];
    utcb::set_exception_handler(ThreadId::ROOT);
    let mut count = 0;
    loop {
        for (at, word) in (0..).zip(&cage.memory[..STRING]) {
            word.store(mix(count, 100 + at), Ordering::Relaxed);
        }
        let [header, place] = StringItem::simple(cage.memory.as_ptr() as u64, STRING as u64 * 8);
        let mut msg = Msg::new(LABEL).words(&[count, mix(count, 1), mix(count, 2), mix(count, 3)]);
        (msg.mr[4], msg.mr[5]) = (header, place);
        msg.tag.0 |= 2 << 6;
        match ipc::call(partner(cage), &msg) {
            Ok(answer) if answer.mr[..2] == [count + 1, mix(count + 1, 3)] => {}
            Ok(answer) => cage.harm(Harm::Message, [answer.tag.0, answer.mr[0]]),
            Err(error) => cage.harm(Harm::Refused, [error.word(), count]),
        }
        count += 1;
        cage.got_on();
        ipc::sleep(REST_US);
    }
}
