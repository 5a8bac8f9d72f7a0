//! inotify: a queue of what happens to files, with a descriptor.
//!
//! A watch is paid by the user who makes it, and so is each event that waits to be read; when
//! the user can't, or too many wait, the queue ends with one that says so (`IN_Q_OVERFLOW`).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;
use linux_raw_sys::ioctl::FIONREAD;

use crate::account::{Charge, What};
use crate::call::{Answer, Cx, Entry, Stop, full};
use crate::errno::Errno;
use crate::file::{Events, File, Open, Sink, Source};
use crate::fs::events::{Event, Watcher};
use crate::fs::inode::{Inode, Kind};
use crate::fs::{permission, walk};
use crate::room::Room;
use crate::unix::Unix;
use crate::wait::WaitQueue;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_inotify_init, "inotify_init", inotify_init),
    full(l::__NR_inotify_init1, "inotify_init1", inotify_init1),
    full(l::__NR_inotify_add_watch, "inotify_add_watch", inotify_add_watch),
    full(l::__NR_inotify_rm_watch, "inotify_rm_watch", inotify_rm_watch),
];

/// Events that wait in one queue (`max_queued_events`).
pub const EVENTS_MAX: usize = 16_384;
/// Queues of a user, at first (`max_user_instances`).
pub const INSTANCES: u64 = 128;
/// What a watch costs, and an event beside its name.
const WATCH_BYTES: usize = 512;
const EVENT_BYTES: usize = 96;
/// Bytes of an event before its name, which is filled up to a multiple of it.
const HEAD: usize = 16;
/// What a watch's mask can hold beside the events.
const OPTIONS: u32 = l::IN_ONESHOT | l::IN_EXCL_UNLINK;
/// What `inotify_add_watch` knows beside.
const REQUESTS: u32 = l::IN_ONLYDIR | l::IN_DONT_FOLLOW | l::IN_MASK_ADD | l::IN_MASK_CREATE;

/// An event that waits.
#[derive(PartialEq, Eq)]
struct Waiting {
    watch: i32,
    mask: u32,
    cookie: u32,
    name: Box<[u8]>,
}

impl Waiting {
    /// Its size in the reader's buffer.
    fn len(&self) -> usize {
        match self.name.len() {
            0 => HEAD,
            len => HEAD + (len + 1).next_multiple_of(HEAD),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let len = self.len();
        let head = [self.watch as u32, self.mask, self.cookie, (len - HEAD) as u32];
        let mut bytes: Vec<u8> = head.into_iter().flat_map(u32::to_ne_bytes).collect();
        bytes.extend_from_slice(&self.name);
        bytes.resize(len, 0);
        bytes
    }
}

/// The events that wait.
struct Queue {
    waiting: RefCell<VecDeque<Waiting>>,
    charge: Charge,
    readable: WaitQueue,
}

impl Queue {
    fn cost(event: &Waiting) -> u64 {
        (EVENT_BYTES + event.name.len()) as u64
    }

    /// One more, unless it is the same as the last.
    fn push(&self, event: Waiting) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.back() == Some(&event) {
            return;
        }
        let full = waiting.len() >= EVENTS_MAX || self.charge.grow(Self::cost(&event)).is_err();
        let overflow = Waiting { watch: -1, mask: l::IN_Q_OVERFLOW, cookie: 0, name: [].into() };
        match full {
            true if waiting.back() == Some(&overflow) => return,
            true => {
                self.charge.set(self.charge.amount() + Self::cost(&overflow));
                waiting.push_back(overflow);
            }
            false => waiting.push_back(event),
        }
        drop(waiting);
        self.readable.wake_all();
    }

    /// The first was read.
    fn pop(&self) {
        let mut waiting = self.waiting.borrow_mut();
        let read = waiting.pop_front();
        waiting.trim();
        self.charge.shrink(read.as_ref().map_or(0, Self::cost));
    }

    fn bytes(&self) -> usize {
        self.waiting.borrow().iter().map(Waiting::len).sum()
    }
}

/// Watches by number.
type Table = RefCell<BTreeMap<i32, Rc<Watch>>>;

/// A watch.
struct Watch {
    number: i32,
    mask: Cell<u32>,
    inode: Weak<Inode>,
    /// What would not be there but for the watch (`/proc`).
    _held: Option<Rc<Inode>>,
    queue: Rc<Queue>,
    table: Weak<Table>,
    _charge: Charge,
}

