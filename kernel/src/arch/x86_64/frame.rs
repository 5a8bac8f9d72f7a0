//! The register frame: a thread's complete user state on its kernel stack, as
//! interrupts, exceptions and the calls that are not IPC leave it. It lies
//! directly below the tcb, since the processor starts pushing there.

use core::cell::Cell;
use core::mem::size_of;

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

/// Size of a frame in bytes; a multiple of 16, so the stack below stays aligned.
pub const FRAME_SIZE: usize = size_of::<TrapFrame>();
const _: () = assert!(FRAME_SIZE == 176 && FRAME_SIZE % 16 == 0);

/// A frame on a kernel stack.
pub type Frame = &'static TrapFrame;
