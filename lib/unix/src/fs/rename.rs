//! rename, renameat, renameat2.

use alloc::rc::Rc;

use linux_raw_sys::general as linux;

use super::directory::{Directory, Name};
use super::events::renamed;
use super::inode::Inode;
use super::names::directory_removed;
use super::walk::{self, Follow, Found};
use super::{bind, permission};
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::process::Credentials;

/// `rename(old, new)`.
pub(super) fn rename(cx: &Cx) -> Answer {
    rename_at(cx, (linux::AT_FDCWD, cx.arg(0)), (linux::AT_FDCWD, cx.arg(1)), 0)
}

/// `renameat(old_fd, old, new_fd, new)`.
pub(super) fn renameat(cx: &Cx) -> Answer {
    rename_at(cx, (cx.int(0), cx.arg(1)), (cx.int(2), cx.arg(3)), 0)
}

/// `renameat2(old_fd, old, new_fd, new, flags)`.
pub(super) fn renameat2(cx: &Cx) -> Answer {
    rename_at(cx, (cx.int(0), cx.arg(1)), (cx.int(2), cx.arg(3)), cx.uint(4))
}

fn rename_at(cx: &Cx, old: (i32, u64), new: (i32, u64), flags: u32) -> Answer {
    let exchange = flags & linux::RENAME_EXCHANGE != 0;
    let no_replace = flags & linux::RENAME_NOREPLACE != 0;
    if flags & !(linux::RENAME_EXCHANGE | linux::RENAME_NOREPLACE) != 0 || exchange && no_replace {
        return Err(Errno::EINVAL.into());
    }
    let old = walk::find(cx, old.0, old.1, Follow::Never)?;
    let new = walk::find(cx, new.0, new.1, Follow::Never)?;
    if !Rc::ptr_eq(&old.mount, &new.mount) {
        return Err(Errno::EXDEV.into());
    }
    if !old.is_name() || !new.is_name() {
        let exists = old.is_name() && no_replace;
        return Err(if exists { Errno::EEXIST } else { Errno::EBUSY }.into());
    }
    let old_name: Name = old.name(Errno::EBUSY)?.into();
    let source = old.inode.clone().ok_or(Errno::ENOENT)?;
    let new_name: Name = new.name(Errno::EBUSY)?.into();
    check_kinds(&old, &new, &source, exchange, no_replace)?;
    if new.inode.as_ref().is_some_and(|target| Rc::ptr_eq(target, &source)) {
        return Ok(0);
    }
    old.mount.check_writable()?;
    check_rights(&old, &new, &source, &cx.process.credentials.borrow(), exchange)?;
    for inode in [Some(&source), new.inode.as_ref()].into_iter().flatten() {
        bind::check_name(cx, &old.mount, inode)?;
    }
    let moved = Move { old: &old, old_name: &old_name, new: &new, new_name: &new_name };
    match (&new.inode, exchange) {
        (Some(target), true) => moved.exchange(cx, &source, target)?,
        _ => moved.replace(cx, &source)?,
    }
    Ok(0)
}

/// Whether `above` is `inode` or a directory above it.
fn is_above(above: &Rc<Inode>, inode: &Rc<Inode>) -> bool {
    let mut at = Some(inode.clone());
    while let Some(inode) = at {
        if Rc::ptr_eq(&inode, above) {
            return true;
        }
        at = inode.parent();
    }
    false
}

/// What the names are, and whether one is above the other, in the order of Linux's checks.
fn check_kinds(
    old: &Found,
    new: &Found,
    source: &Rc<Inode>,
    exchange: bool,
    no_replace: bool,
) -> Result<(), Errno> {
    match &new.inode {
        Some(_) if no_replace => return Err(Errno::EEXIST),
        None if exchange => return Err(Errno::ENOENT),
        Some(target) if exchange && new.slash && !target.is_directory() => {
            return Err(Errno::ENOTDIR);
        }
        _ => {}
    }
    if !source.is_directory() && (old.slash || !exchange && new.slash) {
        return Err(Errno::ENOTDIR);
    }
    if source.is_directory() && is_above(source, &new.parent) {
        return Err(Errno::EINVAL);
    }
    if let Some(target) = new.inode.as_ref().filter(|inode| inode.is_directory())
        && is_above(target, &old.parent)
    {
        return Err(if exchange { Errno::EINVAL } else { Errno::ENOTEMPTY });
    }
    Ok(())
}

