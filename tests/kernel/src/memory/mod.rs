//! Memory and ports: map, grant, flush; page sizes; rights; what is protected.

mod areas;
mod ports;
mod rights;
mod sizes;
mod trees;

use core::sync::atomic::{AtomicU64, Ordering};

use abi::protocol::exception as reg;
use abi::{MapItem, Rights};
use runtime::sigma0;

use crate::check;
use crate::report::{Outcome, Sentence};
use crate::victim::{Event, GENERAL_PROTECTION, Victim, at, registers};

/// Where victims see test pages: aligned to 1 GiB, nothing else near.
pub const PLACE: u64 = 0x40_0000_0000;
/// Log2 size of the block of test pages.
const BLOCK_BITS: u32 = 22;

static BLOCK: AtomicU64 = AtomicU64::new(0);

/// Runs the tests of this group.
pub fn run() {
    trees::run();
    rights::run();
    sizes::run();
    areas::run();
    ports::run();
}

/// The address (virtual = physical) of the block of 4 MiB for tests.
pub fn block() -> Outcome<u64> {
    let known = BLOCK.load(Ordering::Relaxed);
    if known != 0 {
        return Ok(known);
    }
    match sigma0::memory(None, BLOCK_BITS) {
        Some(window) => {
            BLOCK.store(window.base(), Ordering::Relaxed);
            Ok(window.base())
        }
        None => Err(Sentence::new(format_args!("sigma0 gave no block of 2^{BLOCK_BITS} bytes"))),
    }
}

/// Test page `index`, present in this space.
pub fn page(index: u64) -> Outcome<u64> {
    let address = block()? + index * 4096;
    let _ = crate::machine::read(address);
    Ok(address)
}

/// Lets the victim run `code` with RBX = `address`, answers the fault with `item`, and
/// expects that the code then works.
pub fn place(victim: &Victim, item: MapItem, code: &[u8], address: u64) -> Outcome<u64> {
    victim.begin(code, at(address, 0))?;
    match victim.event() {
        Event::PageFault(fault) if fault.address == address => victim.give(item)?,
        other => {
            return Err(Sentence::new(format_args!(
                "before the mapping at {address:#x} came {other:x?}"
            )));
        }
    }
    Ok(victim.expect_parked()?[reg::RAX])
}

/// Jumps to `address`: the access of the page fault, or `None` if the `int3` there executed.
pub fn execute(victim: &Victim, address: u64) -> Outcome<Option<Rights>> {
    let mut regs = registers();
    regs[reg::RIP] = address;
    victim.go(regs)?;
    match victim.event() {
        Event::PageFault(fault) => {
            check!(fault.address == address && fault.ip == address, "the fault is {fault:x?}");
            victim.abandon()?;
            Ok(Some(fault.access))
        }
        Event::Exception(regs)
            if regs[reg::RIP] == address && regs[reg::VECTOR] == GENERAL_PROTECTION =>
        {
            Ok(None)
        }
        other => Err(Sentence::new(format_args!("a jump to {address:#x} led to {other:x?}"))),
    }
}
