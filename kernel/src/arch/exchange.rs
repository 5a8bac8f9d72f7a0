//! A message as a register frame has it.

use abi::{MsgTag, ThreadId};

/// A message of words in registers with which a thread has come back that waits for ever behind it.
pub struct Exchange {
    /// To whom it goes.
    pub to: ThreadId,
    /// From whom the next one is to come.
    pub from: ThreadId,
    /// The limits of time, of which the second is none.
    pub timeouts: u64,
    /// The tag.
    pub tag: MsgTag,
    /// The thread wants to have its vector registers kept.
    pub keeps_vector: bool,
}
