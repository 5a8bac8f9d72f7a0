//! epoll: a set of files and what is wanted of them, which remembers who may be ready.
//!
//! Every entry listens to its file's queues. When one is woken the entry goes onto the
//! ready list, and whoever waits looks what the file says then; an entry stays on the
//! list as long as its file is ready, unless it is edge-triggered.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general::{EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, O_RDWR};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::poll::{is_over, read_timespec, set_timeout};
use crate::account::Charge;
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::{Events, File, Open, Sink, Source};
use crate::fs::inode::Inode;
use crate::room::Room;
use crate::signal::{OnSignal, mask};
use crate::wait::{Listener, Listening, WaitQueue};
use crate::weak_list::WeakList;

mod nesting;

const EPOLLEXCLUSIVE: u32 = 1 << 28;
const EPOLLWAKEUP: u32 = 1 << 29;
const EPOLLONESHOT: u32 = 1 << 30;
const EPOLLET: u32 = 1 << 31;
/// The bits that are not readiness.
const OPTIONS: u32 = EPOLLEXCLUSIVE | EPOLLWAKEUP | EPOLLONESHOT | EPOLLET;

/// `struct epoll_event`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C, packed)]
struct Event {
    events: u32,
    data: u64,
}

/// Who may be ready.
#[derive(Default)]
struct Ready {
    list: RefCell<VecDeque<Weak<Item>>>,
    queue: WaitQueue,
}

/// An entry.
struct Item {
    open: Weak<Open>,
    events: Cell<u32>,
    data: u64,
    listed: Cell<bool>,
    ready: Weak<Ready>,
    this: Weak<Item>,
    heard: RefCell<Vec<Listening>>,
    /// What it costs.
    _charge: Charge,
}

/// What an entry costs.
const ITEM_BYTES: usize = 480;

impl Listener for Item {
    fn notify(&self, enough: bool) -> bool {
        let Some(ready) = self.ready.upgrade() else { return false };
        let exclusive = self.events.get() & EPOLLEXCLUSIVE != 0;
        if exclusive && enough {
            return false;
        }
        let woke = if self.listed.replace(true) {
            // Whoever listens to this epoll knows already.
            ready.queue.wake_waiters()
        } else {
            ready.list.borrow_mut().push_back(self.this.clone());
            ready.queue.wake_everybody()
        };
        exclusive && woke
    }
}

impl Item {
    /// What is to be reported now.
    fn look(&self, cx: &Cx) -> Events {
        let wanted = Events::from_bits_retain(self.events.get() & !OPTIONS);
        match self.open.upgrade() {
            Some(open) if !wanted.is_empty() => open.file.poll(cx) & wanted,
            _ => Events::empty(),
        }
    }
}

/// Entries by descriptor and description.
type Items = BTreeMap<(u32, usize), Rc<Item>>;

/// An epoll file.
pub struct Epoll {
    items: RefCell<Items>,
    /// Entries of closed files are looked for when there are so many.
    prune_at: Cell<usize>,
    ready: Rc<Ready>,
    /// The epolls that it is in, once for each entry.
    holders: WeakList<Epoll>,
    this: Weak<Epoll>,
    inode: Rc<Inode>,
}

impl Epoll {
    /// Adds an entry (or replaces it).
    fn insert(&self, cx: &Cx, fd: u32, open: &Rc<Open>, event: Event) -> Result<(), Errno> {
        let charge = cx.pay(ITEM_BYTES).map_err(|_| Errno::ENOSPC)?;
        self.prune();
        let always = (Events::ERR | Events::HUP).bits();
        let events = event.events | always;
        let item = Rc::new_cyclic(|this| Item {
            open: Rc::downgrade(open),
            events: Cell::new(events),
            data: event.data,
            listed: Cell::new(false),
            ready: Rc::downgrade(&self.ready),
            this: this.clone(),
            heard: RefCell::default(),
            _charge: charge,
        });
        let interest = Events::from_bits_retain(events & !OPTIONS);
        let listener: Weak<dyn Listener> = item.this.clone();
        *item.heard.borrow_mut() = open.file.listen(cx, interest, &listener);
        let old = self.items.borrow_mut().insert(key(fd, open), item.clone());
        drop(old);
        if !item.look(cx).is_empty() {
            item.notify(false);
        }
        Ok(())
    }

