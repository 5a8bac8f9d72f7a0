//! Calls with all registers chosen.

use core::arch::global_asm;

global_asm!(include_str!("call.S"));

/// Index of each register.
pub mod reg {
    pub const RAX: usize = 0;
    pub const RBX: usize = 1;
    pub const RDX: usize = 3;
    pub const RSI: usize = 4;
    pub const RDI: usize = 5;
    pub const R8: usize = 7;
    pub const R9: usize = 8;
    pub const R10: usize = 9;
    pub const R12: usize = 11;
    pub const R13: usize = 12;
    pub const R14: usize = 13;
    pub const R15: usize = 14;
}

/// Registers of MR0 to MR7.
pub const MRS: [usize; 8] =
    [reg::R9, reg::RAX, reg::RBX, reg::R10, reg::R12, reg::R13, reg::R14, reg::R15];

/// All registers but RSP.
pub type Registers = [u64; 15];

unsafe extern "C" {
    fn fuzz_call(registers: *mut Registers, target: u64);
    fn fuzz_trap();
    fn fuzz_echo();
    fn fuzz_spin();
}

/// Calls `target` with `registers`.
pub fn call(registers: &mut Registers, target: u64) {
    // SAFETY: none is needed: a hostile task may come to any harm, the judge starts
    // it again. The judge itself never calls this.
    unsafe { fuzz_call(registers, target) };
}

/// Address of a `syscall` that returns.
#[must_use]
pub fn trap() -> u64 {
    fuzz_trap as *const () as u64
}

/// Address of a loop that answers messages.
#[must_use]
pub fn echo() -> u64 {
    fuzz_echo as *const () as u64
}

/// Address of a long loop.
#[must_use]
pub fn spin() -> u64 {
    fuzz_spin as *const () as u64
}
