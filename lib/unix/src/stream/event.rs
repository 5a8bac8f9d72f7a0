//! eventfd: a counter with a descriptor.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;

use linux_raw_sys::general::{EFD_CLOEXEC, EFD_NONBLOCK, EFD_SEMAPHORE, O_NONBLOCK, O_RDWR};

use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::{Events, File, Open, Sink, Source};
use crate::fs::inode::Inode;
use crate::wait::WaitQueue;

/// The highest count.
const MAX: u64 = u64::MAX - 1;

/// A counter.
struct Event {
    count: Cell<u64>,
    semaphore: bool,
    can_read: WaitQueue,
    can_write: WaitQueue,
    inode: Rc<Inode>,
}

impl File for Event {
    fn read(&self, cx: &Cx, open: &Open, sink: &mut Sink, _offset: u64) -> Result<usize, Stop> {
        if sink.room() < 8 {
            return Err(Errno::EINVAL.into());
        }
        let count = self.count.get();
        if count == 0 {
            return if open.is_nonblocking() {
                Err(Errno::EAGAIN.into())
            } else {
                Err(cx.block_on(&self.can_read))
            };
        }
        let taken = if self.semaphore { 1 } else { count };
        self.count.set(count - taken);
        self.can_write.wake_all();
        Ok(sink.put(&taken.to_ne_bytes())?)
    }

    fn write(
        &self,
        cx: &Cx,
        open: &Open,
        source: &mut Source,
        _offset: u64,
    ) -> Result<usize, Stop> {
        if source.left() < 8 {
            return Err(Errno::EINVAL.into());
        }
        let mut bytes = [0; 8];
        if source.take(&mut bytes)? < 8 {
            return Err(Errno::EFAULT.into());
        }
        let more = u64::from_ne_bytes(bytes);
        if more == u64::MAX {
            return Err(Errno::EINVAL.into());
        }
        if more > MAX - self.count.get() {
            return if open.is_nonblocking() {
                Err(Errno::EAGAIN.into())
            } else {
                Err(cx.block_on(&self.can_write))
            };
        }
        self.count.set(self.count.get() + more);
        self.can_read.wake_all();
        Ok(8)
    }

    fn poll(&self, _cx: &Cx) -> Events {
        let mut events = Events::empty();
        events.set(Events::IN, self.count.get() > 0);
        events.set(Events::OUT, self.count.get() < MAX);
        events
    }

    fn watch(&self, _cx: &Cx, interest: Events, visit: &mut dyn FnMut(&WaitQueue)) {
        if interest.intersects(Events::IN) {
            visit(&self.can_read);
        }
        if interest.intersects(Events::OUT) {
            visit(&self.can_write);
        }
    }

    fn inode(&self) -> Rc<Inode> {
        self.inode.clone()
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// `eventfd(count)`.
pub(super) fn eventfd(cx: &Cx) -> Answer {
    create(cx, 0)
}

/// `eventfd2(count, flags)`.
pub(super) fn eventfd2(cx: &Cx) -> Answer {
    create(cx, cx.uint(1))
}

fn create(cx: &Cx, flags: u32) -> Answer {
    if flags & !(EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let event = Event {
        count: Cell::new(cx.uint(0).into()),
        semaphore: flags & EFD_SEMAPHORE != 0,
        can_read: WaitQueue::default(),
        can_write: WaitQueue::default(),
        inode: cx.unix.fs.anonymous(cx, "[eventfd]")?,
    };
    let open = Open::new(cx, Rc::new(event), O_RDWR | flags & O_NONBLOCK, Vec::new())?;
    Ok(cx.add_file(open, flags & EFD_CLOEXEC != 0)?.into())
}
