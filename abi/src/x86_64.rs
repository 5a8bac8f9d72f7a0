//! What of the interface belongs to x86-64: the words about a thread's registers (X.2 6.4,
//! AMD64 binding) and its flags. The registers of the calls are in [`crate::syscall`].

/// Message registers of an exception message, in order from MR1 (X.2 6.4).
pub const EXCEPTION_WORDS: usize = 20;
/// Index of each register in an exception message, 0 = MR1.
pub mod exception {
    /// Instruction pointer.
    pub const RIP: usize = 0;
    /// RBX.
    pub const RBX: usize = 1;
    /// R10.
    pub const R10: usize = 2;
    /// R12.
    pub const R12: usize = 3;
    /// R13.
    pub const R13: usize = 4;
    /// R14.
    pub const R14: usize = 5;
    /// R15.
    pub const R15: usize = 6;
    /// RAX.
    pub const RAX: usize = 7;
    /// RCX.
    pub const RCX: usize = 8;
    /// RDX.
    pub const RDX: usize = 9;
    /// RSI.
    pub const RSI: usize = 10;
    /// RDI.
    pub const RDI: usize = 11;
    /// RBP.
    pub const RBP: usize = 12;
    /// R8.
    pub const R8: usize = 13;
    /// R9.
    pub const R9: usize = 14;
    /// R11.
    pub const R11: usize = 15;
    /// RSP.
    pub const RSP: usize = 16;
    /// RFLAGS.
    pub const RFLAGS: usize = 17;
    /// Exception vector.
    pub const VECTOR: usize = 18;
    /// Hardware error code, 0 where there is none.
    pub const ERROR: usize = 19;
}

/// The words of ThreadState behind those of an exception message.
pub mod state {
    /// Index of FS base among the words.
    pub const FS_BASE: usize = super::EXCEPTION_WORDS;
    /// Index of GS base.
    pub const GS_BASE: usize = FS_BASE + 1;
    /// Number of words.
    pub const WORDS: usize = GS_BASE + 1;
}

/// RFLAGS bits that a program of a foreign thread may have: those of [`USER_FLAGS_MASK`],
/// TF, DF, AC and ID.
pub const FOREIGN_FLAGS_MASK: u64 = USER_FLAGS_MASK | 1 << 8 | 1 << 10 | 1 << 18 | 1 << 21;
/// RFLAGS bits that a thread may set on itself or another (X.2 5.1): CF PF AF ZF SF OF.
pub const USER_FLAGS_MASK: u64 = 0x8D5;
/// RFLAGS of a new thread: interrupts on, IOPL 0.
pub const USER_FLAGS: u64 = 0x202;
