//! Suite `ops`: everything that is not IPC, once each.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use bench_guest::exchange::null_call;
use bench_guest::{calls, check, fault, irq, life, mapping, measured};

measured!(run);

fn run() -> Result<(), &'static str> {
    check::run();
    null_call();
    calls::run();
    calls::switch()?;
    fault::page_faults()?;
    fault::exceptions()?;
    irq::interrupts()?;
    life::threads("ops", "")?;
    life::tasks("ops", "")?;
    life::ticks("ops", "", 3);
    mapping::large()?;
    mapping::small()
}
