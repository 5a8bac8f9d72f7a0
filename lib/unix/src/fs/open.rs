//! Opening and making files: open, openat, openat2, creat.

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general as linux;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::device;
use super::directory::Name;
use super::inode::{Inode, Kind, PERMISSIONS};
use super::permission::{self, READ, WRITE};
use super::regular::Regular;
use super::spot::Spot;
use super::tree_file::{PathFile, TreeFile};
use super::walk::{self, Follow, Found, Walk};
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::{File, Open};
use crate::process::Credentials;

/// Flags that `open` knows; it ignores others, `openat2` refuses them.
pub(super) const KNOWN: u32 = linux::O_ACCMODE
    | linux::O_CREAT
    | linux::O_EXCL
    | linux::O_NOCTTY
    | linux::O_TRUNC
    | linux::O_APPEND
    | linux::O_NONBLOCK
    | linux::O_SYNC
    | linux::FASYNC
    | linux::O_DIRECT
    | LARGEFILE
    | linux::O_DIRECTORY
    | linux::O_NOFOLLOW
    | linux::O_NOATIME
    | linux::O_CLOEXEC
    | linux::O_PATH
    | TMPFILE;
/// `O_LARGEFILE` inside the kernel, and as `F_GETFL` tells it.
pub(super) const LARGEFILE: u32 = 0o100_000;
/// `O_TMPFILE` without the `O_DIRECTORY` in it.
const TMPFILE: u32 = 0o20_000_000;
/// Flags that are not kept.
const ONLY_AT_OPEN: u32 =
    linux::O_CREAT | linux::O_EXCL | linux::O_NOCTTY | linux::O_TRUNC | linux::O_CLOEXEC;
/// What `openat2` knows of `resolve`.
const RESOLVE: u64 = 0x3f;

/// `struct open_how`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct How {
    /// `O_*`.
    pub flags: u64,
    /// Permissions of a new file.
    pub mode: u64,
    /// `RESOLVE_*`.
    pub resolve: u64,
}

/// `open(path, flags, mode)`.
pub(super) fn open(cx: &Cx) -> Answer {
    let path = cx.user().read_path(cx.arg(0))?;
    open_classic(cx, linux::AT_FDCWD, path, cx.uint(1), cx.uint(2))
}

/// `openat(fd, path, flags, mode)`.
pub(super) fn openat(cx: &Cx) -> Answer {
    let path = cx.user().read_path(cx.arg(1))?;
    open_classic(cx, cx.int(0), path, cx.uint(2), cx.uint(3))
}

/// `creat(path, mode)`.
pub(super) fn creat(cx: &Cx) -> Answer {
    let path = cx.user().read_path(cx.arg(0))?;
    let flags = linux::O_CREAT | linux::O_WRONLY | linux::O_TRUNC;
    open_classic(cx, linux::AT_FDCWD, path, flags, cx.uint(1))
}

/// What `open` makes of arguments that `openat2` would refuse.
fn open_classic(cx: &Cx, fd: i32, path: Vec<u8>, flags: u32, mode: u32) -> Answer {
    let mut flags = flags & KNOWN;
    if flags & linux::O_PATH != 0 {
        flags &= linux::O_PATH | linux::O_DIRECTORY | linux::O_NOFOLLOW | linux::O_CLOEXEC;
    }
    let makes = flags & (linux::O_CREAT | TMPFILE) != 0;
    let mode = if makes { mode & PERMISSIONS } else { 0 };
    let how = How { flags: flags.into(), mode: mode.into(), resolve: 0 };
    finish(cx, fd, path, how)
}

