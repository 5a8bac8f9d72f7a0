//! `F_NOTIFY`: a signal when something happens in a directory.

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;

use super::Open;
use super::owner::News;
use crate::account::Charge;
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::fs::events::{Event, Watcher};
use crate::fs::inode::Inode;
use crate::process::Pid;
use crate::unix::Unix;
use crate::wait::{Later, RunQueue};

/// What one costs.
const BYTES: usize = 256;
/// What can be asked for.
const KNOWN: u32 =
    l::DN_ACCESS | l::DN_MODIFY | l::DN_CREATE | l::DN_DELETE | l::DN_RENAME | l::DN_ATTRIB;

/// Those of an open file description, with the processes that asked for them.
pub(super) type Notices = RefCell<Vec<Rc<Notice>>>;

/// What a process wants to know of a directory.
pub(super) struct Notice {
    open: Weak<Open>,
    inode: Rc<Inode>,
    pid: Pid,
    fd: Cell<u32>,
    /// `DN_*`; 0 once it has been told, unless it is `DN_MULTISHOT`.
    mask: Cell<u32>,
    /// Of the last name that was moved away.
    cookie: Cell<u32>,
    due: Cell<bool>,
    run_queue: Rc<RunQueue>,
    this: Weak<Self>,
    _charge: Charge,
}

impl Watcher for Notice {
    fn tell(&self, _: Option<&Unix>, event: &Event) {
        let happened = |mask: u32| event.mask & mask != 0;
        let mut what = 0;
        for (mask, notice) in [
            (l::IN_ACCESS, l::DN_ACCESS),
            (l::IN_MODIFY, l::DN_MODIFY),
            (l::IN_ATTRIB, l::DN_ATTRIB),
            (l::IN_CREATE | l::IN_MOVED_TO, l::DN_CREATE),
            (l::IN_DELETE | l::IN_MOVED_FROM, l::DN_DELETE),
        ] {
            if happened(mask) {
                what |= notice;
            }
        }
        if happened(l::IN_MOVED_FROM) {
            self.cookie.set(event.cookie);
        } else if happened(l::IN_MOVED_TO) && self.cookie.get() == event.cookie {
            what |= l::DN_RENAME;
        }
        let mask = self.mask.get();
        if what & mask == 0 {
            return;
        }
        if mask & l::DN_MULTISHOT == 0 {
            self.mask.set(0);
        }
        if let Some(this) = self.this.upgrade().filter(|_| !self.due.replace(true)) {
            self.run_queue.later(this);
        }
    }

    fn gone(&self) {
        self.mask.set(0);
    }
}

impl Later for Notice {
    fn run(&self, unix: &Unix) {
        self.due.set(false);
        let Some(open) = self.open.upgrade() else { return };
        open.tell(unix, News::MESSAGE, self.fd.get());
        if self.mask.get() == 0 {
            forget(&open, |notice| core::ptr::eq(notice, self));
        }
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        self.inode.unwatch((&raw const *self).cast());
    }
}

fn forget(open: &Open, which: impl Fn(&Notice) -> bool) {
    let Some(told) = open.told.get() else { return };
    let mut notices = told.notices.borrow_mut();
    let all = core::mem::take(&mut *notices);
    let (gone, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(|notice| which(notice));
    *notices = kept;
    drop(notices);
    drop(gone);
}

/// A process has closed a descriptor of `open`: it wants to know no more.
pub(crate) fn closed(open: &Open, pid: Pid) {
    if open.told.get().is_some() {
        forget(open, |notice| notice.pid == pid);
    }
}

/// `fcntl(fd, F_NOTIFY, mask)`.
pub(super) fn set(cx: &Cx, open: &Rc<Open>, fd: u32, mask: u32) -> Answer {
    let pid = cx.process.pid;
    if mask & KNOWN == 0 {
        forget(open, |notice| notice.pid == pid);
        return Ok(0);
    }
    let inode = open.file.inode();
    if !inode.is_directory() {
        return Err(Errno::ENOTDIR.into());
    }
    let mask = mask & (KNOWN | l::DN_MULTISHOT);
    let notices = &open.told().notices;
    let own = notices.borrow().iter().find(|notice| notice.pid == pid).cloned();
    if let Some(own) = own {
        own.mask.set(own.mask.get() | mask);
        own.fd.set(fd);
        return Ok(0);
    }
    let charge = cx.pay(BYTES)?;
    let notice = Rc::new_cyclic(|this| Notice {
        open: Rc::downgrade(open),
        inode: inode.clone(),
        pid,
        fd: Cell::new(fd),
        mask: Cell::new(mask),
        cookie: Cell::new(0),
        due: Cell::new(false),
        run_queue: cx.unix.run_queue.clone(),
        this: this.clone(),
        _charge: charge,
    });
    let weak: Weak<dyn Watcher> = notice.this.clone();
    inode.watch(weak);
    notices.borrow_mut().push(notice);
    open.set_owner_if_none(cx);
    Ok(0)
}
