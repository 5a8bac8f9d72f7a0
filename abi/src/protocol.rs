//! Labels of the kernel's own messages and of σ0's protocol (X.2 6), as signed
//! values of tag bits 63..20.

/// Interrupt; n = 0, no words.
pub const INTERRUPT: i64 = -1;
/// Page fault; n = rwx of the access, MR1 address, MR2 IP.
pub const PAGE_FAULT: i64 = -2;
/// Preemption; MR1 clock, MR2 0.
pub const PREEMPTION: i64 = -3;
/// Architecture exception; n = 0, [`EXCEPTION_WORDS`] words.
pub const EXCEPTION: i64 = -5;
/// σ0 request; MR1 flexpage, MR2 attributes.
pub const SIGMA0: i64 = -6;
/// I/O port fault; n = 6, MR1 I/O flexpage, MR2 IP.
pub const IO_FAULT: i64 = -8;
/// Baton: system call of a foreign thread; MR1 its number, MR2 to MR7 its arguments (on x86-64
/// RAX, then RDI R10 RSI RDX R8 R9; on RISC-V a7, then a0 to a5).
pub const SYSTEM_CALL: i64 = -16;
/// Baton: a thread asks for a binding to the receiver's procedures ([`crate::lrpc`]); MR1 how many
/// A-stacks, MR2 bytes of each. The answer's words: where they are to be in the receiver's space,
/// how many procedures there are, the cookie; fewer words refuse.
pub const LRPC_BIND: i64 = -17;
/// Extended σ0 request (verbosity, pool dump).
pub const SIGMA0_EXTENDED: i64 = -1001;

/// The words of an exception's message are the processor's.
pub use crate::processor::{EXCEPTION_WORDS, exception};