/// `openat2(fd, path, how, size)`.
pub(super) fn openat2(cx: &Cx) -> Answer {
    let how: How = cx.user().read_extensible(cx.arg(2), cx.arg(3) as usize)?;
    let both = u64::from(linux::RESOLVE_BENEATH | linux::RESOLVE_IN_ROOT);
    let makes = how.flags & u64::from(linux::O_CREAT | TMPFILE) != 0;
    let path_flags = linux::O_PATH | linux::O_DIRECTORY | linux::O_NOFOLLOW | linux::O_CLOEXEC;
    let path_only = how.flags & u64::from(linux::O_PATH) != 0;
    if how.flags & !u64::from(KNOWN) != 0
        || how.resolve & !RESOLVE != 0
        || how.resolve & both == both
        || how.mode & !u64::from(PERMISSIONS) != 0
        || !makes && how.mode != 0
        || path_only && how.flags & !u64::from(path_flags) != 0
    {
        return Err(Errno::EINVAL.into());
    }
    if how.resolve & u64::from(linux::RESOLVE_CACHED) != 0
        && how.flags & u64::from(linux::O_TRUNC | linux::O_CREAT | TMPFILE) != 0
    {
        return Err(Errno::EAGAIN.into());
    }
    let path = cx.user().read_path(cx.arg(1))?;
    finish(cx, cx.int(0), path, how)
}

/// Opens and gives it a descriptor.
fn finish(cx: &Cx, fd: i32, path: Vec<u8>, how: How) -> Answer {
    let open = open_path(cx, fd, path, how)?;
    let close_on_exec = how.flags as u32 & linux::O_CLOEXEC != 0;
    Ok(u64::from(cx.add_file(open, close_on_exec)?))
}

/// Opens what `path` leads to from descriptor `fd`.
///
/// # Errors
/// As `open(2)`.
pub fn open_path(cx: &Cx, fd: i32, path: Vec<u8>, how: How) -> Result<Rc<Open>, Stop> {
    let flags = how.flags as u32;
    let both = linux::O_CREAT | linux::O_DIRECTORY;
    let unnamed_wrong = flags & TMPFILE != 0
        && (flags & linux::O_DIRECTORY == 0 || flags & linux::O_ACCMODE == linux::O_RDONLY);
    if flags & both == both || unnamed_wrong {
        return Err(Errno::EINVAL.into());
    }
    if path.is_empty() {
        return Err(Errno::ENOENT.into());
    }
    let exclusive = flags & (linux::O_CREAT | linux::O_EXCL) == linux::O_CREAT | linux::O_EXCL;
    let follow = match flags & linux::O_NOFOLLOW != 0 || exclusive {
        true => Follow::No,
        false => Follow::Yes,
    };
    let start = walk::start(cx, fd, &path)?;
    let who = cx.process.credentials.borrow();
    let walk = Walk::new(cx, &who, start, how.resolve);
    let found = walk.making_file(flags & linux::O_CREAT != 0).find(path, follow)?;
    let mode = how.mode as u32;
    let (spot, location, created) = if flags & TMPFILE != 0 {
        let spot = temporary(cx, found, &who, mode)?;
        spot.linkable.set(flags & linux::O_EXCL == 0);
        (spot, None, true)
    } else {
        reach(cx, found, &who, flags, mode)?
    };
    if flags & linux::O_PATH == 0 && !created {
        check_open(&spot, &who, flags)?;
    }
    drop(who);
    if flags & linux::O_PATH == 0 && !created {
        let writes = flags & linux::O_ACCMODE != linux::O_RDONLY || flags & linux::O_TRUNC != 0;
        spot.locks.leases.break_for(cx, writes, flags & linux::O_NONBLOCK == 0)?;
    }
    open_inode(cx, spot, location, if created { flags & !linux::O_TRUNC } else { flags })
}

type Reached = (Spot, Option<(Rc<Inode>, Name)>, bool);

