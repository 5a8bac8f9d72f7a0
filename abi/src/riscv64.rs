//! What of the interface belongs to RISC-V, 64 bits: the words about a thread's registers and
//! its flags. X.2 has no binding for it; this is Baton's own, and may change until programs
//! run there.

/// Message registers of an exception message, in order from MR1.
pub const EXCEPTION_WORDS: usize = 34;
/// Index of each register in an exception message, 0 = MR1.
pub mod exception {
    /// Instruction pointer.
    pub const IP: usize = 0;
    /// The integer register x1; xN is at `X1 + N - 1`, up to x31.
    pub const X1: usize = 1;
    /// The cause as the processor has it (scause).
    pub const CAUSE: usize = 32;
    /// The address or instruction that belongs to it (stval).
    pub const VALUE: usize = 33;
}

/// The words of ThreadState behind those of an exception message: there are none, since all
/// registers of a thread are integer registers.
pub mod state {
    /// Number of words.
    pub const WORDS: usize = super::EXCEPTION_WORDS;
}

/// Status bits (sstatus) that a thread may set on itself or another: a thread has no flags.
pub const USER_FLAGS_MASK: u64 = 0;
/// Status of a new thread: user mode with 64-bit registers, interrupts on when it runs.
pub const USER_FLAGS: u64 = 2 << 32 | 1 << 5;
