//! The register frame: a thread's complete user state on its kernel stack, as
//! interrupts, exceptions and the calls that are not IPC leave it. It lies
//! directly below the tcb, since the processor starts pushing there.

use core::cell::Cell;
use core::mem::size_of;

use abi::layout::USER_END;
use abi::x86_64::{EXCEPTION_WORDS, FOREIGN_FLAGS_MASK, USER_FLAGS, USER_FLAGS_MASK};

/// User data segment with its privilege level (X.2 5.1).
pub const USER_SS: u16 = 0x23;
/// User code segment with its privilege level (X.2 5.1).
pub const USER_CS: u16 = 0x2B;
/// Vector number of a frame built by the system-call entry (no hardware vector).
pub const VECTOR_CALL: u64 = 0x100;

/// Registers in the order in which the entry code pushes them, last pushed first.
#[repr(C)]
pub struct TrapFrame {
    pub r15: Cell<u64>,
    pub r14: Cell<u64>,
    pub r13: Cell<u64>,
    pub r12: Cell<u64>,
    pub rbp: Cell<u64>,
    pub rbx: Cell<u64>,
    pub r11: Cell<u64>,
    pub r10: Cell<u64>,
    pub r9: Cell<u64>,
    pub r8: Cell<u64>,
    pub rax: Cell<u64>,
    pub rcx: Cell<u64>,
    pub rdx: Cell<u64>,
    pub rsi: Cell<u64>,
    pub rdi: Cell<u64>,
    /// Exception vector, 32 + line of an interrupt, or [`VECTOR_CALL`].
    pub vector: Cell<u64>,
    /// Hardware error code or 0.
    pub error: Cell<u64>,
    pub ip: Cell<u64>,
    pub cs: Cell<u64>,
    pub flags: Cell<u64>,
    pub sp: Cell<u64>,
    pub ss: Cell<u64>,
}

impl TrapFrame {
    /// The registers of a thread that has not run yet: zero, but for what user mode needs.
    pub fn reset(&self) {
        for register in [
            &self.r15,
            &self.r14,
            &self.r13,
            &self.r12,
            &self.rbp,
            &self.rbx,
            &self.r11,
            &self.r10,
            &self.r9,
            &self.r8,
            &self.rax,
            &self.rcx,
            &self.rdx,
            &self.rsi,
            &self.rdi,
            &self.error,
            &self.ip,
            &self.sp,
        ] {
            register.set(0);
        }
        self.vector.set(VECTOR_CALL);
        self.cs.set(u64::from(USER_CS));
        self.ss.set(u64::from(USER_SS));
        self.flags.set(USER_FLAGS);
    }

    /// Sets all flags that a foreign program may have.
    pub fn set_foreign_flags(&self, flags: u64) {
        self.flags.set(flags & FOREIGN_FLAGS_MASK | USER_FLAGS);
    }

    /// Whether a system call left it, not an exception or an interrupt; for the checker.
    #[must_use]
    pub fn is_of_a_call(&self) -> bool {
        self.vector.get() == VECTOR_CALL
    }

    /// Whether it leads back to user mode; for the checker.
    #[must_use]
    pub fn is_users(&self) -> bool {
        self.cs.get() == u64::from(USER_CS) && self.ss.get() == u64::from(USER_SS)
    }
}

/// Size of a frame in bytes; a multiple of 16, so the stack below stays aligned.
pub const FRAME_SIZE: usize = size_of::<TrapFrame>();
const _: () = assert!(FRAME_SIZE == 176 && FRAME_SIZE.is_multiple_of(16));

/// A frame on a kernel stack.
pub type Frame = &'static TrapFrame;

/// Calls `each` with the index and the place of every register in an exception's message
/// (X.2 6.4) that an answer may simply change: all but instruction pointer and flags.
#[inline(always)]
fn registers(frame: Frame, mut each: impl FnMut(usize, &Cell<u64>)) {
    each(2, &frame.rbx);
    each(3, &frame.r10);
    each(4, &frame.r12);
    each(5, &frame.r13);
    each(6, &frame.r14);
    each(7, &frame.r15);
    each(8, &frame.rax);
    each(9, &frame.rcx);
    each(10, &frame.rdx);
    each(11, &frame.rsi);
    each(12, &frame.rdi);
    each(13, &frame.rbp);
    each(14, &frame.r8);
    each(15, &frame.r9);
    each(16, &frame.r11);
    each(17, &frame.sp);
}

/// Index of the flags in an exception's message; behind them are vector and error code.
const FLAGS: usize = 18;
const _: () = assert!(FLAGS + 2 == EXCEPTION_WORDS);

/// Calls `each` with the index, from 1 on, and the value of every word of the exception
/// message about `frame`.
#[inline(always)]
pub fn exception_words(frame: Frame, mut each: impl FnMut(usize, u64)) {
    each(1, frame.ip.get());
    registers(frame, |index, register| each(index, register.get()));
    each(FLAGS, frame.flags.get());
    each(FLAGS + 1, frame.vector.get());
    each(FLAGS + 2, frame.error.get());
}

/// Takes a handler's reply of `count` words into `frame`: any register, but only an
/// instruction pointer that user code can have and flags that users may set. What the reply
/// does not have stays as it is.
#[inline(always)]
pub fn set_exception_words(frame: Frame, count: usize, word: impl Fn(usize) -> u64) {
    if count < FLAGS {
        registers(frame, |index, register| {
            if index <= count {
                register.set(word(index));
            }
        });
    } else {
        registers(frame, |index, register| register.set(word(index)));
        let flags = frame.flags.get() & !USER_FLAGS_MASK | word(FLAGS) & USER_FLAGS_MASK;
        frame.flags.set(flags);
    }
    if count > 0 {
        let ip = word(1);
        // Wherever it was, it may stay.
        frame.ip.set(if ip == frame.ip.get() { ip } else { ip.min(USER_END) });
    }
}
