//! Who may do what: mode bits, groups, the sticky bit, and the capabilities about files.

use linux_raw_sys::general as linux;

use super::inode::{Inode, Kind};
use crate::errno::Errno;
use crate::process::Credentials;

/// Wants to read.
pub const READ: u32 = 4;
/// Wants to write.
pub const WRITE: u32 = 2;
/// Wants to execute, or search a directory.
pub const EXECUTE: u32 = 1;

/// Whether `gid` is one of its groups.
#[must_use]
pub fn in_group(who: &Credentials, gid: u32) -> bool {
    who.fsgid == gid || who.groups.contains(&gid)
}

/// Whether `who` is the owner, or may act as if.
#[must_use]
pub fn owns(who: &Credentials, inode: &Inode) -> bool {
    who.fsuid == inode.uid.get() || who.may_to(inode, linux::CAP_FOWNER)
}

/// Checks that `who` may make all accesses of `wanted`. In `/proc/sys` modes alone count.
///
/// # Errors
/// `EACCES`; `EROFS` for writing to a file system mounted read-only.
pub fn check(inode: &Inode, who: &Credentials, wanted: u32) -> Result<(), Errno> {
    let file_type = inode.file_type();
    if wanted & WRITE != 0
        && inode.fs.read_only.get()
        && matches!(file_type, linux::S_IFREG | linux::S_IFDIR | linux::S_IFLNK)
    {
        return Err(Errno::EROFS);
    }
    let mode = inode.mode.get();
    let granted = if who.fsuid == inode.uid.get() {
        mode >> 6
    } else if in_group(who, inode.gid.get()) {
        mode >> 3
    } else {
        mode
    };
    if wanted & !granted & 7 == 0 {
        return Ok(());
    }
    if matches!(&inode.kind, Kind::Proc(node) if node.is_setting()) {
        return Err(Errno::EACCES);
    }
    let directory = file_type == linux::S_IFDIR;
    let executable = directory || mode & 0o111 != 0;
    let looks = wanted == READ || directory && wanted & WRITE == 0;
    let may = who.may_to(inode, linux::CAP_DAC_OVERRIDE) && (wanted & EXECUTE == 0 || executable)
        || who.may_to(inode, linux::CAP_DAC_READ_SEARCH) && looks;
    if may { Ok(()) } else { Err(Errno::EACCES) }
}

/// Whether `who` may search directory `inode`: the check that every step of a path makes.
///
/// # Errors
/// `EACCES`.
#[inline]
pub fn check_search(inode: &Inode, who: &Credentials) -> Result<(), Errno> {
    if inode.mode.get() & 0o111 == 0o111 { Ok(()) } else { check(inode, who, EXECUTE) }
}

/// Whether `who` may make a name in `directory`.
///
/// # Errors
/// `EACCES`, `EROFS`; `ENOENT` if the directory has been removed.
pub fn check_create(directory: &Inode, who: &Credentials) -> Result<(), Errno> {
    if directory.directory().is_some_and(super::directory::Directory::is_removed) {
        return Err(Errno::ENOENT);
    }
    check(directory, who, WRITE | EXECUTE)
}

/// Whether `who` may take the name of `victim` out of `directory`.
///
/// # Errors
/// `EACCES`, `EROFS`; `EPERM` in a sticky directory.
pub fn check_delete(directory: &Inode, victim: &Inode, who: &Credentials) -> Result<(), Errno> {
    check(directory, who, WRITE | EXECUTE)?;
    let sticky = directory.mode.get() & linux::S_ISVTX != 0;
    let may = owns(who, victim) || who.fsuid == directory.uid.get();
    if sticky && !may { Err(Errno::EPERM) } else { Ok(()) }
}
