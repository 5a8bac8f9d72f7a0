//! Leases on files (`F_SETLEASE`): who has one is told before somebody else opens the file in a way
//! that conflicts, and has some time to get ready for that.

use alloc::boxed::Box;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;

use super::inode::Inode;
use crate::account::Charge;
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::{News, Open};
use crate::room::Room;
use crate::wait::WaitQueue;

/// What a lease costs.
const BYTES: usize = 256;
/// Seconds that its holder has, at first (`lease-break-time`).
pub const BREAK_SECONDS: u64 = 45;

/// A lease.
struct Lease {
    open: Weak<Open>,
    fd: u32,
    /// `F_RDLCK` or `F_WRLCK`.
    kind: u32,
    /// Somebody wants the file: what it has to become, and until when.
    breaking: Option<(u32, u64)>,
    _charge: Charge,
}

/// The leases on a file, and who has it open.
#[derive(Default)]
pub struct Leases {
    /// Open file descriptions of the file.
    opened: Cell<u32>,
    list: RefCell<Option<Box<List>>>,
}

#[derive(Default)]
struct List {
    leases: Vec<Lease>,
    /// Who waits for them to be given up.
    queue: WaitQueue,
}

impl List {
    fn of<'a>(&'a mut self, open: &'a Open) -> Option<&'a mut Lease> {
        self.leases.iter_mut().find(|lease| core::ptr::eq(lease.open.as_ptr(), open))
    }
}

impl Leases {
    /// One more has the file open, or one less.
    pub(super) fn count(&self, more: bool) {
        let opened = self.opened.get();
        self.opened.set(if more { opened + 1 } else { opened.saturating_sub(1) });
    }

    /// An open file description is gone, and its lease.
    pub(super) fn closed(&self, open: &Open) {
        if self.list.borrow().is_some() {
            self.give_up(open);
        }
    }

    /// Gives the lease of `open` up; whether there was one.
    fn give_up(&self, open: &Open) -> bool {
        let mut list = self.list.borrow_mut();
        let Some(some) = list.as_mut() else { return false };
        let before = some.leases.len();
        some.leases.retain(|lease| !core::ptr::eq(lease.open.as_ptr(), open));
        some.leases.trim();
        let less = some.leases.len() != before;
        if less {
            some.queue.wake_all();
        }
        if some.leases.is_empty() {
            *list = None;
        }
        less
    }

    /// The file is opened, for writing or not: who has a lease that conflicts is told, and the call
    /// waits for it, or for the end of its time.
    ///
    /// # Errors
    /// `EWOULDBLOCK` for who does not wait.
    #[inline(always)]
    pub(super) fn break_for(&self, cx: &Cx, writes: bool, waits: bool) -> Result<(), Stop> {
        if self.list.borrow().is_none() {
            return Ok(());
        }
        self.do_break(cx, writes, waits)
    }

    #[cold]
    #[inline(never)]
    fn do_break(&self, cx: &Cx, writes: bool, waits: bool) -> Result<(), Stop> {
        let now_ns = cx.unix.machine.now_ns();
        let until_ns = match cx.unix.fs.lease_seconds.get() {
            0 => u64::MAX,
            seconds => now_ns.saturating_add(seconds.saturating_mul(1_000_000_000)),
        };
        let mut list = self.list.borrow_mut();
        let Some(some) = list.as_mut() else { return Ok(()) };
        let wanted = if writes { l::F_UNLCK } else { l::F_RDLCK };
        let mut first_end = None;
        for lease in &mut some.leases {
            if let Some((to, end_ns)) = lease.breaking
                && end_ns <= now_ns
            {
                // Its time is over, whatever its holder says.
                (lease.kind, lease.breaking) = (to, None);
            }
            if lease.kind == l::F_UNLCK || lease.kind == l::F_RDLCK && !writes {
                continue;
            }
            let end_ns = match lease.breaking {
                Some((to, end_ns)) if to == l::F_UNLCK || to == wanted => end_ns,
                known => {
                    let end_ns = known.map_or(until_ns, |(_, end_ns)| end_ns);
                    lease.breaking = Some((wanted, end_ns));
                    if let Some(open) = lease.open.upgrade() {
                        open.tell(cx.unix, News::MESSAGE, lease.fd);
                    }
                    end_ns
                }
            };
            first_end = Some(first_end.unwrap_or(u64::MAX).min(end_ns));
        }
        some.leases.retain(|lease| lease.kind != l::F_UNLCK);
        some.leases.trim();
        let Some(end_ns) = first_end else {
            if some.leases.is_empty() {
                *list = None;
            }
            return Ok(());
        };
        if !waits {
            return Err(Errno::EAGAIN.into());
        }
        cx.thread.deadline_ns.set(Some(end_ns).filter(|end_ns| *end_ns != u64::MAX));
        Err(cx.block_on(&some.queue))
    }
}

