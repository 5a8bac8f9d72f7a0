//! The unsafe floor of the tests: raw memory, raw calls.
//!
//! Everything here is as dangerous as what the tests are about. The main thread
//! passes only addresses of its own statics and of windows it claimed; threads
//! under test run on pages of their own (`victim`).

use core::arch::asm;

use abi::ThreadId;
use runtime::syscall::{self, ThreadRegisters};
use runtime::utcb;

/// RFLAGS.RF: a processor sets it in what it saves of a fault (Intel SDM 3B, 17.3.1.1); QEMU does not.
pub const RESUME_FLAG: u64 = 1 << 16;

/// Reads the word at `address`.
#[must_use]
pub fn read(address: u64) -> u64 {
    // SAFETY: callers name mapped memory that no Rust object owns exclusively.
    unsafe { (address as *const u64).read_volatile() }
}

/// Writes the word at `address`.
pub fn write(address: u64, value: u64) {
    // SAFETY: as in `read`.
    unsafe { (address as *mut u64).write_volatile(value) }
}

/// Copies `bytes` to `address`.
pub fn write_bytes(address: u64, bytes: &[u8]) {
    for (at, byte) in (address..).zip(bytes) {
        // SAFETY: as in `read`.
        unsafe { (at as *mut u8).write_volatile(*byte) };
    }
}

/// ThreadControl with raw words: dest, SpaceSpecifier, scheduler, pager, UTCB location.
/// The error code is 0 for success.
#[must_use]
pub fn thread_control(
    dest: ThreadId,
    space: ThreadId,
    scheduler: ThreadId,
    pager: ThreadId,
    location: u64,
) -> u64 {
    // SAFETY: the threads under test own nothing of this one's.
    let ok = unsafe { syscall::thread_control(dest.0, space.0, scheduler.0, pager.0, location) };
    if ok { 0 } else { utcb::error_code() }
}

/// ExchangeRegisters: the returned id and the old values.
pub fn exchange(dest: ThreadId, regs: ThreadRegisters) -> (ThreadId, ThreadRegisters) {
    // SAFETY: the threads under test run on stacks and code of their own.
    let (id, old) = unsafe { syscall::exchange_registers(dest.0, regs) };
    (ThreadId(id), old)
}

/// Unmap with all eight register words; `control` as in X.2 5.8.
pub fn unmap(control: u64, mr: [u64; 8]) -> [u64; 8] {
    // SAFETY: callers flush only test memory and what the initial space gives again.
    unsafe { syscall::unmap(control, utcb::pointer(), mr) }
}

/// MemoryControl of the fpage in MR0 with four attributes; success and error code.
#[must_use]
pub fn memory_control(control: u64, fpage: u64, attributes: [u64; 4]) -> (bool, u64) {
    let mut rdx = control;
    let link = abi::layout::stub_address(abi::layout::stub::MEMORY_CONTROL);
    // SAFETY: the binding of X.2 5.2; the call changes no memory but MR0..MR7.
    unsafe {
        asm!(
            "push rbp", "push rbx", "mov rbp, r15", "call rbp", "pop rbx", "pop rbp",
            inout("rdx") rdx, inout("rdi") utcb::pointer() => _,
            inout("rcx") attributes[0] => _, inout("rsi") attributes[1] => _,
            inout("r8") attributes[2] => _, inout("r11") attributes[3] => _,
            inout("r9") fpage => _, out("rax") _, out("r10") _, out("r12") _, out("r13") _,
            out("r14") _, inout("r15") link => _,
        );
    }
    (rdx == 1, utcb::error_code())
}

/// Runs CPUID.
#[must_use]
pub fn cpuid(leaf: u32, sub: u32) -> [u32; 4] {
    let result = core::arch::x86_64::__cpuid_count(leaf, sub);
    [result.eax, result.ebx, result.ecx, result.edx]
}
