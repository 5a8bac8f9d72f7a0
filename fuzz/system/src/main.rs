//! The fuzzer against the system that people boot (`fuzz/system/system.toml`): the real root
//! task, pager, σ0, console driver and Unix server; hostile tasks with no rights in their
//! descriptions, which know all protocols; canaries beside them. One program; its arguments
//! say which part it is.
//!
//! | part | what it does |
//! |---|---|
//! | `judge` | starts the hostile, ends them often, looks after canaries and servers, gives the verdict |
//! | `hostile` | three threads that take one random action after the other (`fuzzing::hostile`) |
//! | `watch` | wakes often, above all servers, and measures how late |
//! | `work` | has memory and registers that nobody else may change, and its share of the processor |
//! | `serve`, `call` | a named server and its client: messages, strings, ids and names are checked |
//! | `write` | writes lines on the console |
//!
//! Everything follows from the seed. Linux programs are hostile and canary, too: the
//! `command` of the system runs `tests/linux/programs/fuzz.c`.
#![no_std]
#![no_main]

extern crate alloc;

mod canary;
mod hostile;
mod judge;
mod life;
mod order;
mod partners;
mod report;

runtime::entry!(main);

/// The body of a hostile thread, called by `fuzz_start` with its stack pointer.
// SAFETY: no other function of this program has the name.
#[unsafe(export_name = "fuzz_live")]
extern "C" fn live(sp: u64) -> ! {
    fuzzing::hostile::live(fuzzing::den::Den::at(hostile::DEN), sp)
}

fn main() {
    let mut buffer = [0; 64];
    match runtime::root::arguments(&mut buffer) {
        "judge" => judge::run(),
        "hostile" => hostile::run(),
        "watch" => canary::watch(),
        "work" => canary::work(),
        "serve" => partners::serve(),
        "call" => partners::call(),
        "write" => canary::write(),
        other => panic!("fuzz-system has no part `{other}`"),
    }
}
