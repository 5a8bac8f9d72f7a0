//! mount_setattr: what programs may do in a mount, or in all of a tree of mounts, and who hears of
//! what is mounted there.

use alloc::rc::Rc;

use linux_raw_sys::general as linux;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::lookup::inode_at;
use super::mount::KINDS;
use super::mounts::Mount;
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::process::namespace;

/// `struct mount_attr`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Attributes {
    /// `MOUNT_ATTR_*` that mounts get.
    set: u64,
    /// Those that they lose first.
    clear: u64,
    /// One of `MS_SHARED`, `MS_PRIVATE`, `MS_SLAVE`, `MS_UNBINDABLE`, or 0.
    propagation: u64,
    /// A namespace of users, for `MOUNT_ATTR_IDMAP`.
    users: u64,
}

/// The call's flags.
const FLAGS: u32 = linux::AT_EMPTY_PATH
    | linux::AT_RECURSIVE
    | linux::AT_SYMLINK_NOFOLLOW
    | linux::AT_NO_AUTOMOUNT;

/// Attributes that are flags of `mount` by another number.
const FLAG_OF: [(u32, u32); 5] = [
    (linux::MOUNT_ATTR_RDONLY, linux::MS_RDONLY),
    (linux::MOUNT_ATTR_NOSUID, linux::MS_NOSUID),
    (linux::MOUNT_ATTR_NODEV, linux::MS_NODEV),
    (linux::MOUNT_ATTR_NOEXEC, linux::MS_NOEXEC),
    (linux::MOUNT_ATTR_NODIRATIME, linux::MS_NODIRATIME),
];
/// The field that says when reading changes access times.
const TIMES: u32 = linux::MOUNT_ATTR__ATIME;

/// What becomes of flags of `mount`.
#[derive(Clone, Copy)]
struct Change {
    set: u32,
    clear: u32,
}

impl Change {
    /// # Errors
    /// `EINVAL`.
    fn of(attributes: &Attributes) -> Result<Self, Errno> {
        let word = |word: u64| u32::try_from(word).map_err(|_| Errno::EINVAL);
        let (set, clear) = (word(attributes.set)?, word(attributes.clear)?);
        let known = FLAG_OF.iter().fold(TIMES, |known, (attribute, _)| known | attribute);
        if (set | clear) & !known != 0 {
            return Err(Errno::EINVAL);
        }
        let flags = |word: u32| {
            let meant = FLAG_OF.iter().filter(|(attribute, _)| word & attribute != 0);
            meant.fold(0, |flags, (_, flag)| flags | flag)
        };
        let mut change = Self { set: flags(set), clear: flags(clear) };
        match (clear & TIMES, set & TIMES) {
            (0, 0) => {}
            // They are a number, so they are cleared as a whole.
            (TIMES, times) => {
                change.clear |= linux::MS_NOATIME | linux::MS_RELATIME;
                change.set |= match times {
                    linux::MOUNT_ATTR_RELATIME => linux::MS_RELATIME,
                    linux::MOUNT_ATTR_NOATIME => linux::MS_NOATIME,
                    linux::MOUNT_ATTR_STRICTATIME => 0,
                    _ => return Err(Errno::EINVAL),
                };
            }
            _ => return Err(Errno::EINVAL),
        }
        Ok(change)
    }

    fn flags(self, mount: &Mount) -> u32 {
        mount.flags.get() & !self.clear | self.set
    }
}

/// `mount_setattr(fd, path, flags, attributes, size)`.
pub(super) fn mount_setattr(cx: &Cx) -> Answer {
    let flags = cx.uint(2);
    if flags & !FLAGS != 0 {
        return Err(Errno::EINVAL.into());
    }
    let size = cx.arg(4) as usize;
    let space = namespace::check_mounts(cx)?;
    let attributes: Attributes = cx.user().read_extensible(cx.arg(3), size)?;
    if attributes.set == 0 && attributes.clear == 0 && attributes.propagation == 0 {
        return Ok(0);
    }
    let kind = u32::try_from(attributes.propagation).map_err(|_| Errno::EINVAL)?;
    if kind & !KINDS != 0 || kind.count_ones() > 1 {
        return Err(Errno::EINVAL.into());
    }
    let change = Change::of(&attributes)?;
    let spot = inode_at(cx, cx.int(0), cx.arg(1), flags)?;
    if !spot.is_mount_root() || !space.has(&spot.mount) {
        return Err(Errno::EINVAL.into());
    }
    let all = match flags & linux::AT_RECURSIVE {
        0 => alloc::vec![spot.mount.clone()],
        _ => space.below(&spot.mount),
    };
    if !all.iter().all(|mount: &Rc<Mount>| mount.may_have(change.flags(mount))) {
        return Err(Errno::EPERM.into());
    }
    for mount in &all {
        mount.flags.set(change.flags(mount));
        if kind != 0 {
            super::share::set_kind(&cx.unix.fs.table, mount, kind);
        }
    }
    space.change();
    Ok(0)
}
