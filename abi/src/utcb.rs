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

// Baton: room for the user-level local IPC of Wenske 2002 (section 5.3), words
// -62..-50 below the self word: the twin of the kernel's status and stack pointer.
/// Word index of the user-level status twin (2002, 4.2).
pub const LIPC_STATUS: isize = -62;
/// Word index of the user-level stack pointer twin (2002, 4.2).
pub const LIPC_SP: isize = -61;
/// Word index of the user-level instruction pointer twin (2002, 5.8.1).
pub const LIPC_IP: isize = -60;
