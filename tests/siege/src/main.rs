//! A system under siege (`tests/systems/siege.toml`): clients keep every server of the
//! default system busy, a killer kills one server after the other at random moments, and
//! canaries notice what they should not. One program; its arguments say which part it is.
//!
//! | part | what it does |
//! |---|---|
//! | `kill` | kills, measures how long the server is missed, gives the verdict |
//! | `echo` | a server of its own, killed like the others: checks requests, computes answers |
//! | `call` | calls `echo` with words and strings that are checked on both sides |
//! | `write` | writes numbered lines on the console |
//! | `touch` | has pages that vanish with the pager, and have to come back unchanged |
//! | `watch` | wakes often, above all but the root task, and measures how late |
//!
//! Load tasks answer the killer's questions (`tally`); none of them may ever see a message
//! that is not whole, or memory that changed.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod caller;
mod echo;
mod histogram;
mod killer;
mod order;
mod pattern;
mod tally;
mod toucher;
mod victims;
mod watcher;
mod writer;

runtime::entry!(main);

fn main() {
    let mut buffer = [0; 64];
    match runtime::root::arguments(&mut buffer) {
        "kill" => killer::run(),
        "echo" => echo::run(),
        "call" => caller::run(),
        "write" => writer::run(),
        "touch" => toucher::run(),
        "watch" => watcher::run(),
        other => panic!("siege has no part `{other}`"),
    }
}
