//! The gate: the few operations that no change may make slower unnoticed.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use bench_guest::exchange::{
    Where, armed, complete, local, local_vector, strings, unaligned, vector, words,
};
use bench_guest::fixup::nested;
use bench_guest::{calls, check, fault, irq, life, lrpc, marks, measured, memory};

measured!(run);

/// The gate's string, bytes; and log2 of the buffers for it.
const STRING: u64 = 4096;
const BUFFER: u32 = 22;
const LARGE_PAGE: u64 = 1 << 21;

fn run() -> Result<(), &'static str> {
    check::run();
    let (source, target) = (memory::block(BUFFER)?, memory::block(BUFFER)?);
    (0..1 << BUFFER).step_by(4096).for_each(|at| source.write(at, at));
    marks::set_buffer(target.base(), target.bytes());
    for place in Where::ALL {
        words(place, [0, 63].into_iter())?;
    }
    complete(Where::Cross)?;
    life::threads("ops", "")?;
    // Behind the deletions, which look at a task that has taken part, and before the thread is armed.
    lrpc::null()?;
    local()?;
    local_vector()?;
    nested()?;
    vector(Where::Cross)?;
    strings(Where::Cross, source.base(), [STRING].into_iter())?;
    unaligned(source.base() + LARGE_PAGE, target.base() + LARGE_PAGE)?;
    fault::page_faults()?;
    fault::exceptions()?;
    irq::interrupts()?;
    calls::run();
    life::ticks("ops", "", 3);
    armed()?;
    Ok(())
}
