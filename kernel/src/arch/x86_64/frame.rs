//! The register frame: a thread's complete user state on its kernel stack, as
//! interrupts, exceptions and the calls that are not IPC leave it. It lies
//! directly below the tcb, since the processor starts pushing there.

use core::cell::Cell;
use core::mem::size_of;

use abi::layout::USER_END;
use abi::protocol::EXCEPTION_WORDS;
use abi::syscall::{FOREIGN_FLAGS_MASK, USER_FLAGS, USER_FLAGS_MASK};

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

/// The words of the exception message about `frame`, from MR1 on (X.2 6.4).
#[must_use]
#[inline(always)]
pub fn exception_words(frame: Frame) -> [u64; EXCEPTION_WORDS] {
    [
        frame.ip.get(),
        frame.rbx.get(),
        frame.r10.get(),
        frame.r12.get(),
        frame.r13.get(),
        frame.r14.get(),
        frame.r15.get(),
        frame.rax.get(),
        frame.rcx.get(),
        frame.rdx.get(),
        frame.rsi.get(),
        frame.rdi.get(),
        frame.rbp.get(),
        frame.r8.get(),
        frame.r9.get(),
        frame.r11.get(),
        frame.sp.get(),
        frame.flags.get(),
        frame.vector.get(),
        frame.error.get(),
    ]
}

/// Takes the words of a handler's reply into `frame`: any register, but only an
/// instruction pointer that user code can have and flags that users may set.
#[inline(always)]
pub fn set_exception_words(frame: Frame, words: &[u64; EXCEPTION_WORDS]) {
    #[rustfmt::skip]
    let [
        ip, rbx, r10, r12, r13, r14, r15, rax, rcx, rdx,
        rsi, rdi, rbp, r8, r9, r11, sp, flags, _vector, _error,
    ] = *words;
    // Wherever it was, it may stay.
    if ip != frame.ip.get() {
        frame.ip.set(ip.min(USER_END));
    }
    frame.flags.set(frame.flags.get() & !USER_FLAGS_MASK | flags & USER_FLAGS_MASK);
    frame.rbx.set(rbx);
    frame.r10.set(r10);
    frame.r12.set(r12);
    frame.r13.set(r13);
    frame.r14.set(r14);
    frame.r15.set(r15);
    frame.rax.set(rax);
    frame.rcx.set(rcx);
    frame.rdx.set(rdx);
    frame.rsi.set(rsi);
    frame.rdi.set(rdi);
    frame.rbp.set(rbp);
    frame.r8.set(r8);
    frame.r9.set(r9);
    frame.r11.set(r11);
    frame.sp.set(sp);
}
