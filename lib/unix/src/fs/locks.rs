//! Locks on files: POSIX record locks (of a process), open-file-description locks, and
//! `flock`.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use linux_raw_sys::general as linux;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::inode::Inode;
use super::lease::Leases;
use super::lock_holders::Held;
use super::lock_records::{RECORD_BYTES, Record, Records};
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::Open;
use crate::process::Pid;
use crate::room::Room;
use crate::unix::Unix;
use crate::wait::WaitQueue;

/// Who holds a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// A process.
    Process(Pid),
    /// An open file description, known by its address.
    Description(usize),
}

fn description(open: &Open) -> Owner {
    Owner::Description(core::ptr::from_ref(open) as usize)
}

#[derive(Default)]
struct State {
    records: Records,
    /// The processes that have some of them.
    holders: Vec<Held>,
    /// `flock`: owner and whether it is exclusive.
    whole: Vec<(Owner, bool)>,
    queue: WaitQueue,
}

impl State {
    /// `owner` is no holder any more if it has no record.
    fn settle(&mut self, owner: Owner) {
        if !self.records.has(owner) {
            self.holders.retain(|held| Owner::Process(held.pid()) != owner);
            self.holders.trim();
        }
    }

    /// Process `pid` has a record.
    fn holds(&mut self, cx: &Cx, pid: Pid, inode: &Rc<Inode>) {
        if !self.holders.iter().any(|held| held.pid() == pid) {
            self.holders.push(cx.unix.fs.holders.add(pid, inode));
        }
    }
}

/// The locks on one inode.
#[derive(Default)]
pub struct Locks {
    state: RefCell<Option<Box<State>>>,
    pub(super) leases: Leases,
}

impl Locks {
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(self.state.borrow_mut().get_or_insert_default())
    }

    /// Everything that `owner` holds ends.
    fn release(&self, owner: Owner) {
        let mut present = self.state.borrow_mut();
        let Some(state) = present.as_mut() else { return };
        state.records.release(owner);
        state.settle(owner);
        state.whole.retain(|(holder, _)| *holder != owner);
        state.whole.trim();
        state.queue.wake_all();
        if state.records.is_empty() && state.whole.is_empty() && state.queue.is_empty() {
            *present = None;
        }
    }

    /// An open file description is gone.
    pub fn description_closed(&self, open: &Open) {
        self.release(description(open));
        self.leases.closed(open);
    }

    /// A process closed a descriptor of the file, or ended.
    pub fn process_closed(&self, pid: Pid) {
        self.release(Owner::Process(pid));
    }
}

/// `struct flock`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Flock {
    kind: i16,
    whence: i16,
    pad: u32,
    start: i64,
    len: i64,
    pid: i32,
    pad_end: u32,
}

impl Flock {
    /// First and last byte.
    fn range(&self, open: &Open) -> Result<(u64, u64), Errno> {
        let base = match self.whence as u32 {
            linux::SEEK_SET => 0,
            linux::SEEK_CUR => open.position.get() as i64,
            linux::SEEK_END => open.file.size() as i64,
            _ => return Err(Errno::EINVAL),
        };
        let start = base.checked_add(self.start).ok_or(Errno::EOVERFLOW)?;
        let (first, last) = match self.len {
            0 => (start, i64::MAX),
            1.. => (start, start.checked_add(self.len - 1).ok_or(Errno::EOVERFLOW)?),
            _ => (start.checked_add(self.len).ok_or(Errno::EINVAL)?, start - 1),
        };
        let first = u64::try_from(first).map_err(|_| Errno::EINVAL)?;
        Ok((first, u64::try_from(last).map_err(|_| Errno::EINVAL)?))
    }

    fn record(&self, open: &Open, owner: Owner, payer: u32) -> Result<Record, Errno> {
        let (start, end) = self.range(open)?;
        let exclusive = match self.kind as u32 {
            linux::F_RDLCK | linux::F_UNLCK => false,
            linux::F_WRLCK => true,
            _ => return Err(Errno::EINVAL),
        };
        Ok(Record { start, end, exclusive, owner, payer })
    }
}

