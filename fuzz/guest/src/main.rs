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

mod call;
mod canary;
mod config;
mod den;
mod exhaust;
mod hostile;
mod judge;
mod machine;
mod report;
mod rng;
mod tasks;

use config::Task;
use report::EXIT_PORT;
use runtime::{boot_entry, direct, sigma0};

boot_entry!(main);

/// Ports without effect that some of the hostile are given: DMA page registers.
pub const HARMLESS_PORTS: (u16, u32) = (0x80, 4);
/// Log2 size of the memory that the hostile map to and fro: two large pages.
pub const PLAYGROUND_BITS: u32 = 22;

fn main() -> ! {
    let _ = sigma0::ports(direct::BASE, direct::PORT_BITS);
    let _ = sigma0::ports(EXIT_PORT, 2);
    let _ = sigma0::ports(HARMLESS_PORTS.0, HARMLESS_PORTS.1);
    let config = match config::read() {
        Task::Fuzz(config) => config,
        Task::Exhaust(length) => exhaust::run(length),
    };
    let Some(playground) = sigma0::memory(None, PLAYGROUND_BITS) else {
        report::end(0, &["there is no memory to play with"])
    };
    sigma0::close();
    machine::touch_image();
    judge::Judge::new(config, playground.base()).run()
}
