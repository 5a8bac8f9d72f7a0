//! From an inode back to its path: getcwd, `/proc/self/fd`, `/proc/self/exe`.

use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;

use super::directory::{Directory, Name};
use super::inode::{Inode, Kind};
use super::mounts::{Mount, Point};
use super::spot::Spot;
use super::tree_file::{PathFile, TreeFile};
use crate::call::Cx;
use crate::errno::Errno;
use crate::file::Open;

/// Longer paths are not told.
pub(super) const PATH_MAX: usize = 4096;

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

/// The mount in which a file was found that was opened by its path.
#[must_use]
pub fn mount(open: &Open) -> Option<Rc<Mount>> {
    let file = open.file.as_any();
    if let Some(file) = file.downcast_ref::<TreeFile>() {
        return Some(file.mount().clone());
    }
    file.downcast_ref::<PathFile>().map(|file| file.mount().clone())
}

/// Where the way up from a directory ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// At the root that was asked for.
    Root,
    /// At the root of all mounts, which is another.
    Top,
    /// At what is mounted nowhere.
    Nowhere,
}

/// The names from `directory` up to `root`, and whether it got there.
fn names_above(directory: &Spot, root: &Spot) -> Result<(Vec<Name>, End), Errno> {
    let mut names = Vec::new();
    let mut len = 0;
    let mut at = directory.clone();
    loop {
        if at.is(root) {
            return Ok((names, End::Root));
        }
        let above = match &at.inode.kind {
            _ if at.is_mount_root() => match at.mount.point() {
                Some(Point { spot, location: None }) => {
                    at = spot;
                    continue;
                }
                Some(Point { spot, location }) => {
                    at.mount = spot.mount;
                    location
                }
                None if Rc::ptr_eq(at.mount.root(), at.mount.tree_root()) => {
                    return Ok((names, End::Top));
                }
                None => return Ok((names, End::Nowhere)),
            },
            Kind::Directory(directory) => directory.above(),
            Kind::Proc(node) => node.above(),
            _ => None,
        };
        let Some((above, name)) = above else { return Ok((names, End::Nowhere)) };
        len += name.len() + 1;
        if len >= PATH_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        names.push(name);
        at.inode = above;
    }
}

/// The path of a directory as a process with this root sees it.
///
/// # Errors
/// `ENAMETOOLONG` if it has 4,096 bytes or more.
pub fn of_directory(directory: &Spot, root: &Spot) -> Result<Vec<u8>, Errno> {
    written(names_above(directory, root)?, End::Top)
}

/// The same; what is not below the root is marked, as `getcwd` does it.
///
/// # Errors
/// As [`of_directory`].
pub(super) fn below_root(directory: &Spot, root: &Spot) -> Result<Vec<u8>, Errno> {
    written(names_above(directory, root)?, End::Root)
}

/// Names as a path, which is marked if its way ends elsewhere than at `end` or the root.
fn written((names, reached): (Vec<Name>, End), end: End) -> Result<Vec<u8>, Errno> {
    let mut path = Vec::new();
    if reached != End::Root && reached != end {
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

/// The path of a directory in its file system, whatever is mounted where.
pub(super) fn in_tree(directory: &Rc<Inode>, root: &Rc<Inode>) -> Vec<u8> {
    let mut path = Vec::new();
    let mut at = directory.clone();
    while !Rc::ptr_eq(&at, root) && path.len() < PATH_MAX {
        let above = match &at.kind {
            Kind::Directory(directory) => directory.above(),
            Kind::Proc(node) => node.above(),
            _ => None,
        };
        let Some((above, name)) = above else { break };
        path = [b"/", &name[..], &path].concat();
        at = above;
    }
    if path.is_empty() { b"/".to_vec() } else { path }
}

/// The path of a location, as the caller sees it; empty if there is none.
pub(super) fn of_location(cx: &Cx, spot: &Spot, location: &Location) -> Vec<u8> {
    let root = cx.process.place.borrow().root();
    if spot.is_mount_root() {
        return of_directory(spot, &root).unwrap_or_default();
    }
    location.as_ref().map_or_else(Vec::new, |(parent, name)| joined(spot, parent, name, &root))
}

/// The path of `name` in `parent`, found in the mount of `spot`.
fn joined(spot: &Spot, parent: &Rc<Inode>, name: &Name, root: &Spot) -> Vec<u8> {
    let parent = Spot { mount: spot.mount.clone(), inode: parent.clone() };
    let mut path = of_directory(&parent, root).unwrap_or_default();
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// What `/proc/self/fd` says of an open file, for a process with this root.
#[must_use]
pub fn of_open(open: &Open, root: &Spot) -> Vec<u8> {
    let inode = open.file.inode();
    if let Some(mount) = mount(open) {
        let spot = Spot { mount, inode: inode.clone() };
        if inode.is_directory() || spot.is_mount_root() {
            return of_directory_or_deleted(&spot, root);
        }
        if let Some((parent, name)) = location(open) {
            return of_file(&spot, &parent, &name, root);
        }
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
fn of_file(spot: &Spot, parent: &Rc<Inode>, name: &Name, root: &Spot) -> Vec<u8> {
    let inode = &spot.inode;
    let present = parent
        .directory()
        .is_none_or(|entries| entries.find(name).is_some_and(|there| Rc::ptr_eq(&there, inode)));
    if present {
        return joined(spot, parent, name, root);
    }
    if let Some((parent, name)) = inode.moved() {
        return joined(spot, &parent, &name, root);
    }
    let mut path = joined(spot, parent, name, root);
    path.extend_from_slice(b" (deleted)");
    path
}

/// The path of a directory, marked if it has been removed.
#[must_use]
pub fn of_directory_or_deleted(directory: &Spot, root: &Spot) -> Vec<u8> {
    if let Kind::Namespace(namespace) = &directory.kind {
        return namespace.text();
    }
    let mut path = of_directory(directory, root).unwrap_or_default();
    if directory.directory().is_some_and(Directory::is_removed) {
        path.extend_from_slice(b" (deleted)");
    }
    path
}
