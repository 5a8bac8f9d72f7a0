//! File systems: the tree in memory, paths, permissions, `/proc`, `/dev`.

use crate::call::Entry;

pub mod inode;

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[];

/// All mounted file systems.
#[derive(Default)]
pub struct Filesystems {}

/// A process's root, working directory and umask.
pub struct Place {}
