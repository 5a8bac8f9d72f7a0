//! Labels of the kernel's own messages and of σ0's protocol (X.2 6), as signed
//! values of tag bits 63..20.

/// Interrupt; n = 0, no words.
pub const INTERRUPT: i64 = -1;
/// Page fault; n = rwx of the access, MR1 address, MR2 IP.
pub const PAGE_FAULT: i64 = -2;
/// Preemption; MR1 clock, MR2 0.
pub const PREEMPTION: i64 = -3;
/// Architecture exception; n = 0, 20 words.
pub const EXCEPTION: i64 = -5;
/// σ0 request; MR1 flexpage, MR2 attributes.
pub const SIGMA0: i64 = -6;
/// I/O port fault; n = 6, MR1 I/O flexpage, MR2 IP.
pub const IO_FAULT: i64 = -8;
/// Baton: system call of a foreign thread; MR1 RAX, MR2.. RDI R10 RSI RDX R8 R9.
pub const SYSTEM_CALL: i64 = -16;
/// Extended σ0 request (verbosity, pool dump).
pub const SIGMA0_EXTENDED: i64 = -1001;

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
