//! An ordinary task (`tests/systems/hostile.toml`) that wants what its description does not
//! name, from the servers of the default system. One program; its arguments say which part.
//!
//! | part | what it does |
//! |---|---|
//! | `attack` | the attacks, each a test |
//! | `fail` | ends by a fault, at once |
//! | `voice` | is the console's driver, and logs |
//! | `clock` | a driver with a line, ports and memory of its own, which have to stay its own |
//!
//! Each attack is a function that returns a sentence if it succeeded.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod clock;
mod console;
mod devices;
mod requests;
mod shares;

use alloc::string::String;

use runtime::{println, root};

/// What became of an attack: nothing, or what it reached.
type Outcome = Result<(), String>;

/// A test's name, and what it does.
type Attack = (&'static str, fn() -> Outcome);

/// All of them, in the order in which they are tried.
const ATTACKS: &[Attack] = &[
    ("memory-that-the-line-does-not-name", devices::memory),
    ("anothers-interrupt", devices::anothers_interrupt),
    ("second-attach", devices::second_attach),
    ("anothers-ports", devices::ports),
    ("sigma0-for-anybody", devices::sigma0),
    ("anothers-name", shares::names),
    ("unused-names", shares::lookups),
    ("files-of-others", shares::files),
    ("clients-of-others", shares::clients),
    ("all-blocks", shares::blocks),
    ("all-spaces", shares::spaces),
    ("malformed-requests", requests::malformed),
    ("all-waits", shares::waits),
    ("anothers-terminal", console::anothers_terminal),
    ("voice-of-the-root-task", console::voice_of_root),
    ("control-characters", console::control_characters),
    ("strings-that-never-come", console::strings_that_never_come),
    ("flood-of-logs", console::flood_of_logs),
    ("driver-is-unharmed", clock::is_unharmed),
];

runtime::entry!(main);

fn main() {
    let mut buffer = [0; 64];
    match root::arguments(&mut buffer) {
        "attack" => attack(),
        "clock" => clock::run(),
        "voice" => console::voice(),
        "fail" => panic!("as always"),
        other => panic!("hostile has no part `{other}`"),
    }
}

fn attack() {
    for (name, attack) in ATTACKS {
        match attack() {
            Ok(()) => println!("test {name} ... ok"),
            Err(why) => println!("test {name} ... FAILED: {why}"),
        }
    }
    println!("tests done");
}
