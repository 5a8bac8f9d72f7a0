//! Tests of the kernel from user level, as a root task: system calls, memory,
//! the kernel's own messages, bad input, vector state, interrupts. IPC itself has
//! its own program.
//!
//! The main thread is pager, scheduler and exception handler of everything; the
//! threads under test are `victim`s, whose registers it sets and reads by
//! exception messages. Each test leaves nothing behind.
#![no_std]
#![no_main]
// A failed test says what it saw; nobody waits for it.
#![allow(clippy::result_large_err)]

mod calls;
mod hostile;
mod machine;
mod memory;
mod protocols;
mod report;
mod rng;
mod states;
mod victim;
mod words;
mod world;

use report::{case, done};
use runtime::{boot_entry, kernel, sigma0};

boot_entry!(main);

/// The CMOS clock: index and data port.
pub const CMOS: u16 = 0x70;
/// A port without effect: the firmware's diagnostic display.
pub const DIAGNOSTIC: u16 = 0x80;

fn main() -> ! {
    root_harness::begin();
    let _ = sigma0::ports(CMOS, 1);
    let _ = sigma0::ports(DIAGNOSTIC, 2);
    world::init();
    calls::run();
    memory::run();
    protocols::run();
    states::run();
    protocols::sigma0::run();
    sigma0::close();
    hostile::run();
    case("checker_at_the_end", world::sound);
    done()
}

/// Pages of kernel memory that are free.
fn free_pages() -> u64 {
    kernel::inspect(abi::inspect::What::Kernel, 0, 0).map_or(0, |words| words[1])
}
