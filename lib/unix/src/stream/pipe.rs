//! Pipes and fifos.
//!
//! A pipe counts its ends; an end is a [`File`] of its own. A fifo's inode leads to its
//! pipe as long as somebody has it open or waits to.

use alloc::boxed::Box;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::cell::Cell;

use linux_raw_sys::general::{
    O_ACCMODE, O_CLOEXEC, O_DIRECT, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY, SIGPIPE,
};
use linux_raw_sys::ioctl::FIONREAD;

use super::packets::Packets;
use super::ring::Ring;
use crate::account::{Charge, What};
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::{Events, File, Open, Sink, Source};
use crate::fs::inode::Inode;
use crate::memory::PAGE;
use crate::signal::{self, Info};
use crate::wait::WaitQueue;

/// Writes of at most so many bytes are done as a whole or not at all.
pub const ATOMIC: usize = 4096;
/// Capacity of a new pipe.
const CAPACITY: usize = 65_536;
/// Capacity of the pipes of a user who has too many.
const CAPACITY_LEAST: usize = 2 * PAGE;
/// The highest capacity of all; who is not privileged may have `Streams::pipe_max`, at first the same.
pub const CAPACITY_MAX: usize = 1 << 20;

/// The highest capacity of pipes that the caller makes, or makes larger.
pub fn most(cx: &Cx) -> usize {
    let privileged = cx.process.credentials.borrow().may(linux_raw_sys::general::CAP_SYS_RESOURCE);
    if privileged { CAPACITY_MAX } else { cx.unix.streams.pipe_max.get() }
}

/// A pipe.
pub struct Pipe {
    pub(super) ring: Ring,
    pub(super) packets: Packets,
    /// How many pages it can hold.
    pages: Charge,
    pub(super) readers: Cell<u32>,
    pub(super) writers: Cell<u32>,
    /// How many readers there have been.
    readers_ever: Cell<u32>,
    /// How many writers there have been.
    writers_ever: Cell<u32>,
    /// Who waits for bytes.
    pub(super) can_read: WaitQueue,
    /// Who waits for room.
    pub(super) can_write: WaitQueue,
    /// Who waits in `open` for the other side: readers, writers.
    opening: [WaitQueue; 2],
    inode: Rc<Inode>,
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.inode.unbind(self);
    }
}

/// One end of a pipe, or (a fifo open for both) both.
pub struct End {
    pub(super) pipe: Rc<Pipe>,
    reads: bool,
    writes: bool,
    /// How many writers there had been when it was made.
    writers_before: u32,
}

/// What a call holds that waits to open a fifo: its end, which the other side can meet and
/// leave again before the call has its next turn, and how many there had been of the other
/// side.
struct Opening {
    end: Rc<End>,
    before: u32,
}

impl Pipe {
    /// How many bytes it can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.ring.capacity()
    }

    /// Sets the capacity, rounded up to a power of two.
    ///
    /// # Errors
    /// `EBUSY` if it holds more, `EPERM` above `most`, `EINVAL` for what no pipe could hold.
    pub fn set_capacity(&self, bytes: usize, most: usize) -> Result<(), Errno> {
        if bytes > 1 << 31 {
            return Err(Errno::EINVAL);
        }
        let bytes = bytes.max(PAGE).next_power_of_two();
        if bytes > most {
            return Err(Errno::EPERM);
        }
        if bytes < self.ring.len() {
            return Err(Errno::EBUSY);
        }
        let (old, new) = (self.pages.amount(), (bytes / PAGE) as u64);
        self.pages.grow(new.saturating_sub(old)).map_err(|_| Errno::EPERM)?;
        if let Err(errno) = self.ring.resize(bytes) {
            self.pages.set(old);
            return Err(errno);
        }
        self.pages.set(new);
        self.can_write.wake_all();
        Ok(())
    }

    /// How many readers, or writers, there have been.
    fn ever(&self, readers: bool) -> u32 {
        if readers { self.readers_ever.get() } else { self.writers_ever.get() }
    }

    fn end(self: &Rc<Self>, reads: bool, writes: bool) -> Rc<End> {
        self.readers.set(self.readers.get() + u32::from(reads));
        self.readers_ever.set(self.readers_ever.get().wrapping_add(u32::from(reads)));
        let writers_before = self.writers_ever.get();
        self.writers.set(self.writers.get() + u32::from(writes));
        self.writers_ever.set(writers_before.wrapping_add(u32::from(writes)));
        Rc::new(End { pipe: self.clone(), reads, writes, writers_before })
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let pipe = &self.pipe;
        if self.reads {
            pipe.readers.set(pipe.readers.get() - 1);
        }
        if self.writes {
            pipe.writers.set(pipe.writers.get() - 1);
        }
        if pipe.readers.get() == 0 || pipe.writers.get() == 0 {
            pipe.can_read.wake_all();
            pipe.can_write.wake_all();
        }
        if pipe.readers.get() == 0 && pipe.writers.get() == 0 {
            pipe.skip(pipe.ring.len());
        }
    }
}

