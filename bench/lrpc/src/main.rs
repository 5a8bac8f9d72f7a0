//! Suite `lrpc`: calls as programs make them, stubs included.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

mod stubs;

use bench_guest::{check, measured};

measured!(run);

fn run() -> Result<(), &'static str> {
    check::run();
    stubs::table()?;
    stubs::strings()
}
