//! Between processors: what one wants of another is a message, never a lock on the way of an
//! IPC (docs/decisions/0049-an-inbox-per-processor.md).
//!
//! Each processor has an [`inbox::Inbox`], to which the others push and of which it alone
//! takes.

pub mod inbox;
