//! Making and removing names: mkdir, mknod, symlink, link, unlink, rmdir, readlink.

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general as linux;

use super::directory::{Directory, Name};
use super::inode::{INODE_BYTES, Inode, Kind};
use super::regular::Regular;
use super::spot::Spot;
use super::time::Time;
use super::walk::{self, Follow, Found, Last};
use super::{bind, permission, proc};
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::process::Credentials;

/// A new inode, made by `who` for directory `parent`; it has no name yet.
pub(super) fn new_inode(
    cx: &Cx,
    parent: &Inode,
    kind: Kind,
    mode: u32,
    who: &Credentials,
) -> Result<Rc<Inode>, Errno> {
    let inherits = parent.mode.get() & linux::S_ISGID != 0;
    let gid = if inherits { parent.gid.get() } else { who.fsgid };
    let mode = match &kind {
        Kind::Symlink(_) => 0o777,
        Kind::Directory(_) if inherits => mode & !umask(cx) | linux::S_ISGID,
        _ if inherits && mode & SET_GROUP == SET_GROUP && !may_set_group(who, parent) => {
            mode & !umask(cx) & !linux::S_ISGID
        }
        _ => mode & !umask(cx),
    };
    let text = if let Kind::Symlink(text) = &kind { text.len() } else { 0 };
    let charge = cx.pay(INODE_BYTES + text).map_err(|_| Errno::ENOSPC)?;
    let inode = Inode::new(&parent.fs, kind, mode, (who.fsuid, gid), Time::now(cx.unix))?;
    inode.set_payer(charge);
    Ok(inode)
}

/// Set-group-id: without the second bit it means something else.
const SET_GROUP: u32 = linux::S_ISGID | linux::S_IXGRP;

/// Whether `who` may make programs of the directory's group.
fn may_set_group(who: &Credentials, directory: &Inode) -> bool {
    permission::in_group(who, directory.gid.get()) || who.may_to(directory, linux::CAP_FSETID)
}

fn umask(cx: &Cx) -> u32 {
    cx.process.place.borrow().umask.get()
}

/// A new inode with the name `name` in `parent`, where it is not yet. Rights are checked.
pub(super) fn make(
    cx: &Cx,
    parent: &Rc<Inode>,
    name: &Name,
    kind: Kind,
    mode: u32,
    who: &Credentials,
) -> Result<Rc<Inode>, Errno> {
    let entries = parent.directory().ok_or(Errno::EACCES)?;
    let inode = new_inode(cx, parent, kind, mode, who)?;
    entries.insert(name, &inode)?;
    if inode.is_directory() {
        inode.links.set(2);
        parent.links.set(parent.links.get() + 1);
    }
    parent.touch_modified(cx.unix);
    parent.name_happened(cx.unix, &inode, name, linux::IN_CREATE);
    Ok(inode)
}

/// The place of a name that is to be made.
fn new_place(cx: &Cx, fd: i32, path: Vec<u8>, directory: bool) -> Result<(Found, Name), Errno> {
    let found = walk::find_path(cx, fd, path, Follow::Never)?;
    let name: Name = found.name(Errno::EEXIST)?.into();
    if found.inode.is_some() {
        return Err(Errno::EEXIST);
    }
    // In /proc, a name that is not there cannot be made.
    let fixed = matches!(found.parent.kind, Kind::Proc(_));
    if fixed || found.slash && !directory {
        return Err(Errno::ENOENT);
    }
    found.mount.check_writable()?;
    Ok((found, name))
}

/// `mkdir(path, mode)`.
pub(super) fn mkdir(cx: &Cx) -> Answer {
    make_directory(cx, linux::AT_FDCWD, cx.arg(0), cx.uint(1))
}

/// `mkdirat(fd, path, mode)`.
pub(super) fn mkdirat(cx: &Cx) -> Answer {
    make_directory(cx, cx.int(0), cx.arg(1), cx.uint(2))
}

