//! Locks on files.

/// The locks on one inode.
#[derive(Default)]
pub struct Locks {}
