//! What a walk along a path finds.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::ops::Range;

use super::directory::{NAME_MAX, Name};
use super::inode::Inode;
use super::mounts::Mount;
use super::spot::Spot;
use crate::errno::Errno;

/// What to do with a symbolic link at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Follow {
    /// Go where it leads.
    Yes,
    /// Find the link itself, unless a slash follows.
    No,
    /// Find the link itself: the name is to be made, removed or renamed.
    Never,
}

/// What the last name of a path is.
#[derive(Clone, Debug)]
pub enum Last {
    /// A name, found or not: these bytes of [`Found::path`].
    Name(Range<usize>),
    /// `.`
    Dot,
    /// `..`
    DotDot,
    /// There is none: the path is `/`.
    Root,
    /// A link of `/proc` led to something that may have no name.
    Jump,
}

/// Where a path leads.
pub struct Found {
    /// The mount of what was found; if it is not there or is to be removed, of its directory.
    pub mount: Rc<Mount>,
    /// The directory of the last name.
    pub parent: Rc<Inode>,
    /// The last name.
    pub last: Last,
    /// What it names, if it is there.
    pub inode: Option<Rc<Inode>>,
    /// The name as the directory holds it, if the inode is there and not a directory's root.
    pub name: Option<Name>,
    /// Slashes follow the last name.
    pub slash: bool,
    /// The path in which the last name is.
    pub(super) path: Vec<u8>,
}

impl Found {
    /// The bytes of the last name.
    ///
    /// # Errors
    /// `otherwise` if it is no name that can be made or removed, `ENAMETOOLONG`.
    pub fn name(&self, otherwise: Errno) -> Result<&[u8], Errno> {
        match &self.last {
            Last::Name(range) if range.len() > NAME_MAX => Err(Errno::ENAMETOOLONG),
            Last::Name(range) => self.path.get(range.clone()).ok_or(otherwise),
            _ => Err(otherwise),
        }
    }

    /// Whether the last name is one that can be made or removed.
    #[must_use]
    pub fn is_name(&self) -> bool {
        matches!(self.last, Last::Name(_))
    }

    /// The inode.
    ///
    /// # Errors
    /// `ENOENT` if the last name is not there, `ENOTDIR` if slashes follow what is not a
    /// directory.
    pub fn existing(self) -> Result<Spot, Errno> {
        let inode = self.inode.ok_or(Errno::ENOENT)?;
        if self.slash && !inode.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        if inode.fs.watches.get() != 0
            && let Some(name) = &self.name
        {
            inode.set_moved(&self.parent, name);
        }
        Ok(Spot { mount: self.mount, inode })
    }
}
