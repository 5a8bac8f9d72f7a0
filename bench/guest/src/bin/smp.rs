//! Suite `smp`: short messages on several processors, and between them.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use bench_guest::{check, measured, smp};

measured!(run);

fn run() -> Result<(), &'static str> {
    check::run();
    smp::run()
}