/// `fcntl(fd, F_SETLEASE, kind)`.
pub(super) fn set(cx: &Cx, open: &Rc<Open>, kind: u32) -> Answer {
    let inode = open.file.inode();
    let who = cx.process.credentials.borrow();
    if who.fsuid != inode.uid.get() && !who.may(l::CAP_LEASE) {
        return Err(Errno::EACCES.into());
    }
    drop(who);
    if !inode.is_regular() {
        return Err(Errno::EINVAL.into());
    }
    let leases = &inode.locks.leases;
    match kind {
        l::F_UNLCK if leases.give_up(open) => return Ok(0),
        l::F_UNLCK => return Err(Errno::EAGAIN.into()),
        l::F_RDLCK | l::F_WRLCK => {}
        _ => return Err(Errno::EINVAL.into()),
    }
    take(cx, &inode, open, kind)?;
    open.set_owner_if_none(cx);
    Ok(0)
}

fn take(cx: &Cx, inode: &Inode, open: &Rc<Open>, kind: u32) -> Result<(), Errno> {
    let leases = &inode.locks.leases;
    let in_use = match kind {
        l::F_RDLCK => inode.is_written(),
        _ => leases.opened.get() > 1,
    };
    if in_use {
        return Err(Errno::EAGAIN);
    }
    let charge = cx.pay(BYTES)?;
    let mut list = leases.list.borrow_mut();
    let some = list.get_or_insert_default();
    let breaks = some.leases.iter().any(|lease| lease.breaking.is_some());
    match some.of(open) {
        Some(own) => match own.breaking {
            // It may go down, not up.
            Some(_) if kind == l::F_WRLCK => return Err(Errno::EAGAIN),
            Some((l::F_UNLCK, _)) => return Err(Errno::EAGAIN),
            _ => (own.kind, own.breaking, own.fd) = (kind, None, cx.uint(0)),
        },
        None if breaks => return Err(Errno::EAGAIN),
        None => {
            some.leases.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
            let (open, fd) = (Rc::downgrade(open), cx.uint(0));
            some.leases.push(Lease { open, fd, kind, breaking: None, _charge: charge });
        }
    }
    some.queue.wake_all();
    Ok(())
}

/// `fcntl(fd, F_GETLEASE)`: what it is, or has to become.
pub(super) fn get(open: &Open) -> u32 {
    let inode = open.file.inode();
    let mut list = inode.locks.leases.list.borrow_mut();
    let own = list.as_mut().and_then(|some| some.of(open).map(|own| (own.kind, own.breaking)));
    own.map_or(l::F_UNLCK, |(kind, breaking)| breaking.map_or(kind, |(to, _)| to))
}

/// `fcntl`'s commands on leases.
pub fn fcntl_lease(cx: &Cx, open: &Rc<Open>, command: u32, argument: u64) -> Answer {
    match command {
        l::F_SETLEASE => set(cx, open, argument as u32),
        _ => Ok(get(open).into()),
    }
}
