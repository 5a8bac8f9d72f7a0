//! The trap inside the system-call links: private between the kernel's user
//! page and the kernel (X.2 5.1: "the trap inside the stub is private").
//!
//! Ipc uses the X.2 registers unchanged. Every other call puts `-number` into
//! R8, so that the fast path's test of the timeouts (never, never) tells it
//! apart at no cost. For every call but Ipc and Unmap, an argument that X.2 passes
//! in R8 moves to R12 and one in RDI moves to R14 (the entry needs RDI at once);
//! MemoryControl's RCX and R11 move to RBP and R13 after MR4.. went to the UTCB.
//! Results come back in X.2's registers. For tests, an Ipc whose R8 has bit 32 set
//! ([`COMPLETE_PATH`]) takes the complete path.

/// Set in R8 beside the timeouts: use the complete path of Ipc.
pub const COMPLETE_PATH: u64 = 1 << 32;

/// Call numbers; R8 holds the negated number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Call {
    /// ExchangeRegisters (IP in R12).
    ExchangeRegisters = 2,
    /// ThreadControl (SpaceSpecifier in R12).
    ThreadControl = 3,
    /// ThreadSwitch.
    ThreadSwitch = 4,
    /// Schedule (processor control in R12).
    Schedule = 5,
    /// Unmap; message registers as in Ipc.
    Unmap = 6,
    /// SpaceControl (UTCB area in R12).
    SpaceControl = 7,
    /// ProcessorControl (voltage in R12).
    ProcessorControl = 8,
    /// MemoryControl (MR0.. in the UTCB; attributes RBP, RSI, R12, R13).
    MemoryControl = 9,
    /// Baton: QuotaControl. R14 (stub: RDI) SpaceSpecifier, RSI pages to move (signed: positive
    /// from the caller's task to the target). RAX 1/0, RDX limit, RSI used, both in pages.
    QuotaControl = 16,
    /// Baton: Inspect (see [`crate::inspect`]). R14 (stub: RDI) what, RSI index, RDX argument.
    /// RAX 1/0, then RDX, RSI, R9, R10, R12..R15 the record's words.
    Inspect = 17,
    /// Baton: ThreadState. R14 (stub: RDI) thread, RSI control ([`state`]), RDX address of
    /// the vector state in the caller's memory; words in the UTCB from MR0 on. RAX 1/0.
    ThreadState = 18,
    /// Baton: TaskControl ([`crate::task`]). R14 (stub: RDI) SpaceSpecifier, RSI numbers, RDX
    /// ceilings (all ones: unchanged). RAX 1/0, RSI and RDX what is in force.
    TaskControl = 19,
    /// Baton: ThreadControl that fails with error 2 if somebody has the number of `dest`.
    CreateThread = 20,
    /// Baton: ArmLocal, of the local-IPC stubs alone. RSI the local id of the partner; changes no
    /// register.
    ArmLocal = 21,
    /// Baton: LrpcBind ([`crate::lrpc`]). R14 (stub: RDI) the clerk, RSI where the A-stacks are to
    /// be, RDX how many, R12 bytes of each. RAX 1/0, RSI the token of the first.
    LrpcBind = 22,
    /// Baton: LrpcControl ([`crate::lrpc`]). R14 (stub: RDI) the clerk, RSI what, RDX argument. RAX 1/0,
    /// RSI how many bindings it concerned.
    LrpcControl = 23,
    /// Baton: LrpcReturn ([`crate::lrpc`]). RSI the clerk; registers as in Ipc.
    LrpcReturn = 24,
    /// Baton: LrpcCall ([`crate::lrpc`]). RSI token, R9 procedure; registers as in Ipc. All
    /// higher numbers are this call, too: the fast path has one comparison for it and LrpcReturn.
    LrpcCall = 25,
}

impl Call {
    /// The call that `word`, its negated number, names, if any.
    #[must_use]
    pub const fn decode(word: u64) -> Option<Self> {
        Some(match word.wrapping_neg() {
            2 => Self::ExchangeRegisters,
            3 => Self::ThreadControl,
            4 => Self::ThreadSwitch,
            5 => Self::Schedule,
            6 => Self::Unmap,
            7 => Self::SpaceControl,
            8 => Self::ProcessorControl,
            9 => Self::MemoryControl,
            16 => Self::QuotaControl,
            17 => Self::Inspect,
            18 => Self::ThreadState,
            19 => Self::TaskControl,
            20 => Self::CreateThread,
            21 => Self::ArmLocal,
            22 => Self::LrpcBind,
            23 => Self::LrpcControl,
            24 => Self::LrpcReturn,
            25..=0x8000_0000_0000_0000 => Self::LrpcCall,
            _ => return None,
        })
    }
}

/// ExchangeRegisters control bits (X.2 5.4).
pub mod exregs {
    /// Halt (with [`HALT_VALID`]); out: was halted.
    pub const HALT: u64 = 1 << 0;
    /// Abort receive; out: was receiving.
    pub const ABORT_RECEIVE: u64 = 1 << 1;
    /// Abort send; out: was sending.
    pub const ABORT_SEND: u64 = 1 << 2;
    /// Write SP.
    pub const SP: u64 = 1 << 3;
    /// Write IP.
    pub const IP: u64 = 1 << 4;
    /// Write FLAGS.
    pub const FLAGS: u64 = 1 << 5;
    /// Write UserDefinedHandle.
    pub const HANDLE: u64 = 1 << 6;
    /// Write the pager.
    pub const PAGER: u64 = 1 << 7;
    /// The halt bit is valid.
    pub const HALT_VALID: u64 = 1 << 8;
    /// Deliver the old values.
    pub const DELIVER: u64 = 1 << 9;
}

/// ThreadState control bits, and the words beside those of an exception message.
pub mod state {
    /// Deliver the registers: MR0.. the words of an exception message from its MR1 on,
    /// then those that a frame does not have (x86-64: FS and GS base).
    pub const READ: u64 = 1 << 0;
    /// Set the registers from the same words.
    pub const WRITE: u64 = 1 << 1;
    /// Stop the thread: afterwards it waits for an answer of its handler.
    pub const STOP: u64 = 1 << 2;
    /// Make the thread, which has not started, foreign; the caller becomes its handler.
    pub const FOREIGN: u64 = 1 << 3;
    /// Deliver the vector state (XSAVE's standard format, or FXSAVE's).
    pub const READ_VECTOR: u64 = 1 << 4;
    /// Set the vector state.
    pub const WRITE_VECTOR: u64 = 1 << 5;
    /// The caller, named as the thread, uses no vector registers from now on, nor do the
    /// threads that its task creates later: IPC need not care for them. They are initial.
    pub const NO_VECTOR: u64 = 1 << 6;
    /// The caller and later threads of its task use vector registers, as all do that never
    /// said anything. They are initial.
    pub const VECTOR: u64 = 1 << 7;
    /// Either of the two.
    pub const DECLARE: u64 = NO_VECTOR | VECTOR;
    /// The words beside those of an exception message are the processor's.
    pub use crate::processor::state::*;
}

/// The flags that threads start with and may set are the processor's.
pub use crate::processor::{USER_FLAGS, USER_FLAGS_MASK};
