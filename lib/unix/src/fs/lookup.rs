//! What the path and descriptor arguments of calls mean: a walk from where they begin.

use alloc::vec::Vec;

use linux_raw_sys::general as linux;

use super::spot::Spot;
use super::walk::{Follow, Found, Walk};
use crate::call::Cx;
use crate::errno::Errno;

/// The directory that descriptor argument `fd` of an `..at` call names, for `path`.
///
/// # Errors
/// `EBADF`, `ENOTDIR`.
pub fn start(cx: &Cx, fd: i32, path: &[u8]) -> Result<Spot, Errno> {
    if fd == linux::AT_FDCWD || path.first() == Some(&b'/') {
        return Ok(cx.process.place.borrow().directory());
    }
    let spot = Spot::of(cx, &*cx.file_or_path(fd as u32)?);
    if spot.is_directory() { Ok(spot) } else { Err(Errno::ENOTDIR) }
}

/// Where the path at user address `address` leads from descriptor `fd`.
///
/// # Errors
/// As `path_resolution(7)`; `ENOENT` for the empty path, `EFAULT`.
pub fn find(cx: &Cx, fd: i32, address: u64, follow: Follow) -> Result<Found, Errno> {
    find_path(cx, fd, cx.user().read_path(address)?, follow)
}

/// Where `path` leads from descriptor `fd`.
///
/// # Errors
/// As [`find`].
pub fn find_path(cx: &Cx, fd: i32, path: Vec<u8>, follow: Follow) -> Result<Found, Errno> {
    if path.is_empty() {
        return Err(Errno::ENOENT);
    }
    let start = start(cx, fd, &path)?;
    let who = cx.process.credentials.borrow();
    Walk::new(cx, &who, start, 0).find(path, follow)
}

/// The inode that an `..at` call with these flags (`AT_SYMLINK_NOFOLLOW`, `AT_EMPTY_PATH`)
/// means.
///
/// # Errors
/// As [`find`].
pub fn inode_at(cx: &Cx, fd: i32, address: u64, flags: u32) -> Result<Spot, Errno> {
    let empty = flags & linux::AT_EMPTY_PATH != 0;
    if empty && address == 0 {
        return descriptor(cx, fd);
    }
    let path = cx.user().read_path(address)?;
    if path.is_empty() && empty {
        return descriptor(cx, fd);
    }
    let follow = if flags & linux::AT_SYMLINK_NOFOLLOW != 0 { Follow::No } else { Follow::Yes };
    find_path(cx, fd, path, follow)?.existing()
}

/// The inode of a descriptor, `AT_FDCWD` and `O_PATH` ones included.
fn descriptor(cx: &Cx, fd: i32) -> Result<Spot, Errno> {
    if fd == linux::AT_FDCWD {
        return Ok(cx.process.place.borrow().directory());
    }
    Ok(Spot::of(cx, &*cx.file_or_path(fd as u32)?))
}

/// The inode that a path names, for a call whose only argument of this kind it is.
///
/// # Errors
/// As [`find`].
pub fn inode(cx: &Cx, address: u64) -> Result<Spot, Errno> {
    find(cx, linux::AT_FDCWD, address, Follow::Yes)?.existing()
}
