//! What a tracer sees of a stopped thread's registers, and what it may set.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general as l;
use zerocopy::{FromBytes, IntoBytes};

use super::stops::RESTART;
use super::{Phase, Tracee, Why};
use crate::errno::Errno;
use crate::machine::{Registers, Reply, VECTOR_STATE_MAX};
use crate::signal::{Info, vector};
use crate::thread::{Doing, Thread};
use crate::unix::Unix;

/// RFLAGS' bit that lets the processor trap behind each instruction (Intel SDM 3B, 18.3.1.4).
pub const TRAP_FLAG: u64 = 1 << 8;
/// Words of `struct user_regs_struct`.
pub(crate) const WORDS: usize = 27;
/// Bytes of FXSAVE's image.
pub(crate) const LEGACY: usize = 512;
/// Bytes of `struct user`, and where the debug registers are in it.
const USER_BYTES: u64 = 928;
const DEBUG: u64 = 848;
/// Selectors of programs, as Linux has them.
const CODE: u64 = 0x33;
const STACK: u64 = 0x2B;
/// Positions of some words.
pub(super) const RAX: usize = 10;
const ORIG_RAX: usize = 15;
pub(super) const RIP: usize = 16;
const CS: usize = 17;
const FLAGS: usize = 18;
pub(super) const RSP: usize = 19;
const SS: usize = 20;
pub(super) const FS_BASE: usize = 21;
pub(super) const GS_BASE: usize = 22;
/// Positions of a call's arguments: RDI, RSI, RDX, R10, R8, R9.
const ARGUMENTS: [usize; 6] = [14, 13, 12, 7, 9, 8];

/// What is told about an instruction that was stepped over.
pub(super) fn stepped(rip: u64) -> Info {
    Info::fault(l::SIGTRAP, l::TRAP_TRACE as i32, rip)
}

/// The registers by their place in `struct user_regs_struct`.
fn fields(r: &mut Registers) -> [(usize, &mut u64); 20] {
    [
        (0, &mut r.r15),
        (1, &mut r.r14),
        (2, &mut r.r13),
        (3, &mut r.r12),
        (4, &mut r.rbp),
        (5, &mut r.rbx),
        (6, &mut r.r11),
        (7, &mut r.r10),
        (8, &mut r.r9),
        (9, &mut r.r8),
        (RAX, &mut r.rax),
        (11, &mut r.rcx),
        (12, &mut r.rdx),
        (13, &mut r.rsi),
        (14, &mut r.rdi),
        (RIP, &mut r.rip),
        (FLAGS, &mut r.rflags),
        (RSP, &mut r.rsp),
        (FS_BASE, &mut r.fs_base),
        (GS_BASE, &mut r.gs_base),
    ]
}

/// The words of `struct user_regs_struct`.
pub(super) fn read(unix: &Unix, thread: &Rc<Thread>, tracee: &Tracee) -> [u64; WORDS] {
    let mut words = of_stopped(unix, thread);
    if tracee.is_in_call() {
        words[RAX] = tracee.result.get();
    }
    words[ORIG_RAX] = tracee.call.get();
    words
}

/// The same of a thread that is stopped, outside of any call.
pub(crate) fn of_stopped(unix: &Unix, thread: &Rc<Thread>) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    let mut registers = unix.machine.registers(thread.machine.get());
    for (at, register) in fields(&mut registers) {
        words[at] = *register;
    }
    (words[ORIG_RAX], words[CS], words[SS]) = (u64::MAX, CODE, STACK);
    words
}

/// Sets them.
///
/// # Errors
/// `EIO` for a base or a selector that no program can have.
pub(super) fn write(
    unix: &Unix,
    thread: &Rc<Thread>,
    tracee: &Tracee,
    words: &[u64; WORDS],
) -> Result<(), Errno> {
    let before = read(unix, thread, tracee);
    let user = |at: usize| words[at] < crate::mm::USER_END;
    if words[CS] & 3 != 3 || words[SS] & 3 != 3 || !user(FS_BASE) || !user(GS_BASE) {
        return Err(Errno::EIO);
    }
    let (call, rip, rax) = (words[ORIG_RAX], words[RIP], words[RAX]);
    let in_call = tracee.is_in_call();
    let machine = thread.machine.get();
    let mut registers = unix.machine.registers(machine);
    let kept = registers.rax;
    for (at, register) in fields(&mut registers) {
        *register = words[at];
    }
    if in_call {
        registers.rax = kept;
    }
    unix.machine.set_registers(machine, &registers);
    tracee.call.set(call);
    tracee.touched.set(true);
    if !in_call {
        tracee.goes_on.borrow_mut().1 = Some(Reply::Resume);
        return Ok(());
    }
    tracee.result.set(rax);
    if tracee.stopped.get().is_some_and(Why::is_before_call) {
        let arguments = ARGUMENTS.map(|at| words[at]);
        if tracee.phase.get() == Phase::EntryAgain
            && (call != before[ORIG_RAX] || thread.arguments.get() != arguments)
        {
            // What was to begin again is another call now, which begins.
            unix.end_wait(thread);
            tracee.phase.set(Phase::Entry);
        }
        thread.arguments.set(arguments);
        return Ok(());
    }
    // A call that was broken off begins again unless its registers say otherwise.
    let again = rip == before[RIP] && call == before[ORIG_RAX] && RESTART.contains(&rax);
    if !again {
        abandon(unix, thread, tracee, rax);
    }
    Ok(())
}

