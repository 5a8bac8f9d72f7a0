//! The gate's part of the suite `smp`: short messages on all processors at once, and the lines that they share.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use bench_guest::{check, measured, smp};

measured!(run);

fn run() -> Result<(), &'static str> {
    check::run();
    smp::watched()
}