/// The inode that was found, or a new one; where it is; whether it is new.
fn reach(
    cx: &Cx,
    found: Found,
    who: &Credentials,
    flags: u32,
    mode: u32,
) -> Result<Reached, Errno> {
    let creates = flags & linux::O_CREAT != 0;
    let Some(inode) = found.inode.clone() else {
        if !creates {
            return Err(Errno::ENOENT);
        }
        let (inode, name) = create(cx, &found, who, mode)?;
        let spot = Spot { mount: found.mount, inode };
        return Ok((spot, Some((found.parent, name)), true));
    };
    if creates && flags & linux::O_EXCL != 0 {
        return Err(Errno::EEXIST);
    }
    if creates && inode.is_directory() {
        return Err(Errno::EISDIR);
    }
    if (flags & linux::O_DIRECTORY != 0 || found.slash) && !inode.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    if inode.is_symlink() && flags & linux::O_PATH == 0 {
        return Err(Errno::ELOOP);
    }
    let parent = found.parent;
    let location = found.name.filter(|_| !inode.is_directory()).map(|name| (parent, name));
    Ok((Spot { mount: found.mount, inode }, location, false))
}

/// A new regular file with the name that was not found.
fn create(
    cx: &Cx,
    found: &Found,
    who: &Credentials,
    mode: u32,
) -> Result<(Rc<Inode>, Name), Errno> {
    let name: Name = found.name(Errno::EISDIR)?.into();
    if matches!(found.parent.kind, Kind::Proc(_)) {
        return Err(Errno::ENOENT);
    }
    found.mount.check_writable()?;
    permission::check_create(&found.parent, who)?;
    let kind = Kind::Regular(Regular::default());
    let inode = super::names::make(cx, &found.parent, &name, kind, mode, who)?;
    Ok((inode, name))
}

/// `O_TMPFILE`: a regular file without a name.
fn temporary(cx: &Cx, found: Found, who: &Credentials, mode: u32) -> Result<Spot, Errno> {
    let directory = found.existing()?;
    if !directory.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    directory.mount.check_writable()?;
    permission::check(&directory, who, WRITE | permission::EXECUTE)?;
    if directory.directory().is_none() {
        return Err(Errno::EOPNOTSUPP);
    }
    let kind = Kind::Regular(Regular::default());
    let inode = super::names::new_inode(cx, &directory, kind, mode, who)?;
    inode.links.set(0);
    Ok(Spot { mount: directory.mount, inode })
}

/// Whether an existing inode may be opened like this.
pub(super) fn check_open(inode: &Spot, who: &Credentials, flags: u32) -> Result<(), Errno> {
    let mut wanted = match flags & linux::O_ACCMODE {
        linux::O_RDONLY => READ,
        linux::O_WRONLY => WRITE,
        _ => READ | WRITE,
    };
    if flags & linux::O_TRUNC != 0 {
        wanted |= WRITE;
    }
    if wanted & WRITE != 0 && inode.is_directory() {
        return Err(Errno::EISDIR);
    }
    let kept = matches!(inode.file_type(), linux::S_IFREG | linux::S_IFDIR);
    if wanted & WRITE != 0 && kept {
        inode.mount.check_writable()?;
    }
    if inode.mount.has(linux::MS_NODEV) && matches!(inode.kind, Kind::Character(_) | Kind::Block(_))
    {
        return Err(Errno::EACCES);
    }
    permission::check(inode, who, wanted)?;
    if flags & linux::O_NOATIME != 0 && !permission::owns(who, inode) {
        return Err(Errno::EPERM);
    }
    Ok(())
}

/// The file that a fifo or a device is which is no simple one.
fn open_stream(cx: &Cx, inode: &Rc<Inode>, flags: u32) -> Result<Rc<dyn File>, Stop> {
    match &inode.kind {
        Kind::Fifo => crate::stream::open_fifo(cx, inode, flags),
        Kind::Character(device::KMSG) => Ok(crate::log::kmsg::open(cx, inode, flags)?),
        Kind::Character(number) if device::is_terminal(*number) => {
            crate::tty::open(cx, inode, flags)
        }
        _ => Err(Errno::ENXIO.into()),
    }
}

