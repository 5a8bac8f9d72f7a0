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
pub use super::found::{Follow, Found, Last};
use super::inode::{Inode, Kind};
pub use super::lookup::{find, find_path, inode, inode_at, start};
use super::mounts::Mount;
use super::permission;
use super::proc::{self, Target};
use super::spot::Spot;
use crate::call::Cx;
use crate::errno::Errno;
use crate::process::Credentials;

/// Symbolic links followed in one walk.
const LINKS_MAX: u32 = 40;

/// A walk.
pub struct Walk<'a, 'c> {
    cx: &'a Cx<'c>,
    who: &'a Credentials,
    root: Spot,
    /// Relative paths begin here.
    start: Spot,
    /// The mount in which it is.
    mount: Rc<Mount>,
    /// Where it was inside of a mount that shows a part of its file system, when it was last asked.
    inside: Option<Spot>,
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
    pub fn new(cx: &'a Cx<'c>, who: &'a Credentials, start: Spot, rules: u64) -> Self {
        let scoped = rules & u64::from(linux::RESOLVE_IN_ROOT) != 0;
        let root = if scoped { start.clone() } else { cx.process.place.borrow().root() };
        let mount = start.mount.clone();
        Self { cx, who, root, start, mount, inside: None, links: 0, rules, makes_file: false }
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
        let mut current = self.start.inode.clone();
        let mut at = 0;
        if path.first() == Some(&b'/') {
            current = self.at_root()?;
        }
        loop {
            let range = next_name(&path, at);
            if range.is_empty() {
                return Ok(self.found(current.clone(), Last::Root, Some(current), true, path));
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
                        current = self.at_root()?;
                    }
                    path = joined(text, &path[at..])?;
                    at = 0;
                }
            }
        }
    }

    /// `/` at the beginning of a path or a link.
    fn at_root(&mut self) -> Result<Rc<Inode>, Errno> {
        if self.has_rule(linux::RESOLVE_BENEATH) {
            return Err(Errno::EXDEV);
        }
        self.mount = self.root.mount.clone();
        self.check_mount()?;
        Ok(self.root.inode.clone())
    }

    /// `RESOLVE_NO_XDEV`.
    fn check_mount(&self) -> Result<(), Errno> {
        if self.has_rule(linux::RESOLVE_NO_XDEV) && !Rc::ptr_eq(&self.mount, &self.start.mount) {
            return Err(Errno::EXDEV);
        }
        Ok(())
    }

    /// What covers an inode, or the inode itself.
    #[inline]
    fn crossed(&mut self, inode: Rc<Inode>) -> Rc<Inode> {
        if inode.covered.get() == 0 { inode } else { self.enter_mounts(inode) }
    }

    #[cold]
    #[inline(never)]
    fn enter_mounts(&mut self, inode: Rc<Inode>) -> Rc<Inode> {
        let mut inode = inode;
        while let Some(mount) = self.cx.unix.fs.table.over_inode(&self.mount, &inode) {
            inode = mount.root().clone();
            self.mount = mount;
        }
        inode
    }

    /// Where it has ended.
    fn found(
        &self,
        parent: Rc<Inode>,
        last: Last,
        inode: Option<Rc<Inode>>,
        slash: bool,
        path: Vec<u8>,
    ) -> Found {
        Found { mount: self.mount.clone(), parent, last, inode, name: None, slash, path }
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
        let inode = self.crossed(inode);
        self.check_mount()?;
        if !inode.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        Ok(Step::Into(inode))
    }

    /// Follows a symbolic link that is not at the end.
    fn through(&mut self, link: &Rc<Inode>) -> Result<Step, Errno> {
        match self.target(link)? {
            Target::Path(text) => Ok(Step::Through(text)),
            Target::Spot(spot) if spot.is_directory() => {
                self.mount = spot.mount;
                Ok(Step::Into(spot.inode))
            }
            Target::Spot(_) => Err(Errno::ENOTDIR),
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
        if let Target::Spot(spot) = &target {
            if self.rules & u64::from(linux::RESOLVE_BENEATH | linux::RESOLVE_IN_ROOT) != 0 {
                return Err(Errno::EXDEV);
            }
            let other = !Rc::ptr_eq(&spot.mount, &self.start.mount);
            if other && self.has_rule(linux::RESOLVE_NO_XDEV) {
                return Err(Errno::EXDEV);
            }
        }
        Ok(target)
    }

    /// `..`
    fn above(&mut self, current: &Rc<Inode>) -> Result<Rc<Inode>, Errno> {
        let at = Spot { mount: self.mount.clone(), inode: current.clone() };
        if self.has_rule(linux::RESOLVE_BENEATH) && at.is(&self.start) {
            return Err(Errno::EXDEV);
        }
        let at = at.uncovered(&self.root);
        let above = match at.parent() {
            Some(above) if !at.is(&self.root) && !at.is_mount_root() => above,
            _ => at.inode.clone(),
        };
        self.mount = at.mount;
        if !Rc::ptr_eq(self.mount.root(), self.mount.tree_root()) {
            self.check_inside(&at.inode, &above)?;
        }
        let above = self.crossed(above);
        self.check_mount()?;
        Ok(above)
    }

    /// Whether a directory, to which `..` has led from `from`, is inside a mount that shows a part of its file system. If
    /// it was moved out, `..` must not lead to what the mount does not show.
    fn check_inside(&mut self, from: &Rc<Inode>, directory: &Rc<Inode>) -> Result<(), Errno> {
        let known = self.inside.take().filter(|known| Rc::ptr_eq(&known.mount, &self.mount));
        let known = known.map(|known| known.inode);
        let is_known = |one: &Rc<Inode>| known.as_ref().is_some_and(|known| Rc::ptr_eq(known, one));
        let mut at = directory.clone();
        // What lies above one that is inside is so, too, up to the mount's root, above which `..` does not lead.
        while !is_known(from) && !is_known(&at) && !Rc::ptr_eq(&at, self.mount.root()) {
            at = at.parent().ok_or(Errno::ENOENT)?;
        }
        self.inside = Some(Spot { mount: self.mount.clone(), inode: directory.clone() });
        Ok(())
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
                return Ok(Ok(self.found(parent.clone(), Last::Name(range), None, slash, path)));
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
                Target::Spot(spot) => {
                    let path = core::mem::take(path);
                    self.mount = spot.mount;
                    Ok(Ok(self.found(parent.clone(), Last::Jump, Some(spot.inode), slash, path)))
                }
            };
        }
        // A name that is to be removed is that of what is covered; and a dot is where one is.
        let covered = follow == Follow::Never || name.is_none();
        let inode = if covered { inode } else { inode.map(|inode| self.crossed(inode)) };
        self.check_mount()?;
        let found = self.found(parent.clone(), last, inode, slash, core::mem::take(path));
        Ok(Ok(Found { name, ..found }))
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

/// What `name` is in `directory`.
fn child(cx: &Cx, directory: &Rc<Inode>, name: &[u8]) -> Result<Option<Rc<Inode>>, Errno> {
    match &directory.kind {
        Kind::Directory(entries) => Ok(entries.find(name)),
        Kind::Proc(node) => proc::lookup(cx, directory, node, name),
        Kind::Pts => devpts::lookup(cx, name),
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
        Kind::Directory(entries) => Ok(entries.find_entry(name)),
        _ => Ok(child(cx, directory, name)?.map(|inode| (name.into(), inode))),
    }
}