impl File for End {
    fn read(&self, cx: &Cx, open: &Open, sink: &mut Sink, _offset: u64) -> Result<usize, Stop> {
        let pipe = &*self.pipe;
        if sink.room() == 0 {
            return Ok(0);
        }
        if !pipe.packets.is_empty() {
            return Ok(pipe.read_packet(sink)?);
        }
        if !pipe.ring.is_empty() {
            let before = pipe.ring.room();
            let count = pipe.ring.drain(sink, usize::MAX)?;
            if before < ATOMIC && pipe.ring.room() >= ATOMIC {
                pipe.can_write.wake_all();
            }
            return Ok(count);
        }
        if pipe.writers.get() == 0 {
            Ok(0)
        } else if open.is_nonblocking() {
            Err(Errno::EAGAIN.into())
        } else {
            Err(cx.block_on(&pipe.can_read))
        }
    }

    fn write(
        &self,
        cx: &Cx,
        open: &Open,
        source: &mut Source,
        _offset: u64,
    ) -> Result<usize, Stop> {
        let pipe = &*self.pipe;
        let want = source.left();
        if want == 0 {
            return Ok(0);
        }
        if pipe.readers.get() == 0 {
            signal::send_thread(cx.unix, cx.thread, Info::kernel(SIGPIPE));
            return Err(Errno::EPIPE.into());
        }
        // What is left of a large write is not atomic any more.
        let whole = want <= ATOMIC && cx.progress() == 0;
        let mut done = 0;
        let packets = open.flags.get() & O_DIRECT != 0;
        if packets {
            done = pipe.write_packets(source)?;
        } else if pipe.ring.room() >= if whole { want } else { 1 } {
            done = pipe.fill(source, want)?;
        }
        if done > 0 {
            pipe.can_read.wake_all();
        }
        let ends = open.is_nonblocking() || !packets && pipe.ring.room() > 0;
        if done == want || done > 0 && ends {
            return Ok(done);
        }
        if open.is_nonblocking() {
            return Err(Errno::EAGAIN.into());
        }
        super::wait_for_rest(cx, source, done, &pipe.can_write)
    }

    fn poll(&self, _cx: &Cx) -> Events {
        let pipe = &*self.pipe;
        let mut events = Events::empty();
        if self.reads {
            events.set(Events::READABLE, !pipe.ring.is_empty());
            let were_there = pipe.writers_ever.get() != self.writers_before;
            events.set(Events::HUP, pipe.writers.get() == 0 && were_there);
        }
        if self.writes {
            events.set(Events::WRITABLE, pipe.ring.room() >= ATOMIC && pipe.slots() > 0);
            events.set(Events::ERR, pipe.readers.get() == 0);
        }
        events
    }

    fn watch(&self, _cx: &Cx, _interest: Events, visit: &mut dyn FnMut(&WaitQueue)) {
        if self.reads {
            visit(&self.pipe.can_read);
        }
        if self.writes {
            visit(&self.pipe.can_write);
        }
    }

    fn ioctl(&self, cx: &Cx, _open: &Open, request: u32, argument: u64) -> Result<u64, Stop> {
        if request != FIONREAD {
            return Err(Errno::ENOTTY.into());
        }
        cx.user().write(argument, &(self.pipe.ring.len() as i32))?;
        Ok(0)
    }

