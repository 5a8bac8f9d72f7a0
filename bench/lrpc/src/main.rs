//! Suite `lrpc`: calls as programs make them, stubs included.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

mod stubs;

use bench_guest::{check, lrpc, measured};

measured!(run);

fn run() -> Result<(), &'static str> {
    check::run();
    lrpc::null()?;
    stubs::table()?;
    stubs::by_calls()?;
    stubs::inside()?;
    stubs::strings()
}
