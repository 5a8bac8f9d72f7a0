//! Inodes: what a file is, apart from its names.

/// An inode.
pub struct Inode {}
