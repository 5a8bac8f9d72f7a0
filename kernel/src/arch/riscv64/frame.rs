//! The register frame: a thread's complete user state on its kernel stack, as traps leave it.
//! It lies directly below the tcb.

use core::cell::Cell;
use core::mem::size_of;

use abi::layout::USER_END;
use abi::riscv64::{EXCEPTION_WORDS, USER_FLAGS, exception};

use super::trap::Cause;

/// Status bit SPP: the trap came from the kernel.
const FROM_KERNEL: u64 = 1 << 8;
/// The stack pointer is x2 (psABI).
const SP: usize = 2;

/// Integer registers and the four of the trap.
#[repr(C)]
pub struct TrapFrame {
    /// x1 to x31, but for x2, whose place is empty.
    x: [Cell<u64>; 31],
    /// Why the frame was made (scause).
    pub vector: Cell<u64>,
    /// The address or instruction that belongs to it (stval).
    pub error: Cell<u64>,
    /// Instruction pointer (sepc).
    pub ip: Cell<u64>,
    /// Status (sstatus).
    pub flags: Cell<u64>,
    /// x2.
    pub sp: Cell<u64>,
}

impl TrapFrame {
    /// The integer register x`number`, 1 to 31.
    #[inline(always)]
    pub(super) fn x(&self, number: usize) -> &Cell<u64> {
        if number == SP { &self.sp } else { &self.x[number.clamp(1, 31) - 1] }
    }

    /// The registers of a thread that has not run yet: zero, but for what user mode needs.
    pub fn reset(&self) {
        (1..=31).for_each(|number| self.x(number).set(0));
        self.vector.set(Cause::SystemCall.code());
        self.error.set(0);
        self.ip.set(0);
        self.flags.set(USER_FLAGS);
    }

    /// Whether a system call left it, not an exception or an interrupt; for the checker.
    #[must_use]
    pub fn is_of_a_call(&self) -> bool {
        Cause::decode(self.vector.get()) == Cause::SystemCall
    }

    /// Makes the frame lead into the kernel, as none of a thread's may: for the checker's tests.
    pub fn lead_astray(&self) {
        self.flags.set(self.flags.get() | FROM_KERNEL);
    }

    /// Whether it leads back to user mode; for the checker.
    #[must_use]
    pub fn is_users(&self) -> bool {
        self.flags.get() & FROM_KERNEL == 0
    }
}

/// Size of a frame in bytes; a multiple of 16, as the psABI wants of stacks.
pub const FRAME_SIZE: usize = size_of::<TrapFrame>();
const _: () = assert!(FRAME_SIZE == 288 && FRAME_SIZE.is_multiple_of(16));

/// A frame on a kernel stack.
pub type Frame = &'static TrapFrame;

/// Calls `each` with the index, from 1 on, and the value of every word of the exception
/// message about `frame`.
#[inline(always)]
pub fn exception_words(frame: Frame, mut each: impl FnMut(usize, u64)) {
    each(1 + exception::IP, frame.ip.get());
    (1..=31).for_each(|number| each(exception::X1 + number, frame.x(number).get()));
    each(1 + exception::CAUSE, frame.vector.get());
    each(1 + exception::VALUE, frame.error.get());
}

const _: () = assert!(exception::VALUE + 1 == EXCEPTION_WORDS);

/// Takes a handler's reply of `count` words into `frame`: any register, but only an
/// instruction pointer that user code can have. What the reply does not have stays as it is.
#[inline(always)]
pub fn set_exception_words(frame: Frame, count: usize, word: impl Fn(usize) -> u64) {
    for number in (1..=31).filter(|number| exception::X1 + number <= count) {
        frame.x(number).set(word(exception::X1 + number));
    }
    if count > exception::IP {
        frame.ip.set(word(1 + exception::IP).min(USER_END));
    }
}