fn check_rights(
    old: &Found,
    new: &Found,
    source: &Inode,
    who: &Credentials,
    exchange: bool,
) -> Result<(), Errno> {
    permission::check_delete(&old.parent, source, who)?;
    match &new.inode {
        None => permission::check_create(&new.parent, who)?,
        Some(target) => {
            permission::check_delete(&new.parent, target, who)?;
            match (source.is_directory(), target.is_directory()) {
                (true, false) if !exchange => return Err(Errno::ENOTDIR),
                (false, true) if !exchange => return Err(Errno::EISDIR),
                _ => {}
            }
        }
    }
    let other_parent = !Rc::ptr_eq(&old.parent, &new.parent);
    for inode in [Some(source), new.inode.as_deref().filter(|_| exchange)].into_iter().flatten() {
        if inode.is_directory() && other_parent {
            permission::check(inode, who, permission::WRITE)?;
        }
    }
    Ok(())
}

/// A rename that has been found right.
struct Move<'a> {
    old: &'a Found,
    old_name: &'a Name,
    new: &'a Found,
    new_name: &'a Name,
}

impl Move<'_> {
    fn directories(&self) -> Result<(&Directory, &Directory), Errno> {
        let old = self.old.parent.directory().ok_or(Errno::EPERM)?;
        Ok((old, self.new.parent.directory().ok_or(Errno::EPERM)?))
    }

    fn replace(&self, cx: &Cx, source: &Rc<Inode>) -> Result<(), Errno> {
        let (from, to) = self.directories()?;
        if let Some(target) = &self.new.inode {
            if target.directory().is_some_and(|entries| !entries.is_empty()) {
                return Err(Errno::ENOTEMPTY);
            }
            to.reserve()?;
            bind::name_goes(cx, &self.new.mount, target)?;
            match target.directory() {
                Some(_) => directory_removed(cx, &self.new.parent, target),
                None => target.drop_link(cx.unix),
            }
            to.remove(self.new_name);
        } else {
            to.reserve()?;
        }
        from.remove(self.old_name);
        to.insert(self.new_name, source)?;
        self.arrive(source, &self.new.parent, self.new_name, &self.old.parent);
        self.touch(cx, source);
        if let Some(target) = self.new.inode.as_ref().filter(|target| !target.is_directory()) {
            target.happened(cx.unix, linux::IN_ATTRIB);
        }
        self.told(cx, source);
        Ok(())
    }

    fn exchange(&self, cx: &Cx, source: &Rc<Inode>, target: &Rc<Inode>) -> Result<(), Errno> {
        let (from, to) = self.directories()?;
        from.exchange(self.old_name, target);
        to.exchange(self.new_name, source);
        self.arrive(source, &self.new.parent, self.new_name, &self.old.parent);
        self.arrive(target, &self.old.parent, self.old_name, &self.new.parent);
        target.touch_changed(cx.unix);
        self.touch(cx, source);
        self.told(cx, source);
        let (old, new) = (&*self.old.parent, &*self.new.parent);
        renamed(cx.unix, (new, self.new_name), (old, self.old_name), target);
        Ok(())
    }

    /// Those who watch hear of it.
    fn told(&self, cx: &Cx, source: &Inode) {
        let (old, new) = (&*self.old.parent, &*self.new.parent);
        renamed(cx.unix, (old, self.old_name), (new, self.new_name), source);
    }

    /// `inode` is in `parent` now, and no longer in `left`.
    fn arrive(&self, inode: &Rc<Inode>, parent: &Rc<Inode>, name: &Name, left: &Rc<Inode>) {
        match inode.directory() {
            Some(directory) => {
                directory.move_to(parent, name);
                if !Rc::ptr_eq(parent, left) {
                    left.links.set(left.links.get().saturating_sub(1));
                    parent.links.set(parent.links.get() + 1);
                }
            }
            None => inode.set_moved(parent, name),
        }
    }

    fn touch(&self, cx: &Cx, source: &Inode) {
        source.touch_changed(cx.unix);
        self.old.parent.touch_modified(cx.unix);
        self.new.parent.touch_modified(cx.unix);
    }
}
