//! Ipc register by register, and the UTCB word by word: all the `unsafe` code of
//! these tests that is not in the shared memory of `puppet`.

use core::arch::global_asm;
use core::mem::offset_of;

use abi::utcb;

use crate::puppet;

global_asm!(
    include_str!("raw.S"),
    GENERAL = const offset_of!(Registers, rax),
    FLAGS = const offset_of!(Registers, flags),
    SP = const offset_of!(Registers, sp),
    BEFORE = const offset_of!(Registers, before),
    AFTER = const offset_of!(Registers, after),
    LINK = const offset_of!(Registers, link),
    VECTOR_USED = const offset_of!(Registers, vector_used),
    VECTOR = const offset_of!(Registers, vector),
    SEEN = const offset_of!(Registers, seen),
    PUPPET = sym puppet::run,
);

unsafe extern "C" {
    fn baton_test_ipc(registers: *mut Registers);
    fn baton_test_start();
    static __boot_stack_bottom: u64;
}

/// The processor's registers around one Ipc.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Registers {
    pub rax: u64,
    pub rbx: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rbp: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    /// RFLAGS.
    pub flags: u64,
    /// Out: by how much RSP has changed.
    pub sp: u64,
    /// Address to call; 0: the trap itself.
    pub link: u64,
    /// Out: time stamp counter before the call and after it.
    pub before: u64,
    pub after: u64,
    /// Not 0: the vector registers are loaded before.
    pub vector_used: u64,
    /// XMM0, XMM7, XMM15, MXCSR, x87 control word.
    pub vector: [u64; 8],
    /// Out: the same afterwards.
    pub seen: [u64; 8],
}

const _: () = assert!(offset_of!(Registers, r15) == offset_of!(Registers, rax) + 14 * 8);

/// Carries out one Ipc.
///
/// # Safety
/// The kernel may write what the buffer registers and the receive window allow.
pub unsafe fn ipc(registers: &mut Registers) {
    // SAFETY: the assembly saves what Rust expects to be kept; memory effects are the caller's promise.
    unsafe { baton_test_ipc(registers) }
}

/// Where a puppet starts.
pub fn start_address() -> u64 {
    baton_test_start as *const () as u64
}

/// Sets the word `index` words from U of the running thread.
///
/// # Safety
/// Buffer registers are the kernel's licence to write into memory.
pub unsafe fn set_utcb_word(index: isize, value: u64) {
    // SAFETY: inside the running thread's UTCB.
    unsafe { (runtime::utcb::pointer() as *mut u64).offset(index).write_volatile(value) }
}

/// The word `index` words from U of the running thread.
pub fn utcb_word(index: isize) -> u64 {
    debug_assert!((-64..64).contains(&index));
    // SAFETY: inside the running thread's UTCB.
    unsafe { (runtime::utcb::pointer() as *const u64).offset(index).read_volatile() }
}

/// Closes the acceptor of the running thread.
pub fn close_acceptor() {
    // SAFETY: forbids, and allows nothing.
    unsafe { set_utcb_word(utcb::BR0, 0) }
}

/// Byte `at` of the test pattern `seed`.
fn pattern_byte(seed: u64, at: u64) -> u8 {
    ((at ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u8
}

/// Writes bytes `first..first + len` of the pattern `seed` to `address` in the test memory.
pub fn fill(address: u64, len: u64, seed: u64, first: u64) {
    for at in 0..len {
        // SAFETY: callers pass ranges of the test memory, which no Rust object is in.
        unsafe { ((address + at) as *mut u8).write_volatile(pattern_byte(seed, first + at)) };
    }
}

/// The first byte at `address` that is not as `fill` leaves it.
pub fn differs(address: u64, len: u64, seed: u64, first: u64) -> Option<u64> {
    // SAFETY: as in `fill`.
    (0..len).find(|at| unsafe { ((address + at) as *const u8).read_volatile() } != pattern_byte(seed, first + at))
}

/// Whether the first thread's stack never grew to its end: below lies other data.
pub fn stack_sufficed() -> bool {
    // SAFETY: the lowest words of the stack, zero at the start of the program.
    (0..64).all(|at| unsafe { (&raw const __boot_stack_bottom).add(at).read_volatile() } == 0)
}
