//! File systems: the tree in memory, paths, permissions, `/proc`, `/dev`.

use crate::call::Entry;
use crate::unix::Unix;

pub mod inode;

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[];

/// All mounted file systems.
#[derive(Default)]
pub struct Filesystems {}

/// A process's root, working directory and umask.
#[derive(Clone)]
pub struct Place {}

impl Place {
    /// Process 1's: the root.
    #[must_use]
    pub fn first(unix: &Unix) -> Self {
        let _ = unix;
        Self {}
    }
}
