//! Files that only have descriptors, with contents all the same: memfd_create, and the
//! seals that such files can get.

use alloc::rc::Rc;

use linux_raw_sys::general as linux;

use super::inode::Kind;
use super::open::LARGEFILE;
use super::regular::Regular;
use super::spot::Spot;
use super::tree_file::TreeFile;
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::file::{File, Open};

/// Longest name, and room for its zero.
const NAME_MAX: usize = 250;

/// `memfd_create(name, flags)`.
pub(super) fn memfd_create(cx: &Cx) -> Answer {
    let flags = cx.uint(1);
    if flags & !(linux::MFD_CLOEXEC | linux::MFD_ALLOW_SEALING) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let name = cx.user().read_string(cx.arg(0), NAME_MAX, Errno::EINVAL)?;
    let sealable = flags & linux::MFD_ALLOW_SEALING != 0;
    let regular = Regular::default();
    regular.seals.set(if sealable { 0 } else { linux::F_SEAL_SEAL });
    let fs = &cx.unix.fs.anonymous;
    let inode = super::nameless(cx, fs, Kind::Regular(regular), 0o777)?;
    inode.links.set(0);
    let file: Rc<dyn File> = TreeFile::new(Spot::nowhere(cx, inode), None, true)?;
    let path = [b"/memfd:", &name[..], b" (deleted)"].concat();
    let open = Open::new(cx, file, linux::O_RDWR | LARGEFILE, path)?;
    Ok(u64::from(cx.add_file(open, flags & linux::MFD_CLOEXEC != 0)?))
}

/// `fcntl`'s commands that only file systems know: seals.
///
/// # Errors
/// `EINVAL` for all others.
pub fn fcntl(cx: &Cx, open: &Open, command: u32, argument: u64) -> Answer {
    let _ = cx;
    let inode = open.file.inode();
    let known = linux::F_SEAL_SEAL
        | linux::F_SEAL_SHRINK
        | linux::F_SEAL_GROW
        | linux::F_SEAL_WRITE
        | linux::F_SEAL_FUTURE_WRITE;
    let regular = inode.regular().ok_or(Errno::EINVAL)?;
    match command {
        linux::F_GET_SEALS => Ok(regular.seals.get().into()),
        linux::F_ADD_SEALS => {
            let seals = argument as u32;
            if !open.can_write() {
                return Err(Errno::EPERM.into());
            }
            if seals & !known != 0 {
                return Err(Errno::EINVAL.into());
            }
            if regular.seals.get() & linux::F_SEAL_SEAL != 0 {
                return Err(Errno::EPERM.into());
            }
            if seals & linux::F_SEAL_WRITE != 0
                && regular.mappers().iter().any(|space| space.may_write(regular))
            {
                return Err(Errno::EBUSY.into());
            }
            regular.seals.set(regular.seals.get() | seals);
            Ok(0)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}
