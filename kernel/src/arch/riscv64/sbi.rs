//! What the machine's firmware does for the kernel (RISC-V supervisor binary interface).

use core::arch::asm;

use super::csr;

/// Console Putchar, of the interface's first version, which all firmware has.
const PUT_CHARACTER: u64 = 1;
/// System Reset Extension.
const SYSTEM_RESET: u64 = 0x5352_5354;
/// Reset type: power off.
const SHUTDOWN: u64 = 0;

/// All went well.
pub const EXIT_SUCCESS: u8 = 0;
/// The kernel stopped on an error: the firmware's "system failure".
pub const EXIT_FAILURE: u8 = 1;

fn call(extension: u64, function: u64, first: u64, second: u64) {
    // SAFETY: the firmware keeps all registers but a0 and a1, and touches no memory of the
    // kernel's in the calls made here.
    unsafe {
        asm!("ecall", in("a7") extension, in("a6") function, inout("a0") first => _,
             inout("a1") second => _, options(nostack));
    }
}

/// Writes to the firmware's console.
pub fn console_write(bytes: &[u8]) {
    bytes.iter().for_each(|byte| call(PUT_CHARACTER, 0, u64::from(*byte), 0));
}

/// Ends the machine.
pub fn exit(code: u8) -> ! {
    call(SYSTEM_RESET, 0, SHUTDOWN, u64::from(code));
    csr::stop()
}
