//! Boot, as far as it goes: the firmware starts the kernel, and the kernel says who it is.

use core::arch::global_asm;

use super::machine::VERSION;
use super::sbi::{self, EXIT_FAILURE, EXIT_SUCCESS};
use super::trap::Cause;
use crate::kprintln;

global_asm!(include_str!("boot.S"), STACK_BYTES = const 16384);

/// Entered from `boot.S`.
#[unsafe(no_mangle)]
extern "C" fn boot_main(processor: u64, device_tree: u64) -> ! {
    kprintln!("{VERSION}, an L4 X.2 microkernel");
    kprintln!("baton: processor {processor}, device tree at {device_tree:#x}");
    kprintln!(
        "baton: threads need a tcb array, which this architecture does not have yet; stopped"
    );
    sbi::exit(EXIT_SUCCESS)
}

/// Entered from `boot.S` for a trap in the kernel.
#[unsafe(no_mangle)]
extern "C" fn boot_trap(cause: u64, ip: u64, value: u64) -> ! {
    let cause = Cause::decode(cause);
    kprintln!("baton: {cause:?} in the kernel at {ip:#x}, value {value:#x}");
    sbi::exit(EXIT_FAILURE)
}