fn make_directory(cx: &Cx, fd: i32, address: u64, mode: u32) -> Answer {
    let path = cx.user().read_path(address)?;
    let (found, name) = new_place(cx, fd, path, true)?;
    let who = cx.process.credentials.borrow();
    permission::check_create(&found.parent, &who)?;
    if found.parent.directory().is_none() {
        return Err(Errno::EPERM.into());
    }
    let kind = Kind::Directory(Directory::below(&found.parent, &name));
    make(cx, &found.parent, &name, kind, mode & 0o1777, &who)?;
    Ok(0)
}

/// `mknod(path, mode, device)`.
pub(super) fn mknod(cx: &Cx) -> Answer {
    make_node(cx, linux::AT_FDCWD, cx.arg(0), cx.uint(1), cx.uint(2))
}

/// `mknodat(fd, path, mode, device)`.
pub(super) fn mknodat(cx: &Cx) -> Answer {
    make_node(cx, cx.int(0), cx.arg(1), cx.uint(2), cx.uint(3))
}

fn make_node(cx: &Cx, fd: i32, address: u64, mode: u32, device: u32) -> Answer {
    let path = cx.user().read_path(address)?;
    let kind = match mode & linux::S_IFMT {
        0 | linux::S_IFREG => Kind::Regular(Regular::default()),
        linux::S_IFCHR => Kind::Character(device.into()),
        linux::S_IFBLK => Kind::Block(device.into()),
        linux::S_IFIFO => Kind::Fifo,
        linux::S_IFSOCK => Kind::Socket,
        linux::S_IFDIR => return Err(Errno::EPERM.into()),
        _ => return Err(Errno::EINVAL.into()),
    };
    let is_device = matches!(kind, Kind::Character(1..) | Kind::Block(_));
    make_special(cx, fd, path, kind, mode, is_device)?;
    Ok(0)
}

fn make_special(
    cx: &Cx,
    fd: i32,
    path: Vec<u8>,
    kind: Kind,
    mode: u32,
    is_device: bool,
) -> Result<Rc<Inode>, Errno> {
    let (found, name) = new_place(cx, fd, path, false)?;
    let who = cx.process.credentials.borrow();
    permission::check_create(&found.parent, &who)?;
    if is_device && !who.may(linux::CAP_MKNOD) || found.parent.directory().is_none() {
        return Err(Errno::EPERM);
    }
    make(cx, &found.parent, &name, kind, mode, &who)
}

/// A socket's inode at `path` (`bind`).
///
/// # Errors
/// As `bind(2)`: `EADDRINUSE` if the name is there.
pub fn make_socket(cx: &Cx, path: Vec<u8>) -> Result<Rc<Inode>, Errno> {
    make_special(cx, linux::AT_FDCWD, path, Kind::Socket, 0o777, false)
        .map_err(|errno| if errno == Errno::EEXIST { Errno::EADDRINUSE } else { errno })
}

/// Whether a socket could be made at `path`; it is not.
///
/// # Errors
/// As [`make_socket`].
pub fn check_new_socket(cx: &Cx, path: Vec<u8>) -> Result<(), Errno> {
    let taken = |errno| if errno == Errno::EEXIST { Errno::EADDRINUSE } else { errno };
    let (found, _) = new_place(cx, linux::AT_FDCWD, path, false).map_err(taken)?;
    permission::check_create(&found.parent, &cx.process.credentials.borrow())
}

/// The socket's inode that `connect` and `sendto` name by `path`.
///
/// # Errors
/// As `connect(2)`: `ECONNREFUSED` for what is not a socket.
pub fn find_socket(cx: &Cx, path: Vec<u8>) -> Result<Rc<Inode>, Errno> {
    let inode = walk::find_path(cx, linux::AT_FDCWD, path, Follow::Yes)?.existing()?.inode;
    permission::check(&inode, &cx.process.credentials.borrow(), permission::WRITE)?;
    if matches!(inode.kind, Kind::Socket) { Ok(inode) } else { Err(Errno::ECONNREFUSED) }
}