/// `fcntl`'s commands on locks; `argument` is the address of a `struct flock`.
///
/// # Errors
/// As `fcntl(2)`.
pub fn fcntl_lock(cx: &Cx, open: &Open, command: u32, argument: u64) -> Answer {
    cx.unix.fs.stops_waiting(cx.thread.tid.get());
    let flock: Flock = cx.user().read(argument)?;
    let of_description =
        matches!(command, linux::F_OFD_GETLK | linux::F_OFD_SETLK | linux::F_OFD_SETLKW);
    if of_description && flock.pid != 0 {
        return Err(Errno::EINVAL.into());
    }
    let owner = if of_description { description(open) } else { Owner::Process(cx.process.pid) };
    let record = flock.record(open, owner, cx.process.user().uid)?;
    let inode = open.file.inode();
    match command {
        linux::F_GETLK | linux::F_OFD_GETLK => get(cx, &inode, argument, flock, record),
        linux::F_SETLK | linux::F_OFD_SETLK => set(cx, open, &inode, flock, record, false),
        linux::F_SETLKW | linux::F_OFD_SETLKW => set(cx, open, &inode, flock, record, true),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn get(cx: &Cx, inode: &Inode, argument: u64, flock: Flock, record: Record) -> Answer {
    if flock.kind as u32 == linux::F_UNLCK {
        return Err(Errno::EINVAL.into());
    }
    let holder = inode.locks.with(|state| state.records.in_the_way(&record));
    let answer = match holder {
        None => Flock { kind: linux::F_UNLCK as i16, ..flock },
        Some(held) => Flock {
            kind: if held.exclusive { linux::F_WRLCK } else { linux::F_RDLCK } as i16,
            whence: linux::SEEK_SET as i16,
            start: held.start as i64,
            len: if held.end == i64::MAX as u64 { 0 } else { (held.end - held.start + 1) as i64 },
            pid: match held.owner {
                Owner::Process(pid) => cx.shown(pid) as i32,
                Owner::Description(_) => -1,
            },
            ..flock
        },
    };
    cx.user().write(argument, &answer)?;
    Ok(0)
}

fn set(
    cx: &Cx,
    open: &Open,
    inode: &Rc<Inode>,
    flock: Flock,
    record: Record,
    waits: bool,
) -> Answer {
    let kind = flock.kind as u32;
    if kind == linux::F_RDLCK && !open.can_read() || kind == linux::F_WRLCK && !open.can_write() {
        return Err(Errno::EBADF.into());
    }
    let holder = inode.locks.with(|state| {
        if kind == linux::F_UNLCK {
            state.records.change(cx, record, None)?;
            state.settle(record.owner);
        } else if let Some(held) = state.records.in_the_way(&record) {
            return Ok(Some(held.owner));
        } else {
            state.records.change(cx, record, Some(record))?;
            if let Owner::Process(pid) = record.owner {
                state.holds(cx, pid, inode);
            }
        }
        state.queue.wake_all();
        Ok::<_, Errno>(None)
    })?;
    match holder {
        None => Ok(0),
        Some(_) if !waits => Err(Errno::EAGAIN.into()),
        Some(holder) => wait(cx, inode, record.owner, holder),
    }
}

/// Waits for `holder`, unless that would never end.
fn wait(cx: &Cx, inode: &Inode, owner: Owner, holder: Owner) -> Answer {
    if let (Owner::Process(pid), Owner::Process(holder)) = (owner, holder) {
        if cx.unix.fs.would_deadlock(cx.unix, pid, holder) {
            return Err(Errno::EDEADLK.into());
        }
        cx.unix.fs.starts_waiting(cx.thread.tid.get(), pid, holder);
    }
    Err(inode.locks.with(|state| cx.block_on(&state.queue)))
}

/// Which processes wait for locks of which others.
#[derive(Default)]
pub(super) struct Waiting {
    /// Thread, its process, the process it waits for.
    edges: Vec<(Pid, Pid, Pid)>,
}

impl Waiting {
    pub(super) fn add(&mut self, tid: Pid, pid: Pid, holder: Pid) {
        self.remove(tid);
        self.edges.push((tid, pid, holder));
    }

    pub(super) fn remove(&mut self, tid: Pid) {
        self.edges.retain(|edge| edge.0 != tid);
    }

    /// Whether `holder` waits, over any number of others, for `pid`. Edges of calls that
    /// have ended since are dropped.
    pub(super) fn leads_to(&mut self, unix: &Unix, pid: Pid, holder: Pid) -> bool {
        self.edges.retain(|edge| {
            let thread = unix.processes.by_tid.borrow().get(&edge.0).cloned();
            thread.is_some_and(|thread| {
                thread.is_in_call()
                    && thread.retried.get()
                    && thread.number.get() == linux::__NR_fcntl
            })
        });
        let mut reached = alloc::vec![holder];
        let mut at = 0;
        while let Some(holder) = reached.get(at).copied() {
            if holder == pid {
                return true;
            }
            for edge in self.edges.iter().filter(|edge| edge.1 == holder) {
                if !reached.contains(&edge.2) {
                    reached.push(edge.2);
                }
            }
            at += 1;
        }
        false
    }
}

/// `flock(fd, operation)`.
pub(super) fn flock(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let operation = cx.uint(1) & !linux::LOCK_NB;
    let exclusive = operation == linux::LOCK_EX;
    if !exclusive && operation != linux::LOCK_SH && operation != linux::LOCK_UN {
        return Err(Errno::EINVAL.into());
    }
    let owner = description(&open);
    cx.check_heap(RECORD_BYTES as usize).map_err(|_| Errno::ENOLCK)?;
    open.file.inode().locks.with(|state| {
        let others = |held: &&(Owner, bool)| held.0 != owner && (exclusive || held.1);
        let blocked = operation != linux::LOCK_UN && state.whole.iter().any(|held| others(&held));
        // A lock that is changed is given up first, even if the new one has to wait.
        let before = state.whole.len();
        state.whole.retain(|held| held.0 != owner);
        if state.whole.len() != before {
            state.queue.wake_all();
        }
        if blocked {
            let again = cx.uint(1) & linux::LOCK_NB != 0;
            return Err(if again { Errno::EAGAIN.into() } else { cx.block_on(&state.queue) });
        }
        if operation != linux::LOCK_UN {
            state.whole.push((owner, exclusive));
        }
        Ok::<u64, Stop>(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flock_is_laid_out_as_linux_has_it() {
        assert_eq!(size_of::<Flock>(), size_of::<linux::flock>());
        assert_eq!(
            core::mem::offset_of!(Flock, start),
            core::mem::offset_of!(linux::flock, l_start)
        );
        assert_eq!(core::mem::offset_of!(Flock, pid), core::mem::offset_of!(linux::flock, l_pid));
    }
}
