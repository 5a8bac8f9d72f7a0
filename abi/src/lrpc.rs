//! Baton's extension: protected procedure calls (Bershad et al. 1990), `docs/lrpc.md`.
//!
//! A *clerk* is the thread of a server that hears of imports ([`crate::protocol::LRPC_BIND`]); *hosts* are
//! threads of the server that lend themselves to a clerk (LrpcReturn), and on which its procedures
//! run. A client's task has *bindings* with *A-stacks*, kernel memory that is mapped into both
//! spaces, each named by a *token* ([`step`] leads from one to the next of a binding).
//!
//! | call | in | out |
//! |---|---|---|
//! | LrpcCall | RSI token, R9 procedure, RAX RBX R10 R12 R13 R14 words | RSI [`Status`], the host's registers |
//! | LrpcReturn | RSI clerk (the first time), RAX RBX R9 R10 R12 R13 R14 R15 words | a visit: RSI A-stack, R9 procedure, R15 cookie, the caller's words; or RSI a [`Status`] |
//!
//! Both take RDI as Ipc does (bit 0: vector registers are dead) and give back U in it; RDX, R8, RBP, RCX, R11
//! are lost, and MR0 to MR7 in the UTCB.

/// Most A-stacks of a binding.
pub const MAX_A_STACKS: u64 = 32;
/// Most bytes of one; a multiple of [`A_STACK_UNIT`].
pub const MAX_A_STACK_BYTES: u64 = 4096;
/// A-stacks are so many bytes, or a multiple.
pub const A_STACK_UNIT: u64 = 64;
/// Most pages of the A-stacks of a binding.
pub const MAX_PAGES: u64 = 8;
/// Most procedures of a binding.
pub const MAX_PROCEDURES: u64 = 1 << 48;
/// Most bindings of a client's task, and most A-stacks of them all.
pub const MAX_BINDINGS: usize = 15;
/// See [`MAX_BINDINGS`].
pub const MAX_A_STACKS_OF_TASK: usize = 48;
/// An A-stack's address is at least this; a lower value in its place is a [`Status`].
pub const FIRST_ADDRESS: u64 = 0x1000;

/// The token of A-stack `index` of the binding whose first token is `first`.
#[must_use]
pub const fn step(first: u64, index: u64) -> u64 {
    first.wrapping_add(index.wrapping_mul(64))
}

/// How a call or a return ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Status {
    /// The procedure has returned.
    Done = 0,
    /// The token is none of the caller's task, or revoked.
    NoBinding = 1,
    /// A call is under way on this A-stack.
    InUse = 2,
    /// The binding has no procedure of this number.
    NoProcedure = 3,
    /// The clerk has no thread to lend at the moment.
    NoHost = 4,
    /// The caller was taken back out of the call.
    Aborted = 5,
    /// The thread that ran the procedure is gone, or its fault was not mended.
    ServerFailed = 6,
    /// The binding was revoked during the call.
    Revoked = 7,
    /// LrpcReturn: there is no such clerk in the caller's task, or the caller can't be lent.
    NoClerk = 8,
    /// LrpcReturn: the thread is lent no more.
    Withdrawn = 9,
}

impl Status {
    /// What RSI says; `None` for an A-stack's address.
    #[must_use]
    pub const fn decode(word: u64) -> Option<Self> {
        Some(match word {
            0 => Self::Done,
            1 => Self::NoBinding,
            2 => Self::InUse,
            3 => Self::NoProcedure,
            4 => Self::NoHost,
            5 => Self::Aborted,
            6 => Self::ServerFailed,
            7 => Self::Revoked,
            8 => Self::NoClerk,
            9 => Self::Withdrawn,
            _ => return None,
        })
    }
}

/// What LrpcControl is to do.
pub mod control {
    /// The client's side: revoke the binding of the token in the argument, which the server may have
    /// revoked already; the A-stacks are gone.
    pub const REVOKE: u64 = 1;
    /// The server's side: revoke the clerk's bindings with the cookie in the argument.
    pub const REVOKE_COOKIE: u64 = 2;
    /// The server's side: how many bindings of the clerk's have the cookie in the argument; none, and
    /// the place of their A-stacks is free again.
    pub const COUNT: u64 = 4;
    /// The server's side: visitors have at least the priority in the argument.
    pub const FLOOR: u64 = 3;
}
