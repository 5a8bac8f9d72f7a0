//! How the cost of the basic operations grows with the number of threads, timers,
//! tasks and mappings: rows of suite `growth` at 10, 100, ... 100,000 of each, as
//! far as the kernel's memory goes.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use bench_guest::{growth, measured};

measured!(run);

fn run() -> Result<(), &'static str> {
    growth::threads()?;
    growth::mappings()
}
