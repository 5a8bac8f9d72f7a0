//! Ids of processes, threads, groups and sessions as the server knows them, and as a program sees them.
//!
//! The two are two types: a [`Pid`] is unique in the server; what a program says or is told is a plain
//! number, which means something in one namespace only ([`super::numbers`]). In the first namespace, where most
//! are, it is the same number.

use alloc::rc::Rc;

use super::Process;
use super::numbers::{self, Numbers};
use crate::call::Cx;
use crate::errno::Errno;
use crate::thread::Thread;

/// An id, of whatever kind. 0 is none.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pid(u32);

impl Pid {
    /// Nobody.
    pub const NONE: Self = Self(0);
    /// Process 1.
    pub const FIRST: Self = Self(1);

    /// The id that has this number in the first namespace.
    #[must_use]
    pub const fn from_first(number: u32) -> Self {
        Self(number)
    }

    /// Its number in the first namespace: for the operator, and for what is recorded of all alike.
    #[must_use]
    pub const fn first(self) -> u32 {
        self.0
    }

    /// Whether it is somebody's.
    #[must_use]
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }
}

impl Cx<'_> {
    /// The id that the caller calls `number`.
    #[must_use]
    pub fn pid(&self, number: u32) -> Option<Pid> {
        numbers::find(self.numbers(), number)
    }

    /// As [`Self::pid`], of an argument.
    ///
    /// # Errors
    /// `ESRCH`.
    pub fn pid_of(&self, number: i32) -> Result<Pid, Errno> {
        let number = u32::try_from(number).map_err(|_| Errno::ESRCH)?;
        self.pid(number).ok_or(Errno::ESRCH)
    }

    /// What the caller calls `pid`; 0 is what it does not see.
    #[must_use]
    pub fn shown(&self, pid: Pid) -> u32 {
        numbers::shown(self.numbers(), pid)
    }

    /// The caller's namespace of numbers; none is the first.
    #[must_use]
    pub fn numbers(&self) -> Option<&Rc<Numbers>> {
        self.process.state.numbers.as_ref()
    }

    /// The process that the caller calls `number`, ended ones not yet waited for included.
    #[must_use]
    pub fn find_process(&self, number: u32) -> Option<Rc<Process>> {
        self.unix.processes.process(self.pid(number)?)
    }

    /// The thread that the caller calls `number`.
    #[must_use]
    pub fn find_thread(&self, number: u32) -> Option<Rc<Thread>> {
        self.unix.processes.thread(self.pid(number)?)
    }
}

impl Process {
    /// What it calls `pid`; 0 is what it does not see.
    #[must_use]
    pub fn sees(&self, pid: Pid) -> u32 {
        numbers::shown(self.state.numbers.as_ref(), pid)
    }
}
