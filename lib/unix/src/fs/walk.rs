//! From a path to an inode.
//!
//! A walk goes name by name, never recursively: a symbolic link's text is put before what
//! is left of the path. It holds no borrows while it calls into `/proc`.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::ops::Range;

use linux_raw_sys::general as linux;

use super::devpts;
use super::directory::{NAME_MAX, Name};
use super::found::found;
pub use super::found::{Follow, Found, Last};
use super::inode::{Inode, Kind};
use super::permission;
use super::proc::{self, Target};
use crate::call::Cx;
use crate::errno::Errno;
use crate::process::Credentials;

/// Symbolic links followed in one walk.
const LINKS_MAX: u32 = 40;

/// A walk.
pub struct Walk<'a, 'c> {
    cx: &'a Cx<'c>,
    who: &'a Credentials,
    root: Rc<Inode>,
    /// Relative paths begin here.
    start: Rc<Inode>,
    links: u32,
    /// `RESOLVE_*` of `openat2`.
    rules: u64,
    /// The last name may be made, as a file: no slash may follow it.
    makes_file: bool,
}

enum Step {
    /// Go on in this directory with what is left of the path.
    Into(Rc<Inode>),
    /// A symbolic link's text comes first.
    Through(Vec<u8>),
}

impl<'a, 'c> Walk<'a, 'c> {
    /// A walk of `who` from `start`.
    #[must_use]
    pub fn new(cx: &'a Cx<'c>, who: &'a Credentials, start: Rc<Inode>, rules: u64) -> Self {
        let scoped = rules & u64::from(linux::RESOLVE_IN_ROOT) != 0;
        let root = if scoped { start.clone() } else { cx.process.place.borrow().root() };
        Self { cx, who, root, start, links: 0, rules, makes_file: false }
    }

    /// The same for `O_CREAT`.
    #[must_use]
    pub fn making_file(self, makes_file: bool) -> Self {
        Self { makes_file, ..self }
    }

    fn has_rule(&self, rule: u32) -> bool {
        self.rules & u64::from(rule) != 0
    }

    /// Where `path` leads. Names before the last must be there.
    ///
    /// # Errors
    /// As `path_resolution(7)`.
    pub fn find(mut self, path: Vec<u8>, follow: Follow) -> Result<Found, Errno> {
        let mut path = path;
        let mut current = self.start.clone();
        let mut at = 0;
        if path.first() == Some(&b'/') {
            current = self.to_root()?;
        }
        loop {
            let range = next_name(&path, at);
            if range.is_empty() {
                return Ok(found(current.clone(), Last::Root, Some(current), true, path));
            }
            let next = skip_slashes(&path, range.end);
            let step = if next == path.len() {
                let slash = next > range.end;
                match self.last(&current, &mut path, range.clone(), slash, follow)? {
                    Ok(found) => return Ok(found),
                    Err(text) => Step::Through(text),
                }
            } else {
                self.step(&current, &path[range.clone()])?
            };
            at = range.end;
            match step {
                Step::Into(directory) => current = directory,
                Step::Through(text) => {
                    if text.first() == Some(&b'/') {
                        current = self.to_root()?;
                    }
                    path = joined(text, &path[at..])?;
                    at = 0;
                }
            }
        }
    }

    /// `/` at the beginning of a path or a link.
    fn to_root(&self) -> Result<Rc<Inode>, Errno> {
        if self.has_rule(linux::RESOLVE_BENEATH) {
            return Err(Errno::EXDEV);
        }
        self.check_device(&self.root)?;
        Ok(self.root.clone())
    }

    /// `RESOLVE_NO_XDEV`.
    fn check_device(&self, inode: &Inode) -> Result<(), Errno> {
        if self.has_rule(linux::RESOLVE_NO_XDEV) && inode.fs.device != self.start.fs.device {
            return Err(Errno::EXDEV);
        }
        Ok(())
    }

