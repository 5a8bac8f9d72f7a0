//! What an inode of `/proc` is.

use alloc::rc::{Rc, Weak};

use super::super::directory::Name;
use super::super::inode::{Inode, Kind};
use super::What;
use crate::process::{Numbers, Pid, Process, numbers};

/// An inode of `/proc`.
pub struct Node {
    pub(super) what: What,
    pub(super) above: Option<(Rc<Inode>, Name)>,
    /// Whose processes are seen here, by the numbers that they have there.
    pub(super) numbers: Option<Rc<Numbers>>,
    /// The process that it was when it was looked up, if it is `/proc/PID`.
    pub(super) process: Option<Weak<Process>>,
    /// The number of the space that it was then, if it is a process's memory.
    pub(super) space: Option<u64>,
}

/// What an inode of `/proc` costs who holds it, with those above it and what is left of a process that has ended.
const PROC_BYTES: usize = 3072;

impl Kind {
    /// What an inode of this kind costs who holds it, if it is made for that.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Proc(_) => PROC_BYTES,
            _ => 0,
        }
    }
}

impl Node {
    /// `/proc` itself, of this namespace of process numbers.
    #[must_use]
    pub fn root(numbers: Option<Rc<Numbers>>) -> Self {
        Self { what: What::Root, above: None, numbers, process: None, space: None }
    }

    /// The directory above and the name there.
    #[must_use]
    pub fn above(&self) -> Option<(Rc<Inode>, Name)> {
        self.above.clone()
    }

    /// The process whose `/proc/PID` it is.
    #[must_use]
    pub fn process(&self) -> Option<&Weak<Process>> {
        self.process.as_ref()
    }

    /// Whether it is about a process.
    #[must_use]
    pub fn is_of_process(&self) -> bool {
        self.what.pid().is_some()
    }

    /// Whether it is in `/proc/sys`, or that.
    pub(in crate::fs) fn is_setting(&self) -> bool {
        let Some((above, name)) = &self.above else { return false };
        match &above.kind {
            Kind::Proc(above) if matches!(above.what, What::Root) => **name == *b"sys",
            Kind::Proc(above) => above.is_setting(),
            _ => false,
        }
    }

    /// Whether it is a link that leads to something rather than to a path.
    #[must_use]
    pub(in crate::fs) fn is_magic(&self) -> bool {
        matches!(self.what, What::SubjectLink(..) | What::Descriptor(..))
    }

    /// Whether who has opened it answers for what is written.
    pub(in crate::fs) fn is_owned(&self) -> bool {
        matches!(self.what, What::SubjectOwned(..))
    }

    /// What `pid` is called here; 0 is what is not seen.
    pub(super) fn shown(&self, pid: Pid) -> u32 {
        numbers::shown(self.numbers.as_ref(), pid)
    }

    /// What is called `number` here.
    pub(super) fn find(&self, number: u32) -> Option<Pid> {
        numbers::find(self.numbers.as_ref(), number)
    }

    /// The directory above.
    #[must_use]
    pub fn parent(&self) -> Option<Rc<Inode>> {
        Some(self.above()?.0)
    }

    /// `S_IFMT` part of the mode.
    #[must_use]
    pub fn file_type(&self) -> u32 {
        self.what.file_type()
    }
}