/// `symlink(text, path)`.
pub(super) fn symlink(cx: &Cx) -> Answer {
    make_symlink(cx, cx.arg(0), linux::AT_FDCWD, cx.arg(1))
}

/// `symlinkat(text, fd, path)`.
pub(super) fn symlinkat(cx: &Cx) -> Answer {
    make_symlink(cx, cx.arg(0), cx.int(1), cx.arg(2))
}

fn make_symlink(cx: &Cx, text: u64, fd: i32, address: u64) -> Answer {
    let text = cx.user().read_path(text)?;
    if text.is_empty() {
        return Err(Errno::ENOENT.into());
    }
    let path = cx.user().read_path(address)?;
    make_special(cx, fd, path, Kind::Symlink(text.into()), 0o777, false)?;
    Ok(0)
}

/// `link(old, new)`.
pub(super) fn link(cx: &Cx) -> Answer {
    make_link(cx, (linux::AT_FDCWD, cx.arg(0)), (linux::AT_FDCWD, cx.arg(1)), 0)
}

/// `linkat(old_fd, old, new_fd, new, flags)`.
pub(super) fn linkat(cx: &Cx) -> Answer {
    make_link(cx, (cx.int(0), cx.arg(1)), (cx.int(2), cx.arg(3)), cx.uint(4))
}

