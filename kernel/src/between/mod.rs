//! Between processors: what one wants of another is a message, never a lock on the way of an
//! IPC (docs/decisions/0049-an-inbox-per-processor.md).
//!
//! Each processor has an [`inbox::Inbox`], to which the others push and of which it alone
//! takes; and a [`berth::Berth`], in which it has the thread whose user code it runs.

pub mod berth;
pub mod inbox;
pub mod processors;

/// Threads that can be on another processor at the same time, those apart who hand over in user mode.
pub const SEATS: usize = 4;