/// The open file description for an inode that may be opened.
pub(super) fn open_inode(
    cx: &Cx,
    spot: Spot,
    location: Option<(Rc<Inode>, Name)>,
    flags: u32,
) -> Result<Rc<Open>, Stop> {
    let kept = (flags & !ONLY_AT_OPEN) | LARGEFILE;
    if flags & linux::O_PATH != 0 {
        let more = spot.inode.kind.bytes();
        let file = PathFile::new(spot, location);
        return Ok(Open::with(cx, file, kept & !LARGEFILE, Vec::new(), more)?);
    }
    let inode = spot.inode.clone();
    let file: Rc<dyn File> = match &inode.kind {
        Kind::Character(number) if device::is_simple(*number) => {
            TreeFile::new(spot, location, false)?
        }
        Kind::Fifo | Kind::Character(_) => {
            let file = open_stream(cx, &inode, flags)?;
            let path = super::path::of_location(cx, &spot, &location);
            return Ok(Open::new(cx, file, kept, path)?);
        }
        Kind::Socket => crate::stream::socket::service::open(cx, &inode, flags)?,
        Kind::Block(_) | Kind::Anonymous(_) => return Err(Errno::ENXIO.into()),
        Kind::Symlink(_) => return Err(Errno::ELOOP.into()),
        Kind::Namespace(_) => {
            let wants_more = flags & (linux::O_ACCMODE | linux::O_TRUNC) != linux::O_RDONLY;
            if wants_more {
                return Err(Errno::EPERM.into());
            }
            TreeFile::new(spot, None, false)?
        }
        Kind::Regular(_) | Kind::Directory(_) | Kind::Proc(_) | Kind::Pts => {
            open_tree_file(cx, spot, location, flags)?
        }
    };
    Ok(Open::with(cx, file, kept, Vec::new(), inode.kind.bytes())?)
}

/// Opens a file that is read and written where it is.
#[inline(always)]
fn open_tree_file(
    cx: &Cx,
    spot: Spot,
    location: Option<(Rc<Inode>, Name)>,
    flags: u32,
) -> Result<Rc<TreeFile>, Errno> {
    let inode = spot.inode.clone();
    let writes = flags & linux::O_ACCMODE != linux::O_RDONLY;
    let file = TreeFile::new(spot, location, writes)?;
    file.opened_by(cx);
    if flags & linux::O_TRUNC != 0 && inode.is_regular() {
        // To truncate is to write, whatever it is opened for.
        super::size::set_as_writer(cx, &inode, 0)?;
        file.happened(Some(cx.unix), linux::IN_MODIFY);
    }
    file.happened(Some(cx.unix), linux::IN_OPEN);
    file.look_at_mounts(cx);
    Ok(file)
}

/// Opens a program for `exec`: what `path` leads to from `fd`, with `AT_EMPTY_PATH` and
/// `AT_SYMLINK_NOFOLLOW` in `at_flags`.
///
/// # Errors
/// `EACCES` for what is not a regular file or may not be executed, `ELOOP` for a link that
/// is not to be followed, and those of a walk.
pub fn open_program(cx: &Cx, fd: i32, path: Vec<u8>, at_flags: u32) -> Result<Rc<Open>, Errno> {
    let (spot, location) = if path.is_empty() && at_flags & linux::AT_EMPTY_PATH != 0 {
        let open = cx.file_or_path(fd as u32)?;
        (Spot::of(cx, &open), super::path::location(&open))
    } else {
        let no_follow = at_flags & linux::AT_SYMLINK_NOFOLLOW != 0;
        let follow = if no_follow { Follow::No } else { Follow::Yes };
        let found = walk::find_path(cx, fd, path, follow)?;
        let location = found.name.clone().map(|name| (found.parent.clone(), name));
        (found.existing()?, location)
    };
    if spot.is_symlink() {
        return Err(Errno::ELOOP);
    }
    if !spot.is_regular() || spot.mount.has(linux::MS_NOEXEC) {
        return Err(Errno::EACCES);
    }
    permission::check(&spot, &cx.process.credentials.borrow(), permission::EXECUTE)?;
    let file = TreeFile::new(spot, location, false)?;
    file.happened(Some(cx.unix), linux::IN_OPEN);
    Open::new(cx, file, linux::O_RDONLY | LARGEFILE, Vec::new())
}
