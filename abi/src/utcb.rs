//! The UTCB (X.2 3): word offsets from the UTCB pointer U = location + 512.

/// Size and alignment of a UTCB in bytes.
pub const SIZE: u64 = 1024;
/// U − location, bytes.
pub const POINTER_OFFSET: u64 = 512;
/// Number of message registers.
pub const MRS: usize = 64;
/// Number of buffer registers.
pub const BRS: usize = 33;
/// Message registers MR0..MR7 that travel in processor registers.
pub const REGISTER_MRS: usize = 8;

/// Word index (from U) of BR0; BRn is at `BR0 - n`.
pub const BR0: isize = -16;
/// Word index of MyGlobalId.
pub const MY_GLOBAL_ID: isize = -15;
/// Word index of ProcessorNo.
pub const PROCESSOR_NO: isize = -14;
/// Word index of UserDefinedHandle.
pub const USER_DEFINED_HANDLE: isize = -13;
/// Word index of Pager.
pub const PAGER: isize = -12;
/// Word index of ExceptionHandler.
pub const EXCEPTION_HANDLER: isize = -11;
/// Word index of the flags word: byte 0 PreemptFlags, byte 1 CopFlags.
pub const FLAGS: isize = -10;
/// Word index of ErrorCode.
pub const ERROR_CODE: isize = -9;
/// Word index of XferTimeouts: `31..16` send, `15..0` receive.
pub const XFER_TIMEOUTS: isize = -8;
/// Word index of IntendedReceiver.
pub const INTENDED_RECEIVER: isize = -7;
/// Word index of VirtualSender (in) / ActualSender (out).
pub const VIRTUAL_SENDER: isize = -6;
/// Word index of ThreadWord1.
pub const THREAD_WORD1: isize = -5;
/// Word index of ThreadWord0.
pub const THREAD_WORD0: isize = -4;
/// Word index of the user's word-size mask.
pub const WORD_SIZE_MASK: isize = -1;
/// Word index of the word that GS base points at; holds U (Baton).
pub const SELF: isize = -63;

/// Preempt flag s: signal preemption faults to the exception handler.
pub const PREEMPT_SIGNAL: u64 = 1 << 5;
/// Preempt flag d: delay preemption.
pub const PREEMPT_DELAY: u64 = 1 << 6;
/// Preempt flag I: a preemption is pending.
pub const PREEMPT_PENDING: u64 = 1 << 7;

// Baton: local IPC in user mode (Wenske 2002, 4.2 and 5.3; decision 0044), words -62..-59 and -57.
/// Word index of whom the thread waits for, as user level may see it: [`LIPC_RUNS`], for anybody
/// ([`lipc_open`]) or anybody of its space ([`lipc_open_local`]), [`LIPC_SECTION`] or the local id of
/// one thread.
pub const LIPC_WAIT: isize = -62;
/// Word index of the stack pointer while it waits; the return address is on top of the stack.
pub const LIPC_SP: isize = -61;
/// Word index of what the thread may do: [`LIPC_UNKNOWN`], open ([`lipc_open`]), [`LIPC_CLOSED`],
/// [`LIPC_REFUSED`], [`LIPC_KEEPS`]. Its lowest 16 bits are the first number of words that is too many for
/// a message in user mode.
pub const LIPC_STATE: isize = -60;
/// Word index of the space's current word, used in one UTCB of the space: U of whoever runs on the first
/// processor. On others [`SELF`] of the thread that has gone there is that.
pub const LIPC_CURRENT: isize = -59;

/// Word index of what [`LIPC_WAIT`] was when the thread waited last so that user mode saw it; only kernels
/// with the restrictive check (2002, 4.6.1) keep and look at it.
pub const LIPC_WAITED: isize = -57;

/// Word index of the word that a language's runtime has for itself in each thread; neither the
/// kernel nor a program's own code uses it. The Rust runtime notes there what the thread wants
/// done in a critical section.
pub const RUNTIME_WORD: isize = -58;

/// [`LIPC_WAIT`] of a thread that does not wait, or in a way that only the kernel knows.
pub const LIPC_RUNS: u64 = 0;
/// [`LIPC_WAIT`] of a critical section's thread: waits for anylocalthread, with its return address on
/// top of the stack and the section's value above that.
pub const LIPC_SECTION: u64 = !127;
/// Tag of an entry into a critical section that has not been made: the kernel makes no such one.
pub const SECTION_BUSY: u64 = !0;
// The states are none of the words of a wait: a stub compares its own thread's with its partner's wait, and finds with one
// question that the one is open and the other waits for anybody. They would be local ids below this address.
/// No thread whose local id is less takes part.
pub const LIPC_LEAST_ID: u64 = 16 << 16;
const _: () = assert!(LIPC_KEEPS < LIPC_LEAST_ID);
/// [`LIPC_STATE`]: the kernel has not been asked yet whether the thread may take part.
pub const LIPC_UNKNOWN: u64 = 4 << 16;
/// [`LIPC_STATE`]: the kernel wants to see the thread's next IPC.
pub const LIPC_CLOSED: u64 = 5 << 16;
/// [`LIPC_STATE`]: the thread may not take part; nobody need ask again.
pub const LIPC_REFUSED: u64 = 6 << 16;
/// [`LIPC_STATE`]: the thread's last IPC kept its vector registers; nobody but itself need ask.
pub const LIPC_KEEPS: u64 = 8 << 16;

/// So many words and more are too many for a message in user mode.
const LIPC_TOO_MANY: u64 = 8;
/// Where the number of a processor is in [`lipc_open`].
const LIPC_PROCESSOR: u32 = 16;

/// [`LIPC_STATE`]: the thread may send in user mode, on processor `number`; and [`LIPC_WAIT`] of one that waits
/// there for anybody. Another word on each processor, so that threads of different ones never meet there.
#[must_use]
pub const fn lipc_open(number: u32) -> u64 {
    lipc_open_local(number) | LIPC_TOO_MANY
}

/// [`LIPC_WAIT`] of a thread that waits on processor `number` for anybody of its space: what
/// [`lipc_open`] and anylocalthread have in common.
#[must_use]
pub const fn lipc_open_local(number: u32) -> u64 {
    !((number as u64) << LIPC_PROCESSOR | 0xFFFF)
}
