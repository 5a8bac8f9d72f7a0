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

/// A descriptor of a file with a position was closed: its process's POSIX locks on the file end.
pub fn descriptor_closed(cx: &crate::Cx, open: &crate::file::Open) {
    let _ = (cx, open);
}

/// `fcntl`'s commands on locks; `argument` is the address of a `struct flock`.
///
/// # Errors
/// As `fcntl(2)`.
pub fn fcntl_lock(
    cx: &crate::Cx,
    open: &crate::file::Open,
    command: u32,
    argument: u64,
) -> crate::Answer {
    let _ = (cx, open, command, argument);
    Err(crate::Errno::EINVAL.into())
}

/// `fcntl`'s commands that only file systems know (seals, leases).
///
/// # Errors
/// `EINVAL` for all others.
pub fn fcntl(
    cx: &crate::Cx,
    open: &crate::file::Open,
    command: u32,
    argument: u64,
) -> crate::Answer {
    let _ = (cx, open, command, argument);
    Err(crate::Errno::EINVAL.into())
}

impl Place {
    /// Process 1's: the root.
    #[must_use]
    pub fn first(unix: &Unix) -> Self {
        let _ = unix;
        Self {}
    }
}