    /// Drops what is left of entries on the list, which holds their memory.
    fn prune_list(&self) {
        let items = self.items.borrow().len();
        let mut list = self.ready.list.borrow_mut();
        if list.capacity() > 2 * items + 16 {
            list.retain(|item| item.strong_count() > 0);
            list.shrink();
        }
    }

    /// Drops the entries of files that were closed, and what is left of entries.
    fn prune(&self) {
        self.prune_list();
        if self.items.borrow().len() < self.prune_at.get() {
            return;
        }
        let all = self.items.take();
        let (keep, gone): (Items, Items) =
            all.into_iter().partition(|(_, item)| item.open.strong_count() > 0);
        self.prune_at.set(2 * keep.len() + 16);
        *self.items.borrow_mut() = keep;
        drop(gone);
    }

    /// Writes up to `max` events to `address`; how many.
    fn collect(&self, cx: &Cx, address: u64, max: usize) -> Result<usize, Errno> {
        let mut found = 0;
        let listed = self.ready.list.borrow().len();
        for _ in 0..listed {
            if found == max {
                break;
            }
            let Some(weak) = self.ready.list.borrow_mut().pop_front() else { break };
            let Some(item) = weak.upgrade() else { continue };
            item.listed.set(false);
            let events = item.look(cx);
            if events.is_empty() {
                continue;
            }
            let event = Event { events: events.bits(), data: item.data };
            let place = address.wrapping_add((found * size_of::<Event>()) as u64);
            if let Err(errno) = cx.user().write(place, &event) {
                item.listed.set(true);
                self.ready.list.borrow_mut().push_front(weak);
                return if found > 0 { Ok(found) } else { Err(errno) };
            }
            found += 1;
            let options = item.events.get() & OPTIONS;
            if options & EPOLLONESHOT != 0 {
                item.events.set(options);
            } else if options & EPOLLET == 0 && !item.listed.replace(true) {
                self.ready.list.borrow_mut().push_back(weak);
            }
        }
        Ok(found)
    }
}

/// How an entry is found.
fn key(fd: u32, open: &Rc<Open>) -> (u32, usize) {
    (fd, Rc::as_ptr(open) as usize)
}

/// The epoll that an open file is.
fn of(open: &Open) -> Option<&Epoll> {
    open.file.as_any().downcast_ref::<Epoll>()
}

impl File for Epoll {
    fn read(&self, _: &Cx, _: &Open, _: &mut Sink, _: u64) -> Result<usize, Stop> {
        Err(Errno::EINVAL.into())
    }

    fn write(&self, _: &Cx, _: &Open, _: &mut Source, _: u64) -> Result<usize, Stop> {
        Err(Errno::EINVAL.into())
    }

    fn poll(&self, cx: &Cx) -> Events {
        // Entries that are not ready leave the list, so that nobody looks at them twice.
        let listed = self.ready.list.borrow().len();
        for _ in 0..listed {
            let Some(weak) = self.ready.list.borrow_mut().pop_front() else { break };
            let Some(item) = weak.upgrade() else { continue };
            item.listed.set(false);
            if !item.look(cx).is_empty() {
                item.listed.set(true);
                self.ready.list.borrow_mut().push_front(weak);
                return Events::READABLE;
            }
        }
        Events::empty()
    }

    fn watch(&self, _cx: &Cx, _interest: Events, visit: &mut dyn FnMut(&WaitQueue)) {
        visit(&self.ready.queue);
    }

