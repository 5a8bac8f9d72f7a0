//! Attacks on the system that people boot (`tests/systems/attacks.toml`): the real root
//! task, pager, σ0, console driver and Unix server, an ordinary task that attacks them, and
//! victims beside it. One program; its arguments say which part it is.
//!
//! | part | what it does |
//! |---|---|
//! | `judge` | starts an attacker for each attack, helps it to what it needs to be a danger, looks after the victims, gives the verdict |
//! | `hostile` | tries the attack that the judge names (`attack`); has no rights in its description |
//! | `victim` | has a page that nobody else may see or change |
//! | `server` | takes messages when the judge says so, and tells from whom they came |
//! | `clerk` | has procedures that others call, and two hosts for them |
//! | `canary` | computes when the judge says so, and tells for how long it did not get the processor |
//!
//! Each attack is a test of its own, `test NAME ... ok` or `test NAME ... FAILED: sentence`.
//! Those that are known to succeed are on the list `tests/attacks/open`; `./baton test`
//! shows them as open. Parts find each other by the judge's messages, not by names.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod attack;
mod hostile;
mod judge;
#[allow(unsafe_code)]
mod machine;
mod order;
mod parts;

runtime::entry!(main);

fn main() {
    let mut buffer = [0; 64];
    match runtime::root::arguments(&mut buffer) {
        "judge" => judge::run(),
        "hostile" => hostile::run(),
        "victim" => parts::victim(),
        "server" => parts::server(),
        "canary" => parts::canary(),
        "clerk" => parts::clerk(),
        other => panic!("attacks has no part `{other}`"),
    }
}
