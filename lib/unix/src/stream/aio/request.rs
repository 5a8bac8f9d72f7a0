//! A request: what it asks for, and doing it once it can be done.

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{Context, Event};
use crate::account::Charge;
use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::file::{Events, Open, Ranges, Sink, Source, UserRanges, read_ranges};
use crate::mm::{AddressSpace, USER_END};
use crate::thread::Thread;
use crate::unix::Unix;
use crate::wait::{Later, Listener, Listening, RunQueue};

/// What a request asks for (`IOCB_CMD_*`).
const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;
const POLL: u16 = 5;
const PREADV: u16 = 7;
const PWRITEV: u16 = 8;
/// `IOCB_FLAG_RESFD`, and with it `IOCB_FLAG_IOPRIO`.
pub(super) const TELLS: u32 = 1;
pub(super) const FLAGS: u32 = 3;
/// What the flags of a transfer may be.
const TRANSFER_FLAGS: u32 = l::RWF_HIPRI | l::RWF_DSYNC | l::RWF_SYNC;

/// `struct iocb`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Control {
    pub(super) data: u64,
    pub(super) key: u32,
    pub(super) transfer_flags: u32,
    pub(super) what: u16,
    pub(super) priority: i16,
    pub(super) fd: u32,
    pub(super) buffer: u64,
    pub(super) len: u64,
    pub(super) offset: i64,
    pub(super) reserved: u64,
    pub(super) flags: u32,
    pub(super) told: u32,
}

/// Where `key` is.
pub(super) const KEY: u64 = 8;

/// What is asked for.
pub(super) enum Work {
    /// To the file or from it.
    Transfer { writes: bool, ranges: Ranges, offset: u64 },
    /// To be told of these.
    Poll(Events),
    /// Nothing that is not done already.
    Nothing,
}

impl Work {
    /// What is waited for.
    pub(super) const fn interest(&self) -> Events {
        match self {
            Self::Poll(wanted) => *wanted,
            Self::Transfer { writes: true, .. } => Events::WRITABLE,
            _ => Events::READABLE,
        }
    }
}

/// A request.
pub(super) struct Request {
    /// Its number in its context.
    pub(super) number: u64,
    pub(super) context: Weak<Context>,
    pub(super) space: Weak<AddressSpace>,
    pub(super) thread: Weak<Thread>,
    pub(super) open: Rc<Open>,
    pub(super) work: Work,
    pub(super) data: u64,
    pub(super) object: u64,
    /// Whose count goes up when it is done.
    pub(super) counter: Option<Rc<Open>>,
    pub(super) due: Cell<bool>,
    pub(super) run_queue: Rc<RunQueue>,
    pub(super) this: Weak<Self>,
    pub(super) heard: RefCell<Vec<Listening>>,
    pub(super) _charge: Charge,
}

impl Request {
    /// Does it, if that can be done now: its result.
    pub(super) fn attempt(&self, cx: &Cx) -> Option<i64> {
        let (writes, ranges, offset) = match &self.work {
            Work::Nothing => return Some(0),
            Work::Poll(wanted) => {
                let now = self.open.file.poll(cx) & (*wanted | Events::ERR | Events::HUP);
                return (!now.is_empty()).then(|| now.bits().into());
            }
            Work::Transfer { writes, ranges, offset } => (*writes, ranges, *offset),
        };
        let (open, file) = (&*self.open, &self.open.file);
        let wanted = if writes { Events::OUT } else { Events::IN } | Events::ERR | Events::HUP;
        let waits = file.can_wait() && !open.is_nonblocking();
        if waits && !file.poll(cx).intersects(wanted) {
            return None;
        }
        let flags = open.flags.get();
        open.flags.set(flags | l::O_NONBLOCK);
        let user = UserRanges::new(cx.user(), ranges, 0);
        let answer = if writes {
            let append = flags & l::O_APPEND != 0 && file.has_position();
            let at = if append { file.size() } else { offset };
            file.write(cx, open, &mut Source::User(user), at)
        } else {
            file.read(cx, open, &mut Sink::User(user), offset)
        };
        open.flags.set(flags);
        match answer {
            Ok(count) => Some(count as i64),
            Err(Stop::Errno(Errno::EAGAIN)) if waits => None,
            Err(Stop::Errno(errno)) => Some(errno.result() as i64),
            Err(Stop::Block | Stop::Done) => Some(Errno::EAGAIN.result() as i64),
        }
    }

    /// Its result is known.
    pub(super) fn finish(&self, cx: &Cx, result: i64) {
        let Some(context) = self.context.upgrade() else { return };
        let event = Event { data: self.data, object: self.object, result, more: 0 };
        let gone = context.waiting.borrow_mut().remove(&self.number);
        context.events.borrow_mut().push_back(event);
        context.queue.wake_all();
        if let Some(counter) = &self.counter {
            let one = 1_u64.to_ne_bytes();
            let _ = counter.file.write(cx, counter, &mut Source::Server(&one), 0);
        }
        drop(gone);
    }
}

impl Listener for Request {
    fn notify(&self, _: bool) -> bool {
        if let Some(this) = self.this.upgrade().filter(|_| !self.due.replace(true)) {
            self.run_queue.later(this);
        }
        false
    }
}

impl Later for Request {
    fn run(&self, unix: &Unix) {
        self.due.set(false);
        let (Some(context), Some(space)) = (self.context.upgrade(), self.space.upgrade()) else {
            return;
        };
        let Some(thread) = self.thread.upgrade() else { return };
        if !context.waiting.borrow().contains_key(&self.number)
            || !Rc::ptr_eq(&thread.process.space(), &space)
        {
            return;
        }
        let cx = Cx { unix, thread: &thread, process: &thread.process };
        if let Some(result) = self.attempt(&cx) {
            self.finish(&cx, result);
        }
    }
}

/// What a control block asks for.
pub(super) fn work(cx: &Cx, control: &Control, open: &Open) -> Result<Work, Errno> {
    let writes = matches!(control.what, PWRITE | PWRITEV);
    match control.what {
        PREAD | PREADV | PWRITE | PWRITEV => {}
        FSYNC | FDSYNC if !open.file.has_position() => return Err(Errno::EINVAL),
        FSYNC | FDSYNC => return Ok(Work::Nothing),
        POLL => {
            let rest = control.offset as u64 | control.len | u64::from(control.transfer_flags);
            let wanted = u32::try_from(control.buffer).ok().filter(|wanted| wanted >> 16 == 0);
            return match (rest, wanted) {
                (0, Some(wanted)) if open.file.can_wait() => {
                    Ok(Work::Poll(Events::from_bits_retain(wanted)))
                }
                _ => Err(Errno::EINVAL),
            };
        }
        _ => return Err(Errno::EINVAL),
    }
    if !if writes { open.can_write() } else { open.can_read() } {
        return Err(Errno::EBADF);
    }
    if control.transfer_flags & !TRANSFER_FLAGS != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let offset = u64::try_from(control.offset).map_err(|_| Errno::EINVAL)?;
    let ranges = match control.what {
        PREADV | PWRITEV => read_ranges(cx, control.buffer, control.len)?,
        _ if control.buffer.checked_add(control.len).is_none_or(|end| end > USER_END) => {
            return Err(Errno::EFAULT);
        }
        _ => [(control.buffer, control.len.min(crate::file::MAX_TRANSFER as u64) as usize)].into(),
    };
    Ok(Work::Transfer { writes, ranges, offset })
}
