//! Extended attributes: those in `security.` and `trusted.`, as on Linux's tmpfs. Names in `user.` are
//! not supported at all, as there; nor is `security.capability`, since `exec` would not heed it.
//!
//! An attribute is paid by the user of the process that set it, until it is removed or its inode goes.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use linux_raw_sys::general as linux;

use super::inode::{Inode, Kind};
use super::spot::Spot;
use super::{permission, walk};
use crate::account::Charge;
use crate::call::{Answer, Cx};
use crate::errno::Errno;

/// Longest name (`XATTR_NAME_MAX`), and room for its zero.
const NAME_MAX: usize = 256;
/// Longest value (`XATTR_SIZE_MAX`).
const VALUE_MAX: usize = 65_536;
/// `XATTR_CREATE`, `XATTR_REPLACE`.
const CREATE: u32 = 1;
const REPLACE: u32 = 2;
/// What an attribute costs beside its name and value.
const ATTRIBUTE_BYTES: usize = 128;

/// A value, and what it costs.
struct Value {
    bytes: Box<[u8]>,
    _charge: Charge,
}

/// The attributes of an inode, by name.
#[derive(Default)]
pub struct Attributes(RefCell<BTreeMap<Box<[u8]>, Value>>);

impl Attributes {
    fn set(&self, name: &[u8], value: Option<Value>, flags: u32) -> Result<(), Errno> {
        let mut all = self.0.borrow_mut();
        match all.contains_key(name) {
            true if flags & CREATE != 0 => return Err(Errno::EEXIST),
            false if flags & REPLACE != 0 => return Err(Errno::ENODATA),
            _ => {}
        }
        match value {
            Some(value) => drop(all.insert(name.into(), value)),
            None => drop(all.remove(name)),
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum By {
    Path,
    Link,
    Descriptor,
}

/// The file that the call is about.
fn file(cx: &Cx, by: By) -> Result<Spot, Errno> {
    match by {
        By::Path => walk::inode(cx, cx.arg(0)),
        By::Link => walk::inode_at(cx, linux::AT_FDCWD, cx.arg(0), linux::AT_SYMLINK_NOFOLLOW),
        By::Descriptor => Ok(Spot::of(cx, &*cx.file(cx.uint(0))?)),
    }
}

/// The name at argument 1.
fn name(cx: &Cx) -> Result<Vec<u8>, Errno> {
    let name = cx.user().read_string(cx.arg(1), NAME_MAX, Errno::ERANGE)?;
    if name.is_empty() { Err(Errno::ERANGE) } else { Ok(name) }
}

/// Whether the caller may read the attribute `name`, or (`change`) set and remove it, and
/// whether there can be one of that name at all.
fn check(cx: &Cx, inode: &Inode, name: &[u8], change: bool) -> Result<(), Errno> {
    let who = cx.process.credentials.borrow();
    let hidden = if change { Errno::EPERM } else { Errno::ENODATA };
    let privileged = who.may(linux::CAP_SYS_ADMIN);
    if name.starts_with(b"trusted.") {
        if !privileged {
            return Err(hidden);
        }
    } else if name.starts_with(b"security.") {
        if change && !privileged {
            return Err(Errno::EPERM);
        }
    } else {
        let user = name.starts_with(b"user.");
        if user && !inode.is_regular() && !inode.is_directory() {
            return Err(hidden);
        }
        if !name.starts_with(b"system.") {
            let wanted = if change { permission::WRITE } else { permission::READ };
            permission::check(inode, &who, wanted)?;
        }
        return Err(Errno::EOPNOTSUPP);
    }
    let fs = &cx.unix.fs;
    let nameless = Rc::ptr_eq(&inode.fs, &fs.pipes) || Rc::ptr_eq(&inode.fs, &fs.sockets);
    let keeps = !matches!(inode.kind, Kind::Proc(_) | Kind::Pts | Kind::Anonymous(_));
    if nameless || !keeps || change && name == b"security.capability" {
        return Err(Errno::EOPNOTSUPP);
    }
    Ok(())
}

/// Gives the program `bytes` if it has room for them (argument `at` and the next); how many
/// they are.
fn give(cx: &Cx, at: usize, bytes: &[u8]) -> Answer {
    let (to, room) = (cx.arg(at), cx.arg(at + 1));
    if room > 0 {
        if room < bytes.len() as u64 {
            return Err(Errno::ERANGE.into());
        }
        cx.user().write_bytes(to, bytes)?;
    }
    Ok(bytes.len() as u64)
}

fn get(cx: &Cx, by: By) -> Answer {
    let inode = file(cx, by)?;
    let name = name(cx)?;
    check(cx, &inode, &name, false)?;
    let all = inode.attributes.0.borrow();
    give(cx, 2, &all.get(&name[..]).ok_or(Errno::ENODATA)?.bytes)
}

fn set(cx: &Cx, by: By) -> Answer {
    let inode = file(cx, by)?;
    inode.check_writable()?;
    let (len, flags) = (cx.arg(3) as usize, cx.uint(4));
    if flags & !(CREATE | REPLACE) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let name = name(cx)?;
    if len > VALUE_MAX {
        return Err(Errno::E2BIG.into());
    }
    let charge = cx.pay(ATTRIBUTE_BYTES + name.len() + len).map_err(|_| Errno::ENOSPC)?;
    let mut bytes = alloc::vec![0; len];
    cx.user().read_bytes(cx.arg(2), &mut bytes)?;
    check(cx, &inode, &name, true)?;
    inode.attributes.set(&name, Some(Value { bytes: bytes.into(), _charge: charge }), flags)?;
    inode.touch_changed(cx.unix);
    inode.happened(cx.unix, linux::IN_ATTRIB);
    Ok(0)
}

fn remove(cx: &Cx, by: By) -> Answer {
    let inode = file(cx, by)?;
    inode.check_writable()?;
    let name = name(cx)?;
    check(cx, &inode, &name, true)?;
    inode.attributes.set(&name, None, REPLACE)?;
    inode.touch_changed(cx.unix);
    inode.happened(cx.unix, linux::IN_ATTRIB);
    Ok(0)
}

fn list(cx: &Cx, by: By) -> Answer {
    let inode = file(cx, by)?;
    let privileged = cx.process.credentials.borrow().may(linux::CAP_SYS_ADMIN);
    let all = inode.attributes.0.borrow();
    let shown = all.keys().filter(|name| privileged || !name.starts_with(b"trusted."));
    let len: usize = shown.clone().map(|name| name.len() + 1).sum();
    if cx.arg(2) == 0 {
        return Ok(len as u64);
    }
    if len > VALUE_MAX {
        return Err(Errno::E2BIG.into());
    }
    let mut names = Vec::new();
    shown.for_each(|name| {
        names.extend_from_slice(name);
        names.push(0);
    });
    give(cx, 1, &names)
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $what:ident($by:ident);)*) => {
        $($(#[$doc])* pub(super) fn $name(cx: &Cx) -> Answer { $what(cx, By::$by) })*
    };
}

calls! {
    /// `getxattr(path, name, value, size)`.
    getxattr = get(Path);
    /// `lgetxattr(path, name, value, size)`.
    lgetxattr = get(Link);
    /// `fgetxattr(fd, name, value, size)`.
    fgetxattr = get(Descriptor);
    /// `setxattr(path, name, value, size, flags)`.
    setxattr = set(Path);
    /// `lsetxattr(path, name, value, size, flags)`.
    lsetxattr = set(Link);
    /// `fsetxattr(fd, name, value, size, flags)`.
    fsetxattr = set(Descriptor);
    /// `listxattr(path, list, size)`.
    listxattr = list(Path);
    /// `llistxattr(path, list, size)`.
    llistxattr = list(Link);
    /// `flistxattr(fd, list, size)`.
    flistxattr = list(Descriptor);
    /// `removexattr(path, name)`.
    removexattr = remove(Path);
    /// `lremovexattr(path, name)`.
    lremovexattr = remove(Link);
    /// `fremovexattr(fd, name)`.
    fremovexattr = remove(Descriptor);
}