    fn inode(&self) -> Rc<Inode> {
        self.pipe.inode.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The pipe of an open file, if it is one.
#[must_use]
pub fn of(open: &Open) -> Option<Rc<Pipe>> {
    open.file.as_any().downcast_ref::<End>().map(|end| end.pipe.clone())
}

/// A pipe without ends.
fn new(cx: &Cx, inode: Rc<Inode>) -> Result<Rc<Pipe>, Errno> {
    let pages = cx.charge(What::PipePages);
    // Who has many pipes gets small ones.
    let mut capacity = CAPACITY.min(most(cx));
    if pages.grow((capacity / PAGE) as u64).is_err() {
        capacity = CAPACITY_LEAST.min(most(cx));
        pages.set((capacity / PAGE) as u64);
    }
    Ok(Rc::new(Pipe {
        ring: Ring::new(&cx.unix.memory, capacity)?.paid(cx.charge(What::Frames)),
        packets: Packets::default(),
        pages,
        readers: Cell::new(0),
        writers: Cell::new(0),
        readers_ever: Cell::new(0),
        writers_ever: Cell::new(0),
        can_read: WaitQueue::default(),
        can_write: WaitQueue::default(),
        opening: Default::default(),
        inode,
    }))
}

/// `pipe(descriptors)`.
pub(super) fn pipe(cx: &Cx) -> Answer {
    create(cx, 0)
}

/// `pipe2(descriptors, flags)`.
pub(super) fn pipe2(cx: &Cx) -> Answer {
    create(cx, cx.uint(1))
}

fn create(cx: &Cx, flags: u32) -> Answer {
    if flags & !(O_CLOEXEC | O_NONBLOCK | O_DIRECT) != 0 {
        return Err(Errno::EINVAL.into());
    }
    // Bound, so that `/proc/self/fd` opens this pipe again.
    let pipe = of_fifo(cx, &cx.unix.fs.pipe(cx)?)?;
    let status = flags & (O_NONBLOCK | O_DIRECT);
    let open = |reads, mode| Open::new(cx, pipe.end(reads, !reads), mode | status, Vec::new());
    let ends = [open(true, O_RDONLY)?, open(false, O_WRONLY)?];
    super::add_pair(cx, ends, flags & O_CLOEXEC != 0, cx.arg(0))
}

/// The pipe of a fifo, made if nobody has it open.
fn of_fifo(cx: &Cx, inode: &Rc<Inode>) -> Result<Rc<Pipe>, Errno> {
    let bound = inode.bound.borrow().as_ref().and_then(Weak::upgrade);
    if let Some(pipe) = bound.and_then(|bound| bound.downcast::<Pipe>().ok()) {
        return Ok(pipe);
    }
    let pipe = new(cx, inode.clone())?;
    let any: Rc<dyn Any> = pipe.clone();
    inode.bind(&any);
    Ok(pipe)
}

/// Opens a fifo: waits for the other side, as `fifo(7)` says. A pipe without a name
/// (`/proc/self/fd`) is just opened.
///
/// # Errors
/// `ENXIO` for a writer that does not wait and finds no reader.
pub fn open_fifo(cx: &Cx, inode: &Rc<Inode>, flags: u32) -> Result<Rc<dyn File>, Stop> {
    let pipe = of_fifo(cx, inode)?;
    let (reads, writes) = match flags & O_ACCMODE {
        O_RDONLY => (true, false),
        O_WRONLY => (false, true),
        O_RDWR => (true, true),
        _ => return Err(Errno::EINVAL.into()),
    };
    let end = match held(cx, &pipe) {
        Some(opening) if pipe.ever(!reads) == opening.before => {
            return wait_for_other(cx, &pipe, opening);
        }
        Some(opening) => return Ok(opening.end),
        None if writes && !reads && flags & O_NONBLOCK != 0 && pipe.readers.get() == 0 => {
            return Err(Errno::ENXIO.into());
        }
        None => pipe.end(reads, writes),
    };
    for waiting in &pipe.opening {
        waiting.wake_all();
    }
    // A pipe without a name (`/proc/self/fd`) is just opened.
    let named = inode.fs.kind != crate::fs::filesystem::Kind::Pipe;
    let others = if reads { pipe.writers.get() } else { pipe.readers.get() };
    if named && reads != writes && others == 0 && flags & O_NONBLOCK == 0 {
        let before = pipe.ever(!reads);
        return wait_for_other(cx, &pipe, Opening { end, before });
    }
    Ok(end)
}

/// What the call has held since an earlier try.
fn held(cx: &Cx, pipe: &Rc<Pipe>) -> Option<Opening> {
    let opening = cx.thread.held.take()?.downcast::<Opening>().ok()?;
    Rc::ptr_eq(&opening.end.pipe, pipe).then_some(*opening)
}

fn wait_for_other(cx: &Cx, pipe: &Pipe, opening: Opening) -> Result<Rc<dyn File>, Stop> {
    let own = usize::from(!opening.end.reads);
    *cx.thread.held.borrow_mut() = Some(Box::new(opening));
    Err(cx.block_on(&pipe.opening[own]))
}