    /// A name that is not the last.
    fn step(&mut self, current: &Rc<Inode>, name: &[u8]) -> Result<Step, Errno> {
        search(current, self.who, name)?;
        match name {
            b"." => return Ok(Step::Into(current.clone())),
            b".." => return Ok(Step::Into(self.above(current)?)),
            _ => {}
        }
        let inode = child(self.cx, current, name)?.ok_or(Errno::ENOENT)?;
        if inode.is_symlink() {
            return self.through(&inode);
        }
        self.check_device(&inode)?;
        if !inode.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        Ok(Step::Into(inode))
    }

    /// Follows a symbolic link that is not at the end.
    fn through(&mut self, link: &Rc<Inode>) -> Result<Step, Errno> {
        match self.target(link)? {
            Target::Path(text) => Ok(Step::Through(text)),
            Target::Inode(inode) if inode.is_directory() => Ok(Step::Into(inode)),
            Target::Inode(_) => Err(Errno::ENOTDIR),
        }
    }

    /// Where a symbolic link leads.
    fn target(&mut self, link: &Rc<Inode>) -> Result<Target, Errno> {
        self.links += 1;
        if self.links > LINKS_MAX || self.has_rule(linux::RESOLVE_NO_SYMLINKS) {
            return Err(Errno::ELOOP);
        }
        let target = match &link.kind {
            Kind::Symlink(text) => {
                link.touch_accessed(self.cx.unix);
                Target::Path(text.to_vec())
            }
            Kind::Proc(node) if node.is_magic() && self.has_rule(linux::RESOLVE_NO_MAGICLINKS) => {
                return Err(Errno::ELOOP);
            }
            Kind::Proc(node) => proc::follow(self.cx, node)?,
            _ => return Err(Errno::EINVAL),
        };
        if let Target::Inode(inode) = &target {
            if self.rules & u64::from(linux::RESOLVE_BENEATH | linux::RESOLVE_IN_ROOT) != 0 {
                return Err(Errno::EXDEV);
            }
            self.check_device(inode)?;
        }
        Ok(target)
    }

    /// `..`
    fn above(&self, current: &Rc<Inode>) -> Result<Rc<Inode>, Errno> {
        let beneath = self.has_rule(linux::RESOLVE_BENEATH);
        if beneath && Rc::ptr_eq(current, &self.start) {
            return Err(Errno::EXDEV);
        }
        if Rc::ptr_eq(current, &self.root) {
            return Ok(current.clone());
        }
        let above = current.parent().unwrap_or_else(|| current.clone());
        self.check_device(&above)?;
        Ok(above)
    }

    /// The last name. The inner error is the text of a link to be followed.
    fn last(
        &mut self,
        parent: &Rc<Inode>,
        path: &mut Vec<u8>,
        range: Range<usize>,
        slash: bool,
        follow: Follow,
    ) -> Result<Result<Found, Vec<u8>>, Errno> {
        let name = &path[range.clone()];
        match search(parent, self.who, name) {
            // What makes or removes names looks at them itself, in the order that Linux does.
            Err(Errno::ENAMETOOLONG) if follow == Follow::Never => {
                let path = core::mem::take(path);
                return Ok(Ok(found(parent.clone(), Last::Name(range), None, slash, path)));
            }
            other => other?,
        }
        let dots = matches!(name, b"." | b"..");
        if self.makes_file && slash && !dots {
            return Err(Errno::EISDIR);
        }
        let (last, name, inode) = match name {
            b"." => (Last::Dot, None, Some(parent.clone())),
            b".." => (Last::DotDot, None, Some(self.above(parent)?)),
            _ => {
                let (name, inode) = child_entry(self.cx, parent, name)?.unzip();
                (Last::Name(range), name, inode)
            }
        };
        if let Some(link) = inode.as_ref().filter(|inode| inode.is_symlink())
            && (follow == Follow::Yes || follow == Follow::No && slash)
        {
            return match self.target(link)? {
                Target::Path(text) => Ok(Err(text)),
                Target::Inode(inode) => {
                    let path = core::mem::take(path);
                    Ok(Ok(found(parent.clone(), Last::Jump, Some(inode), slash, path)))
                }
            };
        }
        if let Some(inode) = &inode {
            self.check_device(inode)?;
        }
        let mut found = found(parent.clone(), last, inode, slash, core::mem::take(path));
        found.name = name;
        Ok(Ok(found))
    }
}