    fn inode(&self) -> Rc<Inode> {
        self.inode.clone()
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// `epoll_create(size)`.
pub(super) fn epoll_create(cx: &Cx) -> Answer {
    if cx.int(0) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    create(cx, 0)
}

/// `epoll_create1(flags)`.
pub(super) fn epoll_create1(cx: &Cx) -> Answer {
    create(cx, cx.uint(0))
}

fn create(cx: &Cx, flags: u32) -> Answer {
    if flags & !EPOLL_CLOEXEC != 0 {
        return Err(Errno::EINVAL.into());
    }
    let inode = cx.unix.fs.anonymous(cx, "[eventpoll]")?;
    let epoll = Rc::new_cyclic(|this| Epoll {
        items: RefCell::default(),
        prune_at: Cell::new(16),
        ready: Rc::default(),
        holders: WeakList::default(),
        this: this.clone(),
        inode,
    });
    let open = Open::new(cx, epoll, O_RDWR, Vec::new())?;
    Ok(cx.add_file(open, flags & EPOLL_CLOEXEC != 0)?.into())
}

/// `epoll_ctl(epoll, operation, fd, event)`.
pub(super) fn epoll_ctl(cx: &Cx) -> Answer {
    let (operation, fd) = (cx.uint(1), cx.uint(2));
    let event = match operation {
        EPOLL_CTL_DEL => Event { events: 0, data: 0 },
        _ => cx.user().read::<Event>(cx.arg(3))?,
    };
    let holder = cx.file(cx.uint(0))?;
    let open = cx.file(fd)?;
    if !open.file.can_wait() {
        return Err(Errno::EPERM.into());
    }
    let Some(epoll) = of(&holder).filter(|_| !Rc::ptr_eq(&holder.file, &open.file)) else {
        return Err(Errno::EINVAL.into());
    };
    let key = key(fd, &open);
    let is_there = epoll.items.borrow().contains_key(&key);
    match operation {
        EPOLL_CTL_ADD if is_there => Err(Errno::EEXIST.into()),
        EPOLL_CTL_ADD => {
            check_options(&event, &open)?;
            if let Some(inner) = of(&open) {
                inner.enter(epoll)?;
            }
            epoll.insert(cx, fd, &open, event).inspect_err(|_| nesting::left(&open, epoll))?;
            Ok(0)
        }
        EPOLL_CTL_MOD | EPOLL_CTL_DEL if !is_there => Err(Errno::ENOENT.into()),
        EPOLL_CTL_MOD if event.events & EPOLLEXCLUSIVE != 0 => Err(Errno::EINVAL.into()),
        EPOLL_CTL_MOD => {
            epoll.insert(cx, fd, &open, event)?;
            Ok(0)
        }
        EPOLL_CTL_DEL => {
            let item = epoll.items.borrow_mut().remove(&key);
            drop(item);
            epoll.prune_list();
            nesting::left(&open, epoll);
            Ok(0)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

/// `EPOLLEXCLUSIVE` goes with few others and with no epoll.
fn check_options(event: &Event, open: &Open) -> Result<(), Errno> {
    let events = event.events;
    let readiness = Events::IN | Events::OUT | Events::ERR | Events::HUP;
    let allowed = readiness.bits() | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE;
    let exclusive = events & EPOLLEXCLUSIVE != 0;
    if exclusive && (events & !allowed != 0 || of(open).is_some()) {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

/// `epoll_wait(epoll, events, max, timeout_ms)`.
pub(super) fn epoll_wait(cx: &Cx) -> Answer {
    wait(cx, u64::try_from(cx.int(3)).ok().map(|ms| ms * 1_000_000))
}

/// `epoll_pwait(epoll, events, max, timeout_ms, mask, size)`.
pub(super) fn epoll_pwait(cx: &Cx) -> Answer {
    mask::set_temporary_mask_from(cx, cx.arg(4), cx.arg(5))?;
    epoll_wait(cx)
}

/// `epoll_pwait2(epoll, events, max, timeout, mask, size)`.
pub(super) fn epoll_pwait2(cx: &Cx) -> Answer {
    let timeout_ns = read_timespec(cx, cx.arg(3))?;
    mask::set_temporary_mask_from(cx, cx.arg(4), cx.arg(5))?;
    wait(cx, timeout_ns)
}

fn wait(cx: &Cx, timeout_ns: Option<u64>) -> Answer {
    let max = cx.int(2);
    if max <= 0 || max as usize > i32::MAX as usize / size_of::<Event>() {
        return Err(Errno::EINVAL.into());
    }
    let bytes = max as u64 * size_of::<Event>() as u64;
    if cx.arg(1).checked_add(bytes).is_none_or(|end| end > crate::file::USER_END) {
        return Err(Errno::EFAULT.into());
    }
    let open = cx.file(cx.uint(0))?;
    let epoll = of(&open).ok_or(Errno::EINVAL)?;
    set_timeout(cx, timeout_ns);
    let found = epoll.collect(cx, cx.arg(1), max as usize)?;
    if found > 0 || is_over(cx, timeout_ns) {
        return Ok(found as u64);
    }
    cx.on_signal(OnSignal::Return);
    Err(cx.block_on(&epoll.ready.queue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_linuxs() {
        assert_eq!(size_of::<Event>(), size_of::<linux_raw_sys::general::epoll_event>());
    }
}