/// The thread does not go on with the call it is in, but with its registers.
fn abandon(unix: &Unix, thread: &Rc<Thread>, tracee: &Tracee, rax: u64) {
    unix.end_wait(thread);
    let machine = thread.machine.get();
    let registers = Registers { rax, ..unix.machine.registers(machine) };
    unix.machine.set_registers(machine, &registers);
    tracee.phase.set(Phase::None);
    *tracee.goes_on.borrow_mut() = (Doing::Running, Some(Reply::Resume));
}

/// A word of `struct user`.
///
/// # Errors
/// `EIO` for one that is not there.
pub(super) fn read_word(
    unix: &Unix,
    thread: &Rc<Thread>,
    tracee: &Tracee,
    at: u64,
) -> Result<u64, Errno> {
    if !at.is_multiple_of(8) || at >= USER_BYTES {
        return Err(Errno::EIO);
    }
    if let Some(debug) = debug_register(at) {
        return Ok(tracee.debug.get()[debug]);
    }
    Ok(read(unix, thread, tracee).get((at / 8) as usize).copied().unwrap_or(0))
}

/// Sets a word of `struct user`.
///
/// # Errors
/// `EIO` for one that is not there or cannot be set, `EINVAL` for a breakpoint outside of user
/// memory, `ENOSPC` when one is to be enabled: there are none.
pub(super) fn write_word(
    unix: &Unix,
    thread: &Rc<Thread>,
    tracee: &Tracee,
    at: u64,
    value: u64,
) -> Result<(), Errno> {
    if !at.is_multiple_of(8) || at >= USER_BYTES {
        return Err(Errno::EIO);
    }
    if let Some(number) = debug_register(at) {
        return set_debug(tracee, number, value);
    }
    let mut words = read(unix, thread, tracee);
    let word = words.get_mut((at / 8) as usize).ok_or(Errno::EIO)?;
    *word = value;
    write(unix, thread, tracee, &words)
}

fn debug_register(at: u64) -> Option<usize> {
    (DEBUG..DEBUG + 64).contains(&at).then(|| ((at - DEBUG) / 8) as usize)
}

fn set_debug(tracee: &Tracee, number: usize, value: u64) -> Result<(), Errno> {
    let mut registers = tracee.debug.get();
    match number {
        0..=3 if value >= crate::mm::USER_END => return Err(Errno::EINVAL),
        4 | 5 => return Err(Errno::EIO),
        7 if value & 0xFF != 0 => return Err(Errno::ENOSPC),
        _ => registers[number] = value,
    }
    tracee.debug.set(registers);
    Ok(())
}

/// The vector state as XSAVE's image; at least FXSAVE's part of it.
pub(super) fn read_vector(unix: &Unix, thread: &Rc<Thread>) -> Vec<u8> {
    vector::for_tracer(unix, thread)
}

/// Sets FXSAVE's part of the vector state.
pub(super) fn write_legacy(unix: &Unix, thread: &Rc<Thread>, legacy: &[u8; LEGACY]) {
    let mut image = Box::new([0; VECTOR_STATE_MAX]);
    let len = unix.machine.vector_state(thread.machine.get(), &mut image);
    image[..LEGACY].copy_from_slice(legacy);
    let len = vector::with_legacy(&mut image, len);
    unix.machine.set_vector_state(thread.machine.get(), &image[..len]);
}

/// Sets all of it.
///
/// # Errors
/// `EINVAL` for an image that is none.
pub(super) fn write_vector(unix: &Unix, thread: &Rc<Thread>, from: &[u8]) -> Result<(), Errno> {
    let image = vector::checked(from).ok_or(Errno::EINVAL)?;
    unix.machine.set_vector_state(thread.machine.get(), &image);
    Ok(())
}

/// The bytes of the general registers.
pub(super) fn bytes(words: &[u64; WORDS]) -> &[u8] {
    words.as_bytes()
}

/// The registers that begin with these bytes; the others stay.
pub(super) fn merge(words: &mut [u64; WORDS], from: &[u8]) {
    for (word, bytes) in words.iter_mut().zip(from.chunks_exact(8)) {
        *word = u64::read_from_bytes(bytes).unwrap_or(*word);
    }
}
