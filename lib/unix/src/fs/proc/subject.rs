//! The processes and threads that `/proc` shows, and what they are called there.

use alloc::rc::Rc;
use alloc::vec::Vec;

use super::Node;
use crate::call::Cx;
use crate::errno::Errno;
use crate::process::{Numbers, Pid, Process, numbers};
use crate::thread::Thread;

/// A process, as one of its threads shows it.
pub(in crate::fs) struct Subject {
    pub(super) process: Rc<Process>,
    /// The thread; none if it has ended and its process is a zombie.
    pub(super) thread: Option<Rc<Thread>>,
    pub(super) tid: Pid,
    /// Of the file system in which it is looked at.
    pub(super) numbers: Option<Rc<Numbers>>,
}

impl Subject {
    /// What `pid` is called there.
    pub(super) fn shown(&self, pid: Pid) -> u32 {
        numbers::shown(self.numbers.as_ref(), pid)
    }
}

pub(super) fn find_process(cx: &Cx, pid: Pid) -> Option<Rc<Process>> {
    cx.unix.processes.by_pid.borrow().get(&pid).cloned()
}

/// The process and thread that an inode is about.
pub(super) fn subject(cx: &Cx, node: &Node, pid: Pid, tid: Pid) -> Result<Subject, Errno> {
    let process = find_process(cx, pid).ok_or(Errno::ESRCH)?;
    let thread = process.threads.borrow().iter().find(|thread| thread.tid.get() == tid).cloned();
    if thread.is_none() && tid != pid {
        return Err(Errno::ESRCH);
    }
    Ok(Subject { process, thread, tid, numbers: node.numbers.clone() })
}

/// The numbers of a process's threads.
pub(super) fn threads(cx: &Cx, node: &Node, pid: Pid) -> Vec<u32> {
    let Some(process) = find_process(cx, pid) else { return Vec::new() };
    let mut threads: Vec<_> =
        process.threads.borrow().iter().map(|one| node.shown(one.tid.get())).collect();
    threads.sort_unstable();
    threads
}

/// The first process with this number or a larger one.
pub(super) fn next_process(cx: &Cx, node: &Node, mut from: u32) -> Option<u32> {
    let processes = cx.unix.processes.by_pid.borrow();
    let Some(space) = &node.numbers else {
        return processes.range(Pid::from_first(from)..).next().map(|(pid, _)| pid.first());
    };
    loop {
        let (number, pid) = space.next(from)?;
        if processes.contains_key(&pid) {
            return Some(number);
        }
        from = number + 1;
    }
}
