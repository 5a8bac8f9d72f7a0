//! What the functions of `wit/carried.wit` do, whoever calls them in whatever way.

use runtime::ipc;
use runtime::misdeed::{self, Misdeed};
use runtime::service::{Caller, Room};

use crate::carried::{Kind, Pair, Server, Wide};

/// The server; it keeps nothing.
#[derive(Debug)]
pub struct Carried;

impl Server for Carried {
    fn null(&self, _: Caller) {}

    fn add(&self, _: Caller, a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }

    fn seven(&self, _: Caller, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64) -> u64 {
        [a, b, c, d, e, f, g].into_iter().fold(0, |sum, number| sum * 10 + number)
    }

    fn widen(&self, _: Caller, from: u64) -> Wide {
        let [a, b, c, d, e, f, g, h, i, j] = core::array::from_fn(|index| from + index as u64);
        Wide { a, b, c, d, e, f, g, h, i, j }
    }

    fn narrow(&self, _: Caller, wide: Wide, more: u64) -> u64 {
        let Wide { a, b, c, d, e, f, g, h, i, j } = wide;
        [a, b, c, d, e, f, g, h, i, j, more].iter().sum()
    }

    fn echo_text<'r>(&'r self, _: Caller, text: &str, mut room: Room<'r>) -> &'r str {
        room.text(format_args!("{text}"))
    }

    fn count(&self, _: Caller, of: u8, text: &str) -> u32 {
        text.bytes().filter(|byte| *byte == of).count() as u32
    }

    fn repeat<'r>(&'r self, _: Caller, letter: char, count: u32, mut room: Room<'r>) -> &'r str {
        room.text(format_args!("{}", Letters(letter, count)))
    }

    fn swap<'r>(&'r self, _: Caller, pair: Pair<'_>, _: u8, mut room: Room<'r>) -> Pair<'r> {
        let first = room.text(format_args!("{}", pair.second));
        Pair { first, second: room.text(format_args!("{}", pair.first)) }
    }

    fn echo_long<'r>(&'r self, _: Caller, bytes: &[u8], mut room: Room<'r>) -> &'r [u8] {
        room.copy(bytes)
    }

    fn lengthen<'r>(&'r self, _: Caller, text: &str, mut room: Room<'r>) -> &'r [u8] {
        room.text(format_args!("{text}{text}{text}{text}{text}{text}{text}{text}{text}{text}"))
            .as_bytes()
    }

    fn shorten<'r>(&'r self, _: Caller, bytes: &[u8], mut room: Room<'r>) -> &'r str {
        let place = room.bytes(bytes.len().div_ceil(10));
        place.iter_mut().zip(bytes.iter().step_by(10)).for_each(|(to, byte)| *to = *byte);
        core::str::from_utf8(place).unwrap_or("?")
    }

    fn perhaps<'r>(&'r self, _: Caller, wanted: bool, kind: Kind, _: Room<'r>) -> Option<&'r str> {
        let name = match kind {
            Kind::Small => "small",
            Kind::Large => "large",
        };
        wanted.then_some(name)
    }

    fn wait(&self, _: Caller, ms: u32) {
        ipc::sleep(u64::from(ms) * 1000);
    }

    fn fail(&self, _: Caller) {
        misdeed::commit(Misdeed::NullRead);
    }
}

/// A letter, so many times.
struct Letters(char, u32);

impl core::fmt::Display for Letters {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        use core::fmt::Write as _;
        (0..self.1).try_for_each(|_| f.write_char(self.0))
    }
}
