//! Machine checks: the processor's own reports of errors in memory, caches and buses
//! (Intel SDM 3B, 16; AMD APM 2, 9).
//!
//! [`init`] switches all banks on. [`enter`], on a stack of its own, says what they hold, and
//! goes on only where the processor says that nothing was lost.

use super::cpu::{self, cpuid, read_msr, write_msr};
use super::frame::TrapFrame;
use super::machine_error::{Record, status};
use super::percpu::cpu;
use super::place::linked;
use crate::kprintln;

const MCG_CAP: u32 = 0x179;
const MCG_STATUS: u32 = 0x17A;
const MCG_CTL: u32 = 0x17B;
/// Control, status, address and miscellaneous registers of bank 0; the next bank's follow.
const BANK_0: u32 = 0x400;
const STATUS: u32 = 1;
const ADDRESS: u32 = 2;

/// MCG_CAP: how many banks, and whether MCG_CTL exists.
const BANKS: u64 = 0xFF;
const HAS_CONTROL: u64 = 1 << 8;
/// MCG_CAP: errors that nobody has met yet are told apart.
const RECOVERS: u64 = 1 << 24;
/// MCG_STATUS: the interrupted program can go on.
const RESTARTABLE: u64 = 1 << 0;

/// Whether there are banks to read.
fn has_banks() -> bool {
    let bits = 1 << 7 | 1 << 14;
    cpuid(1, 0).edx & bits == bits
}

fn banks() -> u32 {
    // SAFETY: called only if there are banks.
    (unsafe { read_msr(MCG_CAP) } & BANKS) as u32
}

/// Calls `each` for every bank that holds a record, and empties it.
fn drain(mut each: impl FnMut(Record)) {
    for bank in 0..banks() {
        let first = BANK_0 + bank * 4;
        // SAFETY: MCG_CAP says that the bank exists.
        let status = unsafe { read_msr(first + STATUS) };
        if status & status::VALID == 0 {
            continue;
        }
        let has_address = status & status::HAS_ADDRESS != 0;
        // SAFETY: as above; the status says that there is an address.
        let address = if has_address { unsafe { read_msr(first + ADDRESS) } } else { 0 };
        each(Record { bank, status, address });
        // SAFETY: as above; zero empties the record.
        unsafe { write_msr(first + STATUS, 0) };
    }
}

/// Says what was noted before the kernel ran, and switches every report on; CR4.MCE is set,
/// and the vector has its stack.
pub fn init() {
    if !has_banks() {
        return;
    }
    drain(|record| kprintln!("baton: machine check before the start: {record}"));
    // SAFETY: the registers exist where MCG_CAP says so.
    unsafe {
        if read_msr(MCG_CAP) & HAS_CONTROL != 0 {
            write_msr(MCG_CTL, !0);
        }
        // Bank 0 of Intel's family 6 before model 0x1A is the platform's (SDM 3B, 16.3.2.1).
        for bank in u32::from(first_bank_is_reserved())..banks() {
            write_msr(BANK_0 + bank * 4, !0);
        }
    }
}

fn first_bank_is_reserved() -> bool {
    let signature = cpuid(1, 0).eax;
    let (family, model) = (signature >> 8 & 0xF, signature >> 4 & 0xF | signature >> 12 & 0xF0);
    cpuid(0, 0).ebx == u32::from_le_bytes(*b"Genu") && family == 6 && model < 0x1A
}

/// A machine check: says what it is; stops the machine unless nothing was lost.
pub fn enter(frame: &TrapFrame) {
    let place = if frame.cs.get() & 3 == 0 { "the kernel" } else { "a program" };
    kprintln!("baton: machine check; it met {place} at {:#x}", linked(frame.ip.get()));
    let mut is_survivable = has_banks();
    if is_survivable {
        // SAFETY: the register exists if there are banks.
        let recovers = unsafe { read_msr(MCG_CAP) } & RECOVERS != 0;
        drain(|record| {
            kprintln!("baton: machine check: {record}");
            is_survivable &= record.is_survivable(recovers);
        });
        // SAFETY: the register exists if there are banks.
        is_survivable &= unsafe { read_msr(MCG_STATUS) } & RESTARTABLE != 0;
    }
    // Returning would let a second NMI in on the stack of the one that is being handled; and on other processors
    // than the first all of these stacks are in one page (`replica.rs`).
    is_survivable &= !super::descriptors::is_ist_stack(frame.sp.get());
    if !is_survivable {
        kprintln!("baton: machine check: what was computed cannot be trusted; the machine stops");
        cpu::exit(cpu::EXIT_FAILURE);
    }
    // SAFETY: as above: the processor may report the next one.
    unsafe { write_msr(MCG_STATUS, 0) };
    let count = &cpu().machine_checks;
    count.set(count.get() + 1);
    kprintln!("baton: machine check: nothing was lost, {} so far; the system goes on", count.get());
}