/// Where the slashes at `at` end.
fn skip_slashes(path: &[u8], mut at: usize) -> usize {
    while path.get(at) == Some(&b'/') {
        at += 1;
    }
    at
}

/// The name at or behind `at`; empty at the end of the path.
fn next_name(path: &[u8], at: usize) -> Range<usize> {
    let start = skip_slashes(path, at);
    let mut end = start;
    while path.get(end).is_some_and(|byte| *byte != b'/') {
        end += 1;
    }
    start..end
}

/// A link's text before the rest of a path.
fn joined(mut text: Vec<u8>, rest: &[u8]) -> Result<Vec<u8>, Errno> {
    if text.is_empty() {
        return Err(Errno::ENOENT);
    }
    text.extend_from_slice(rest);
    Ok(text)
}

/// Whether `who` may look up `name` in `directory` at all.
fn search(directory: &Inode, who: &Credentials, name: &[u8]) -> Result<(), Errno> {
    if !directory.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    permission::check_search(directory, who)?;
    if name.len() > NAME_MAX { Err(Errno::ENAMETOOLONG) } else { Ok(()) }
}

/// What is mounted on a directory, or the inode itself.
fn crossed(inode: Rc<Inode>) -> Rc<Inode> {
    let mut inode = inode;
    while let Some(root) = inode.directory().and_then(super::directory::Directory::mounted) {
        inode = root;
    }
    inode
}

/// What `name` is in `directory`.
fn child(cx: &Cx, directory: &Rc<Inode>, name: &[u8]) -> Result<Option<Rc<Inode>>, Errno> {
    match &directory.kind {
        Kind::Directory(entries) => Ok(entries.find(name).map(crossed)),
        Kind::Proc(node) => proc::lookup(cx, directory, node, name),
        Kind::Pts(_) => devpts::lookup(cx, name),
        _ => Err(Errno::ENOTDIR),
    }
}

/// As [`child`], with the name as the directory holds it.
fn child_entry(
    cx: &Cx,
    directory: &Rc<Inode>,
    name: &[u8],
) -> Result<Option<(Name, Rc<Inode>)>, Errno> {
    match &directory.kind {
        Kind::Directory(entries) => {
            Ok(entries.find_entry(name).map(|(name, inode)| (name, crossed(inode))))
        }
        _ => Ok(child(cx, directory, name)?.map(|inode| (name.into(), inode))),
    }
}

/// The directory that descriptor argument `fd` of an `..at` call names, for `path`.
///
/// # Errors
/// `EBADF`, `ENOTDIR`.
pub fn start(cx: &Cx, fd: i32, path: &[u8]) -> Result<Rc<Inode>, Errno> {
    if fd == linux::AT_FDCWD || path.first() == Some(&b'/') {
        return Ok(cx.process.place.borrow().directory());
    }
    let inode = cx.file_or_path(fd as u32)?.file.inode();
    if inode.is_directory() { Ok(inode) } else { Err(Errno::ENOTDIR) }
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
pub fn inode_at(cx: &Cx, fd: i32, address: u64, flags: u32) -> Result<Rc<Inode>, Errno> {
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
fn descriptor(cx: &Cx, fd: i32) -> Result<Rc<Inode>, Errno> {
    if fd == linux::AT_FDCWD {
        return Ok(cx.process.place.borrow().directory());
    }
    Ok(cx.file_or_path(fd as u32)?.file.inode())
}

/// The inode that a path names, for a call whose only argument of this kind it is.
///
/// # Errors
/// As [`find`].
pub fn inode(cx: &Cx, address: u64) -> Result<Rc<Inode>, Errno> {
    find(cx, linux::AT_FDCWD, address, Follow::Yes)?.existing()
}