impl Watcher for Watch {
    fn tell(&self, _: Option<&Unix>, event: &Event) {
        let mask = self.mask.get();
        let always = l::IN_UNMOUNT | l::IN_IGNORED;
        let self_events = l::IN_DELETE_SELF | l::IN_MOVE_SELF;
        if event.mask & (mask | always) & !OPTIONS & !l::IN_ISDIR == 0
            || event.unlinked && mask & l::IN_EXCL_UNLINK != 0
        {
            return;
        }
        let plain = event.mask & self_events != 0;
        let told = if plain { event.mask & !l::IN_ISDIR } else { event.mask };
        let name = event.name.into();
        self.queue.push(Waiting { watch: self.number, mask: told, cookie: event.cookie, name });
        if mask & l::IN_ONESHOT != 0 {
            self.end();
        }
    }

    fn gone(&self) {
        self.end();
    }
}

impl Watch {
    /// It watches no more; its number is told a last time.
    fn end(&self) {
        let table = self.table.upgrade();
        let Some(this) = table.and_then(|table| table.borrow_mut().remove(&self.number)) else {
            return;
        };
        let name = [].into();
        let last = Waiting { watch: self.number, mask: l::IN_IGNORED, cookie: 0, name };
        this.queue.push(last);
        this.leave();
    }

    /// Its inode knows it no more.
    fn leave(&self) {
        if let Some(inode) = self.inode.upgrade() {
            inode.unwatch((&raw const *self).cast());
        }
    }
}

/// An inotify.
struct Inotify {
    queue: Rc<Queue>,
    watches: Rc<Table>,
    next: Cell<i32>,
    inode: Rc<Inode>,
    _instance: Charge,
}

impl Drop for Inotify {
    fn drop(&mut self) {
        let watches = self.watches.take();
        watches.values().for_each(|watch| watch.leave());
    }
}

impl File for Inotify {
    fn read(&self, cx: &Cx, open: &Open, sink: &mut Sink, _: u64) -> Result<usize, Stop> {
        let mut done = 0;
        loop {
            let Some(bytes) = self.queue.waiting.borrow().front().map(Waiting::bytes) else {
                break;
            };
            if bytes.len() > sink.room() {
                return if done > 0 { Ok(done) } else { Err(Errno::EINVAL.into()) };
            }
            let put = sink.put(&bytes);
            if put.is_err() && done > 0 {
                return Ok(done);
            }
            done += put?;
            self.queue.pop();
        }
        match done {
            0 if open.is_nonblocking() => Err(Errno::EAGAIN.into()),
            0 => Err(cx.block_on(&self.queue.readable)),
            _ => Ok(done),
        }
    }

    fn write(&self, _: &Cx, _: &Open, _: &mut Source, _: u64) -> Result<usize, Stop> {
        Err(Errno::EBADF.into())
    }

    fn poll(&self, _: &Cx) -> Events {
        let any = !self.queue.waiting.borrow().is_empty();
        if any { Events::READABLE } else { Events::empty() }
    }

    fn watch(&self, _: &Cx, _: Events, visit: &mut dyn FnMut(&WaitQueue)) {
        visit(&self.queue.readable);
    }

    fn ioctl(&self, cx: &Cx, _: &Open, request: u32, argument: u64) -> Result<u64, Stop> {
        if request != FIONREAD {
            return Err(Errno::ENOTTY.into());
        }
        cx.user().write(argument, &(self.queue.bytes() as u32))?;
        Ok(0)
    }

