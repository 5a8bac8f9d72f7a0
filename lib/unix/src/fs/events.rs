//! What happens to files, for those who watch them (inotify, `F_NOTIFY`).
//!
//! An inode has a list of its watchers, weakly; a file system counts them, so that where nobody
//! watches anything a read or a write looks at one number. Who watches a directory hears of what
//! is in it, by name; a file's name is where it was found, or where it was seen last.

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as linux;

use super::directory::Name;
use super::inode::Inode;
use crate::room::Room;
use crate::unix::Unix;

/// What has happened.
pub struct Event<'a> {
    /// `IN_*`.
    pub mask: u32,
    /// What both halves of a rename have in common, else 0.
    pub cookie: u32,
    /// The name in the watched directory; empty if it is the watched file itself.
    pub name: &'a [u8],
    /// The name is no longer there.
    pub unlinked: bool,
}

impl Event<'_> {
    fn of(mask: u32) -> Self {
        Self { mask, cookie: 0, name: &[], unlinked: false }
    }
}

/// Who watches an inode.
pub trait Watcher {
    /// Something has happened that it may want to know.
    fn tell(&self, unix: Option<&Unix>, event: &Event);

    /// The watched inode is no more.
    fn gone(&self);
}

/// The watchers of an inode.
#[derive(Default)]
pub struct Watches {
    list: RefCell<Vec<Weak<dyn Watcher>>>,
}

impl Watches {
    fn all(&self) -> Vec<Rc<dyn Watcher>> {
        self.list.borrow().iter().filter_map(Weak::upgrade).collect()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.list.borrow().len()
    }

    fn tell(&self, unix: Option<&Unix>, event: &Event) {
        self.all().iter().for_each(|watcher| watcher.tell(unix, event));
    }

    /// The inode goes: `removed`, or with its file system.
    pub(super) fn end(&self, removed: bool) {
        let last = if removed { linux::IN_DELETE_SELF } else { linux::IN_UNMOUNT };
        for watcher in self.all() {
            watcher.tell(None, &Event::of(last));
            watcher.gone();
        }
    }
}

impl Inode {
    /// `watcher` hears of it from now on.
    pub fn watch(&self, watcher: Weak<dyn Watcher>) {
        self.watches.list.borrow_mut().push(watcher);
        self.fs.watches.set(self.fs.watches.get() + 1);
    }

    /// It does no more.
    pub fn unwatch(&self, watcher: *const ()) {
        let mut list = self.watches.list.borrow_mut();
        let before = list.len();
        list.retain(|one| one.as_ptr().cast::<()>() != watcher);
        let fewer = before - list.len();
        list.trim();
        self.fs.watches.set(self.fs.watches.get().saturating_sub(fewer));
    }

    /// `mask` has happened to it, as far as anybody watches.
    #[inline(always)]
    pub fn happened(&self, unix: &Unix, mask: u32) {
        if self.fs.watches.get() != 0 {
            tell(Some(unix), self, None, mask);
        }
    }

    /// The same for a file that was found somewhere.
    #[inline(always)]
    pub fn happened_at(
        &self,
        unix: Option<&Unix>,
        location: Option<&(Rc<Inode>, Name)>,
        mask: u32,
    ) {
        if self.fs.watches.get() != 0 {
            tell(unix, self, location, mask);
        }
    }

    /// In this directory, `mask` has happened to the name of `inode`.
    #[inline(always)]
    pub fn name_happened(&self, unix: &Unix, inode: &Inode, name: &[u8], mask: u32) {
        if self.fs.watches.get() != 0 {
            tell_name(unix, self, inode, (name, 0), mask);
        }
    }

    /// One less of its names is there.
    #[inline(always)]
    pub fn name_removed(&self, unix: &Unix, parent: &Inode, name: &[u8]) {
        if self.fs.watches.get() != 0 {
            if !self.is_directory() {
                self.watches.tell(Some(unix), &Event::of(linux::IN_ATTRIB));
            }
            tell_name(unix, parent, self, (name, 0), linux::IN_DELETE);
        }
    }
}

fn directory_bit(inode: &Inode) -> u32 {
    if inode.is_directory() { linux::IN_ISDIR } else { 0 }
}

#[cold]
#[inline(never)]
fn tell_name(unix: &Unix, parent: &Inode, inode: &Inode, (name, cookie): (&[u8], u32), mask: u32) {
    let mask = mask | directory_bit(inode);
    parent.watches.tell(Some(unix), &Event { mask, cookie, name, unlinked: false });
}

/// A rename: both directories hear of it, then the file itself.
pub(super) fn renamed(unix: &Unix, from: (&Inode, &[u8]), to: (&Inode, &[u8]), inode: &Inode) {
    if inode.fs.watches.get() == 0 {
        return;
    }
    let cookie = unix.fs.cookie.get().wrapping_add(1).max(1);
    unix.fs.cookie.set(cookie);
    tell_name(unix, from.0, inode, (from.1, cookie), linux::IN_MOVED_FROM);
    tell_name(unix, to.0, inode, (to.1, cookie), linux::IN_MOVED_TO);
    inode.watches.tell(Some(unix), &Event::of(linux::IN_MOVE_SELF));
}

/// The directory in which `inode` is, its name there, and whether that is gone.
fn place(inode: &Inode, location: Option<&(Rc<Inode>, Name)>) -> Option<((Rc<Inode>, Name), bool)> {
    if let Some(directory) = inode.directory() {
        return directory.above().map(|at| (at, directory.is_removed()));
    }
    if let Some((parent, name)) = location {
        let found = parent.directory().and_then(|entries| entries.find(name));
        if found.is_some_and(|found| core::ptr::eq(&raw const *found, inode)) {
            return Some(((parent.clone(), name.clone()), false));
        }
    }
    let gone = || Some((location?.clone(), true));
    inode.moved().map(|at| (at, false)).or_else(gone)
}

#[cold]
#[inline(never)]
fn tell(unix: Option<&Unix>, inode: &Inode, location: Option<&(Rc<Inode>, Name)>, mask: u32) {
    let mask = mask | directory_bit(inode);
    if let Some(((parent, name), unlinked)) = place(inode, location) {
        parent.watches.tell(unix, &Event { mask, cookie: 0, name: &name, unlinked });
    }
    inode.watches.tell(unix, &Event::of(mask));
}

/// How many watchers the inodes of a file system have.
pub type Count = Cell<usize>;
