//! From an inode back to its path: getcwd, `/proc/self/fd`, `/proc/self/exe`.

use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;

use super::directory::{Directory, Name};
use super::inode::{Inode, Kind};
use super::tree_file::{PathFile, TreeFile};
use crate::call::Cx;
use crate::errno::Errno;
use crate::file::Open;

/// Longer paths are not told.
const PATH_MAX: usize = 4096;

/// A directory and a name in it.
pub type Location = Option<(Rc<Inode>, Name)>;

/// Where a file that was opened by its path was found.
#[must_use]
pub fn location(open: &Open) -> Location {
    let file = open.file.as_any();
    if let Some(file) = file.downcast_ref::<TreeFile>() {
        return file.location().cloned();
    }
    file.downcast_ref::<PathFile>().and_then(|file| file.location().cloned())
}

/// The names from `directory` up to `root`, and whether it got there.
fn names_above(directory: &Rc<Inode>, root: &Rc<Inode>) -> Result<(Vec<Name>, bool), Errno> {
    let mut names = Vec::new();
    let mut len = 0;
    let mut at = directory.clone();
    loop {
        if Rc::ptr_eq(&at, root) {
            return Ok((names, true));
        }
        let above = match &at.kind {
            Kind::Directory(directory) => directory.above(),
            Kind::Proc(node) => node.above(),
            Kind::Pts(pts) => pts.above(),
            _ => None,
        };
        let Some((above, name)) = above else { return Ok((names, false)) };
        len += name.len() + 1;
        if len >= PATH_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        names.push(name);
        at = above;
    }
}

/// The path of a directory as a process with this root sees it.
///
/// # Errors
/// `ENAMETOOLONG` if it has 4,096 bytes or more.
pub fn of_directory(directory: &Rc<Inode>, root: &Rc<Inode>) -> Result<Vec<u8>, Errno> {
    let (names, reached) = names_above(directory, root)?;
    let mut path = Vec::new();
    if !reached {
        path.extend_from_slice(b"(unreachable)");
    }
    for name in names.iter().rev() {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    if names.is_empty() {
        path.push(b'/');
    }
    Ok(path)
}

/// The path of a location, as the caller sees it; empty if there is none.
pub(super) fn of_location(cx: &Cx, location: &Location) -> Vec<u8> {
    let root = cx.process.place.borrow().root();
    location.as_ref().map_or_else(Vec::new, |(parent, name)| joined(parent, name, &root))
}

fn joined(parent: &Rc<Inode>, name: &Name, root: &Rc<Inode>) -> Vec<u8> {
    let mut path = of_directory(parent, root).unwrap_or_default();
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// What `/proc/self/fd` says of an open file, for a process with this root.
#[must_use]
pub fn of_open(open: &Open, root: &Rc<Inode>) -> Vec<u8> {
    let inode = open.file.inode();
    if inode.is_directory() {
        return of_directory_or_deleted(&inode, root);
    }
    if let Some((parent, name)) = location(open) {
        return of_file(&inode, &parent, &name, root);
    }
    if !open.path.is_empty() {
        return open.path.clone();
    }
    match &inode.kind {
        Kind::Fifo => format!("pipe:[{}]", inode.number).into(),
        Kind::Socket => format!("socket:[{}]", inode.number).into(),
        Kind::Namespace(namespace) => namespace.text(),
        Kind::Anonymous(name) => format!("anon_inode:{name}").into(),
        _ => format!("/#{} (deleted)", inode.number).into(),
    }
}

/// The path of a file that was found as `name` in `parent`: where it is now, or marked.
fn of_file(inode: &Rc<Inode>, parent: &Rc<Inode>, name: &Name, root: &Rc<Inode>) -> Vec<u8> {
    let present = parent
        .directory()
        .is_none_or(|entries| entries.find(name).is_some_and(|there| Rc::ptr_eq(&there, inode)));
    if present {
        return joined(parent, name, root);
    }
    if let Some((parent, name)) = inode.moved() {
        return joined(&parent, &name, root);
    }
    let mut path = joined(parent, name, root);
    path.extend_from_slice(b" (deleted)");
    path
}

/// The path of a directory, marked if it has been removed.
#[must_use]
pub fn of_directory_or_deleted(directory: &Rc<Inode>, root: &Rc<Inode>) -> Vec<u8> {
    if let Kind::Namespace(namespace) = &directory.kind {
        return namespace.text();
    }
    let mut path = of_directory(directory, root).unwrap_or_default();
    if directory.directory().is_some_and(Directory::is_removed) {
        path.extend_from_slice(b" (deleted)");
    }
    path
}