fn make_link(cx: &Cx, old: (i32, u64), new: (i32, u64), flags: u32) -> Answer {
    if flags & !(linux::AT_SYMLINK_FOLLOW | linux::AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let privileged = cx.process.credentials.borrow().may(linux::CAP_DAC_READ_SEARCH);
    if flags & linux::AT_EMPTY_PATH != 0 && !privileged {
        return Err(Errno::ENOENT.into());
    }
    let follow = flags & linux::AT_SYMLINK_FOLLOW != 0;
    let no_follow = if follow { 0 } else { linux::AT_SYMLINK_NOFOLLOW };
    let inode = walk::inode_at(cx, old.0, old.1, flags & linux::AT_EMPTY_PATH | no_follow)?;
    let path = cx.user().read_path(new.1)?;
    let (found, name) = new_place(cx, new.0, path, false)?;
    if !Rc::ptr_eq(&found.parent.fs, &inode.fs)
        || !Rc::ptr_eq(&found.mount, &inode.mount) && inode.links.get() != 0
    {
        return Err(Errno::EXDEV.into());
    }
    permission::check_create(&found.parent, &cx.process.credentials.borrow())?;
    if inode.is_directory() {
        return Err(Errno::EPERM.into());
    }
    if inode.links.get() == 0 && !inode.linkable.get() {
        return Err(Errno::ENOENT.into());
    }
    if inode.links.get() == u32::MAX {
        return Err(Errno::EMLINK.into());
    }
    inode.pay_name().map_err(|_| Errno::ENOSPC)?;
    found.parent.directory().ok_or(Errno::EPERM)?.insert(&name, &inode)?;
    inode.links.set(inode.links.get() + 1);
    inode.touch_changed(cx.unix);
    found.parent.touch_modified(cx.unix);
    inode.happened(cx.unix, linux::IN_ATTRIB);
    found.parent.name_happened(cx.unix, &inode, &name, linux::IN_CREATE);
    Ok(0)
}

/// `unlink(path)`.
pub(super) fn unlink(cx: &Cx) -> Answer {
    remove_file(cx, linux::AT_FDCWD, cx.arg(0))
}

/// `rmdir(path)`.
pub(super) fn rmdir(cx: &Cx) -> Answer {
    remove_directory(cx, linux::AT_FDCWD, cx.arg(0))
}

/// `unlinkat(fd, path, flags)`.
pub(super) fn unlinkat(cx: &Cx) -> Answer {
    match cx.uint(2) {
        0 => remove_file(cx, cx.int(0), cx.arg(1)),
        linux::AT_REMOVEDIR => remove_directory(cx, cx.int(0), cx.arg(1)),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn remove_file(cx: &Cx, fd: i32, address: u64) -> Answer {
    let found = walk::find(cx, fd, address, Follow::Never)?;
    let name = found.name(Errno::EISDIR)?;
    let inode = found.inode.as_ref().ok_or(Errno::ENOENT)?;
    if found.slash {
        let directory = inode.is_directory();
        return Err(if directory { Errno::EISDIR } else { Errno::ENOTDIR }.into());
    }
    found.mount.check_writable()?;
    permission::check_delete(&found.parent, inode, &cx.process.credentials.borrow())?;
    if inode.is_directory() {
        return Err(Errno::EISDIR.into());
    }
    bind::name_goes(cx, &found.mount, inode)?;
    found.parent.directory().ok_or(Errno::EPERM)?.remove(name);
    found.parent.touch_modified(cx.unix);
    inode.drop_link(cx.unix);
    inode.name_removed(cx.unix, &found.parent, name);
    Ok(0)
}

fn remove_directory(cx: &Cx, fd: i32, address: u64) -> Answer {
    let found = walk::find(cx, fd, address, Follow::Never)?;
    let name = match found.last {
        Last::DotDot => return Err(Errno::ENOTEMPTY.into()),
        Last::Dot => return Err(Errno::EINVAL.into()),
        _ => found.name(Errno::EBUSY)?,
    };
    let inode = found.inode.as_ref().ok_or(Errno::ENOENT)?;
    found.mount.check_writable()?;
    permission::check_delete(&found.parent, inode, &cx.process.credentials.borrow())?;
    if !inode.is_directory() {
        return Err(Errno::ENOTDIR.into());
    }
    bind::check_name(cx, &found.mount, inode)?;
    let entries = inode.directory().ok_or(Errno::EPERM)?;
    if !entries.is_empty() {
        return Err(Errno::ENOTEMPTY.into());
    }
    bind::name_goes(cx, &found.mount, inode)?;
    found.parent.directory().ok_or(Errno::EPERM)?.remove(name);
    directory_removed(cx, &found.parent, inode);
    found.parent.touch_modified(cx.unix);
    inode.name_removed(cx.unix, &found.parent, name);
    Ok(0)
}

/// Directory `inode` has lost its name in `parent`.
pub(super) fn directory_removed(cx: &Cx, parent: &Inode, inode: &Inode) {
    if let Some(directory) = inode.directory() {
        directory.set_removed();
    }
    inode.links.set(0);
    inode.touch_changed(cx.unix);
    parent.links.set(parent.links.get().saturating_sub(1));
}

/// `readlink(path, buffer, size)`.
pub(super) fn readlink(cx: &Cx) -> Answer {
    read_link(cx, linux::AT_FDCWD, cx.arg(0), cx.arg(1), cx.int(2))
}

/// `readlinkat(fd, path, buffer, size)`.
pub(super) fn readlinkat(cx: &Cx) -> Answer {
    read_link(cx, cx.int(0), cx.arg(1), cx.arg(2), cx.int(3))
}

fn read_link(cx: &Cx, fd: i32, path: u64, buffer: u64, size: i32) -> Answer {
    let size = usize::try_from(size).ok().filter(|size| *size > 0).ok_or(Errno::EINVAL)?;
    let path = cx.user().read_path(path)?;
    let empty = path.is_empty();
    let inode = if empty {
        Spot::of(cx, &*cx.file_or_path(fd as u32).map_err(|_| Errno::ENOENT)?)
    } else {
        walk::find_path(cx, fd, path, Follow::No)?.existing()?
    };
    let text = match &inode.kind {
        Kind::Symlink(text) => text.to_vec(),
        Kind::Proc(node) if inode.is_symlink() => proc::text(cx, node)?,
        _ => return Err(if empty { Errno::ENOENT } else { Errno::EINVAL }.into()),
    };
    inode.touch_accessed(cx.unix);
    let len = text.len().min(size);
    cx.user().write_bytes(buffer, &text[..len])?;
    Ok(len as u64)
}
