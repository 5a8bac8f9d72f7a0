//! Exceptions and bad accesses become signals.

use alloc::rc::Rc;

use linux_raw_sys::general as l;

use super::Trap;
use super::info::Info;
use super::send::force;
use crate::machine::{Access, VECTOR_STATE_MAX};
use crate::thread::{Doing, Thread};
use crate::unix::Unix;

/// x86's vector of page faults.
const PAGE_FAULT: u64 = 14;

/// A program raised an exception: SIGFPE, SIGILL, SIGTRAP, SIGSEGV, SIGBUS.
pub fn exception(unix: &Unix, thread: &Rc<Thread>, vector: u8, error: u64) {
    let rip = unix.machine.registers(thread.machine.get()).rip;
    let info = match vector {
        0 => Info::fault(l::SIGFPE, l::FPE_INTDIV as i32, rip),
        1 => Info::fault(l::SIGTRAP, l::TRAP_TRACE as i32, rip),
        3 => Info::kernel(l::SIGTRAP),
        6 => Info::fault(l::SIGILL, l::ILL_ILLOPN as i32, rip),
        11 | 12 => Info::kernel(l::SIGBUS),
        16 | 19 => Info::fault(l::SIGFPE, float_code(unix, thread, vector), rip),
        17 => Info::fault(l::SIGBUS, l::BUS_ADRALN as i32, 0),
        _ => Info::kernel(l::SIGSEGV),
    };
    raise(unix, thread, Trap { vector: u64::from(vector), error, address: 0 }, info);
}

/// Which floating-point exception it was, from the status that is not masked.
fn float_code(unix: &Unix, thread: &Rc<Thread>, vector: u8) -> i32 {
    let mut state = [0; VECTOR_STATE_MAX];
    unix.machine.vector_state(thread.machine.get(), &mut state);
    let word = |at: usize| u32::from(u16::from_le_bytes([state[at], state[at + 1]]));
    let raised = match vector {
        // FSW and FCW; MXCSR.
        16 => word(2) & !word(0),
        _ => word(24) & !(word(24) >> 7),
    };
    let code = match raised {
        _ if raised & 0x01 != 0 => l::FPE_FLTINV,
        _ if raised & 0x04 != 0 => l::FPE_FLTDIV,
        _ if raised & 0x08 != 0 => l::FPE_FLTOVF,
        _ if raised & 0x12 != 0 => l::FPE_FLTUND,
        _ if raised & 0x20 != 0 => l::FPE_FLTRES,
        _ => 0,
    };
    code as i32
}

/// A memory access that cannot be allowed: SIGSEGV (or SIGBUS) with its address and `si_code`.
pub fn bad_access(unix: &Unix, thread: &Rc<Thread>, signal: u32, code: i32, address: u64) {
    let access = thread.fault_access.get();
    // The processor's error code: present, write, user, instruction.
    let error = u64::from(signal == l::SIGSEGV && code == l::SEGV_ACCERR as i32)
        | u64::from(access.contains(Access::WRITE)) << 1
        | 1 << 2
        | u64::from(access.contains(Access::EXECUTE)) << 4;
    let trap = Trap { vector: PAGE_FAULT, error, address };
    raise(unix, thread, trap, Info::fault(signal, code, address));
}

/// The thread gets the signal when it is its turn in the run queue.
fn raise(unix: &Unix, thread: &Rc<Thread>, trap: Trap, info: Info) {
    thread.signals.trap.set(trap);
    thread.doing.set(Doing::Stopped);
    force(unix, thread, info);
    unix.run_queue.push(thread);
}
