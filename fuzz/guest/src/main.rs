//! The fuzzer: hostile tasks issue structured random system calls; canaries do work
//! and notice harm; the judge, this program's main thread, pages, repairs and
//! replaces the hostile, asks the kernel's checker, and gives the verdict.
//!
//! Everything follows from the seed: with counted instructions a run repeats to the
//! instruction. The host's side is `xtask/lab/src/fuzz`.
//!
//! `exhaust` is the other thing that this program does: tasks that take all they can
//! get, one kind of thing at a time.
#![no_std]
#![no_main]

mod canary;
mod config;
mod exhaust;
mod judge;
mod report;
mod tasks;

use config::Task;
use fuzzing::{HARMLESS_PORTS, PLAYGROUND_BITS, den, hostile, machine, rng};
use report::EXIT_PORT;
use runtime::{boot_entry, direct, sigma0};

boot_entry!(main);

/// The body of a hostile thread, called by `fuzz_start` with its stack pointer.
// SAFETY: no other function of this program has the name.
#[unsafe(export_name = "fuzz_live")]
extern "C" fn live(sp: u64) -> ! {
    hostile::live(tasks::den_at(sp), sp)
}

fn main() -> ! {
    let _ = sigma0::ports(direct::BASE, direct::PORT_BITS);
    let _ = sigma0::ports(EXIT_PORT, 2);
    let _ = sigma0::ports(HARMLESS_PORTS.0, HARMLESS_PORTS.1);
    let config = match config::read() {
        Task::Fuzz(config) => config,
        Task::Exhaust(length, slack) => exhaust::run(length, slack),
    };
    let Some(playground) = sigma0::memory(None, PLAYGROUND_BITS) else {
        report::end(0, &["there is no memory to play with"])
    };
    sigma0::close();
    machine::touch_image();
    judge::Judge::new(config, playground.base()).run()
}
