//! The running thread's UTCB (X.2 3).
//!
//! All accesses are volatile: the kernel reads and writes the same words. `%gs:0`
//! holds the UTCB pointer U of the running thread at every user instruction.

use core::arch::asm;

use abi::utcb as index;
use abi::{Acceptor, ThreadId};

use crate::block;

/// U: the address of MR0, which is also the local thread id.
#[inline(always)]
#[must_use]
pub fn pointer() -> u64 {
    let u: u64;
    // SAFETY: the kernel keeps GS base at a word that holds U (X.2 3.5); reading it has no effect.
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) u, options(nostack, preserves_flags, pure, readonly))
    };
    u
}

/// Reads the word `index` words from U.
#[inline(always)]
fn word(index: isize) -> u64 {
    // SAFETY: U and all indices of `abi::utcb` stay inside the thread's 1 KiB
    // UTCB, which is mapped and owned by this thread alone.
    unsafe { (pointer() as *const u64).offset(index).read_volatile() }
}

/// Writes the word `index` words from U.
#[inline(always)]
fn set_word(index: isize, value: u64) {
    // SAFETY: as in `word`; user-writable words are never relied on by the kernel or by Rust code.
    unsafe { (pointer() as *mut u64).offset(index).write_volatile(value) }
}

/// Message register `n` < 64 as stored in memory. MR0..MR7 travel in processor
/// registers: only MR8 and up are meaningful here after an IPC.
#[inline(always)]
#[must_use]
pub fn mr(n: usize) -> u64 {
    assert!(n < index::MRS);
    word(n as isize)
}

/// Sets message register `n` < 64 in memory.
#[inline(always)]
pub fn set_mr(n: usize, value: u64) {
    assert!(n < index::MRS);
    set_word(n as isize, value);
}

/// Message registers from `n` on, set to what `bytes` are, the last one filled up with zeros.
#[inline(always)]
pub fn set_mrs(n: usize, bytes: &[u8]) {
    assert!(n + bytes.len().div_ceil(8) <= index::MRS);
    // SAFETY: as in `word`, since these are message registers; no reference leads there.
    unsafe { block::write((pointer() as *mut u64).add(n), bytes) }
}

/// Fills `room` with what message registers hold from `n` on.
#[inline(always)]
pub fn copy_mrs(n: usize, room: &mut [u8]) {
    assert!(n + room.len().div_ceil(8) <= index::MRS);
    // SAFETY: as in `set_mrs`.
    unsafe { block::read((pointer() as *const u64).add(n), room) }
}

/// Sets the runtime's own word: what the thread wants done in a critical section.
pub(crate) fn set_runtime_word(value: u64) {
    set_word(index::RUNTIME_WORD, value);
}

/// Sets buffer register `n` < 33. Private to the runtime: a buffer register is
/// the kernel's licence to write into this task's memory.
pub(crate) fn set_br(n: usize, value: u64) {
    assert!(n < index::BRS);
    set_word(index::BR0 - n as isize, value);
}

/// Buffer register `n` < 33.
pub(crate) fn br(n: usize) -> u64 {
    assert!(n < index::BRS);
    word(index::BR0 - n as isize)
}

/// Sets the acceptor, BR0.
pub(crate) fn set_acceptor(acceptor: Acceptor) {
    set_br(0, acceptor.0);
}

/// The global id of the running thread.
#[must_use]
pub fn my_global_id() -> ThreadId {
    ThreadId(word(index::MY_GLOBAL_ID))
}

/// The local id of the running thread.
#[must_use]
pub fn my_local_id() -> ThreadId {
    ThreadId(pointer())
}

/// The pager of the running thread.
#[must_use]
pub fn pager() -> ThreadId {
    ThreadId(word(index::PAGER))
}

/// Makes `pager` the running thread's pager.
pub fn set_pager(pager: ThreadId) {
    set_word(index::PAGER, pager.0);
}

/// The exception handler of the running thread.
#[must_use]
pub fn exception_handler() -> ThreadId {
    ThreadId(word(index::EXCEPTION_HANDLER))
}

/// Makes `handler` the running thread's exception handler.
pub fn set_exception_handler(handler: ThreadId) {
    set_word(index::EXCEPTION_HANDLER, handler.0);
}

/// The error code of the last failed call.
#[must_use]
pub fn error_code() -> u64 {
    word(index::ERROR_CODE)
}

/// The real sender of a propagated message.
#[must_use]
pub fn actual_sender() -> ThreadId {
    ThreadId(word(index::VIRTUAL_SENDER))
}

/// Names the thread on whose behalf the next propagated message is sent.
pub fn set_virtual_sender(sender: ThreadId) {
    set_word(index::VIRTUAL_SENDER, sender.0);
}

/// The processor that the running thread is on.
#[must_use]
pub fn processor() -> u64 {
    word(index::PROCESSOR_NO)
}

/// Timeouts for page faults during string transfers: `31..16` send, `15..0` receive.
pub fn set_xfer_timeouts(timeouts: abi::Timeouts) {
    set_word(index::XFER_TIMEOUTS, timeouts.0);
}

/// Thread-local word `slot` (0 or 1), never touched by the kernel.
#[must_use]
pub fn thread_word(slot: usize) -> u64 {
    word(if slot == 0 { index::THREAD_WORD0 } else { index::THREAD_WORD1 })
}

/// Sets thread-local word `slot` (0 or 1).
pub fn set_thread_word(slot: usize, value: u64) {
    set_word(if slot == 0 { index::THREAD_WORD0 } else { index::THREAD_WORD1 }, value);
}