    fn inode(&self) -> Rc<Inode> {
        self.inode.clone()
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// Appends what `/proc/self/fdinfo` says of the first watch that has this number or a higher one, if `open` is an
/// inotify; where the next ones are.
pub fn told(open: &Open, from: u64, text: &mut Vec<u8>) -> Option<u64> {
    let inotify = open.file.as_any().downcast_ref::<Inotify>()?;
    let from = i32::try_from(from).ok()?;
    let watches = inotify.watches.borrow();
    let mut known = watches.range(from..);
    let (watch, inode) = known.find_map(|(_, watch)| Some((watch, watch.inode.upgrade()?)))?;
    let (number, mask) = (watch.number, watch.mask.get());
    let (ino, device) = (inode.number, inode.fs.device);
    let line =
        format!("inotify wd:{number:x} ino:{ino:x} sdev:{device:x} mask:{mask:x} ignored_mask:0\n");
    text.extend_from_slice(line.as_bytes());
    Some(number as u64 + 1)
}

/// `inotify_init()`.
fn inotify_init(cx: &Cx) -> Answer {
    make(cx, 0)
}

/// `inotify_init1(flags)`.
fn inotify_init1(cx: &Cx) -> Answer {
    make(cx, cx.uint(0))
}

fn make(cx: &Cx, flags: u32) -> Answer {
    if flags & !(l::IN_CLOEXEC | l::IN_NONBLOCK) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let user = cx.process.user();
    if user.used(What::Inotifies) >= cx.unix.streams.inotifies.get() {
        return Err(Errno::EMFILE.into());
    }
    let inode = cx.unix.fs.anonymous(cx, "inotify")?;
    let queue = Queue {
        waiting: RefCell::default(),
        charge: cx.charge(What::Heap),
        readable: WaitQueue::default(),
    };
    let file = Inotify {
        queue: Rc::new(queue),
        watches: Rc::default(),
        next: Cell::new(1),
        inode,
        _instance: Charge::new(&user, What::Inotifies, 1)?,
    };
    let open = Open::new(cx, Rc::new(file), l::O_RDONLY | flags & l::IN_NONBLOCK, Vec::new())?;
    Ok(cx.add_file(open, flags & l::IN_CLOEXEC != 0)?.into())
}

fn of(open: &Open) -> Result<&Inotify, Errno> {
    open.file.as_any().downcast_ref::<Inotify>().ok_or(Errno::EINVAL)
}

/// `inotify_add_watch(fd, path, mask)`.
fn inotify_add_watch(cx: &Cx) -> Answer {
    let mask = cx.uint(2);
    let known = l::IN_ALL_EVENTS | OPTIONS | REQUESTS | l::IN_UNMOUNT | l::IN_IGNORED;
    let both = l::IN_MASK_ADD | l::IN_MASK_CREATE;
    if mask & (l::IN_ALL_EVENTS | OPTIONS | REQUESTS) == 0 || mask & !known != 0 {
        return Err(Errno::EINVAL.into());
    }
    let open = cx.file(cx.uint(0))?;
    if mask & both == both {
        return Err(Errno::EINVAL.into());
    }
    let inotify = of(&open)?;
    let flags = if mask & l::IN_DONT_FOLLOW != 0 { l::AT_SYMLINK_NOFOLLOW } else { 0 };
    let inode = walk::inode_at(cx, l::AT_FDCWD, cx.arg(1), flags)?;
    if mask & l::IN_ONLYDIR != 0 && !inode.is_directory() {
        return Err(Errno::ENOTDIR.into());
    }
    permission::check(&inode, &cx.process.credentials.borrow(), permission::READ)?;
    let kept = mask & (l::IN_ALL_EVENTS | OPTIONS);
    let of_inode = |watch: &&Rc<Watch>| core::ptr::eq(watch.inode.as_ptr(), Rc::as_ptr(&inode));
    let present = inotify.watches.borrow().values().find(of_inode).cloned();
    if let Some(watch) = present {
        if mask & l::IN_MASK_CREATE != 0 {
            return Err(Errno::EEXIST.into());
        }
        let before = if mask & l::IN_MASK_ADD != 0 { watch.mask.get() } else { 0 };
        watch.mask.set(before | kept);
        return Ok(watch.number as u64);
    }
    Ok(inotify.add(cx, &inode, kept)? as u64)
}

impl Inotify {
    fn add(&self, cx: &Cx, inode: &Rc<Inode>, mask: u32) -> Result<i32, Errno> {
        let charge = cx.pay(WATCH_BYTES + inode.kind.bytes()).map_err(|_| Errno::ENOSPC)?;
        let number = self.next.get();
        self.next.set(number.checked_add(1).ok_or(Errno::ENOSPC)?);
        let transient = matches!(inode.kind, Kind::Proc(_) | Kind::Pts);
        let watch = Rc::new(Watch {
            number,
            mask: Cell::new(mask),
            inode: Rc::downgrade(inode),
            _held: transient.then(|| inode.clone()),
            queue: self.queue.clone(),
            table: Rc::downgrade(&self.watches),
            _charge: charge,
        });
        self.watches.borrow_mut().insert(number, watch.clone());
        let watcher: Rc<dyn Watcher> = watch;
        inode.watch(Rc::downgrade(&watcher));
        Ok(number)
    }
}

/// `inotify_rm_watch(fd, number)`.
fn inotify_rm_watch(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let watch = of(&open)?.watches.borrow().get(&cx.int(1)).cloned();
    watch.ok_or(Errno::EINVAL)?.end();
    Ok(0)
}
