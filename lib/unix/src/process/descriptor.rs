//! pidfd: a process with a descriptor, which no other can come to be mistaken for.

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::RefCell;

use linux_raw_sys::general as l;

use super::Process;
use crate::call::{Answer, Cx, Entry, Stop, full};
use crate::errno::Errno;
use crate::file::{Events, File, Open, Sink, Source};
use crate::fs::inode::{Inode, Kind};
use crate::wait::WaitQueue;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_pidfd_open, "pidfd_open", pidfd_open),
    full(l::__NR_pidfd_getfd, "pidfd_getfd", pidfd_getfd),
];

/// A process; weakly, since it may have been waited for, and may have itself open.
struct PidFile {
    process: RefCell<Weak<Process>>,
    inode: Rc<Inode>,
}

impl PidFile {
    /// The process, as long as it runs.
    fn running(&self) -> Option<Rc<Process>> {
        self.process
            .borrow()
            .upgrade()
            .filter(|process| process.ended.get().is_none() || process.state.lingers.get())
    }
}

impl File for PidFile {
    fn read(&self, _: &Cx, _: &Open, _: &mut Sink, _: u64) -> Result<usize, Stop> {
        Err(Errno::EINVAL.into())
    }

    fn write(&self, _: &Cx, _: &Open, _: &mut Source, _: u64) -> Result<usize, Stop> {
        Err(Errno::EINVAL.into())
    }

    fn poll(&self, _: &Cx) -> Events {
        if self.running().is_some() { Events::empty() } else { Events::READABLE }
    }

    fn watch(&self, _: &Cx, _: Events, visit: &mut dyn FnMut(&WaitQueue)) {
        if let Some(process) = self.running() {
            visit(&process.state.end_watched);
        }
    }

    fn inode(&self) -> Rc<Inode> {
        self.inode.clone()
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// The process of an open pidfd that has not been waited for.
///
/// # Errors
/// `EBADF` for another file, `ESRCH` for a process that is no more.
pub fn of(cx: &Cx, open: &Open) -> Result<Rc<Process>, Errno> {
    let file = open.file.as_any().downcast_ref::<PidFile>().ok_or(Errno::EBADF)?;
    let process = file.process.borrow().upgrade();
    known(cx, process)
}

/// The process if nobody has waited for it yet.
fn known(cx: &Cx, process: Option<Rc<Process>>) -> Result<Rc<Process>, Errno> {
    let process = process.ok_or(Errno::ESRCH)?;
    let known = cx.unix.processes.process(process.pid);
    known.filter(|known| Rc::ptr_eq(known, &process)).ok_or(Errno::ESRCH)
}

/// As [`of`], or that of an open directory `/proc/PID`.
///
/// # Errors
/// As [`of`].
pub fn of_any(cx: &Cx, open: &Open) -> Result<Rc<Process>, Errno> {
    match &open.file.inode().kind {
        Kind::Proc(node) => known(cx, node.process().ok_or(Errno::EBADF)?.upgrade()),
        _ => of(cx, open),
    }
}

/// A descriptor that waits for its process to be born (`CLONE_PIDFD`).
pub(super) struct Expecting {
    /// Its number.
    pub fd: u32,
    file: Rc<PidFile>,
}

impl Expecting {
    /// The process is born.
    pub(super) fn meet(&self, process: &Rc<Process>) {
        self.file.process.replace(Rc::downgrade(process));
    }
}

/// A new descriptor of a process that is yet to be born (`CLONE_PIDFD`).
///
/// # Errors
/// As `pidfd_open`.
pub(super) fn expecting(cx: &Cx) -> Result<Expecting, Errno> {
    let inode = cx.unix.fs.anonymous(cx, "[pidfd]")?;
    let file = Rc::new(PidFile { process: RefCell::default(), inode });
    let open = Open::new(cx, file.clone(), l::O_RDWR, Vec::new())?;
    Ok(Expecting { fd: cx.add_file(open, true)?, file })
}

/// `pidfd_getfd(pidfd, fd, 0)`.
fn pidfd_getfd(cx: &Cx) -> Answer {
    if cx.uint(2) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let process = of(cx, &*cx.file(cx.uint(0))?)?;
    crate::fs::check_close_look(cx, &process).map_err(|_| Errno::EPERM)?;
    let open = process.files.borrow().get(cx.uint(1)).ok_or(Errno::EBADF)?;
    Ok(cx.add_file(open, true)?.into())
}

/// `pidfd_open(pid, flags)`.
fn pidfd_open(cx: &Cx) -> Answer {
    let (pid, flags) = (cx.int(0), cx.uint(1));
    if flags & !l::O_NONBLOCK != 0 || pid <= 0 {
        return Err(Errno::EINVAL.into());
    }
    let Some(process) = cx.find_process(pid as u32) else {
        let is_thread = cx.find_thread(pid as u32).is_some();
        return Err(if is_thread { Errno::EINVAL } else { Errno::ESRCH }.into());
    };
    let inode = cx.unix.fs.anonymous(cx, "[pidfd]")?;
    let file = PidFile { process: RefCell::new(Rc::downgrade(&process)), inode };
    let open = Open::new(cx, Rc::new(file), l::O_RDWR | flags, Vec::new())?;
    Ok(cx.add_file(open, true)?.into())
}
