//! The list of calls on descriptors.

use linux_raw_sys::general as nr;

use super::{control, transfer, vectors};
use crate::call::{Entry, full, partial};

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[
    full(nr::__NR_read, "read", transfer::read),
    full(nr::__NR_write, "write", transfer::write),
    full(nr::__NR_pread64, "pread64", transfer::pread),
    full(nr::__NR_pwrite64, "pwrite64", transfer::pwrite),
    full(nr::__NR_readv, "readv", vectors::readv),
    full(nr::__NR_writev, "writev", vectors::writev),
    full(nr::__NR_preadv, "preadv", vectors::preadv),
    full(nr::__NR_pwritev, "pwritev", vectors::pwritev),
    partial(nr::__NR_preadv2, "preadv2", vectors::preadv2, "RWF_NOWAIT"),
    partial(nr::__NR_pwritev2, "pwritev2", vectors::pwritev2, "RWF_NOWAIT"),
    full(nr::__NR_lseek, "lseek", transfer::lseek),
    full(nr::__NR_close, "close", control::close),
    full(nr::__NR_close_range, "close_range", control::close_range),
    full(nr::__NR_dup, "dup", control::dup),
    full(nr::__NR_dup2, "dup2", control::dup2),
    full(nr::__NR_dup3, "dup3", control::dup3),
    partial(
        nr::__NR_fcntl,
        "fcntl",
        control::fcntl,
        "a program that is run breaks no lease; a user's record locks on a file beyond 4,096 (ENOLCK)",
    ),
    full(nr::__NR_ioctl, "ioctl", control::ioctl),
];
