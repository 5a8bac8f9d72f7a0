//! Open files: what every kind of file can be asked, open file descriptions, the
//! descriptor table of a process, and the calls that work on any descriptor.

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;

use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::fs::inode::Inode;
use crate::wait::{Listener, Listening, WaitQueue};

mod asynchronous;
mod buffer;
mod calls;
mod control;
mod descriptors;
mod directory_notice;
pub(crate) mod long;
mod open;
mod owner;
mod transfer;
mod vectors;

pub use buffer::{Sink, Source, UserRanges};
pub use calls::CALLS;
pub use descriptors::{Descriptors, MAX_DESCRIPTORS, MIN_DESCRIPTORS, release, settle};
pub(crate) use directory_notice::closed as notices_end;
pub use open::Open;
pub(crate) use owner::News;
pub use transfer::{MAX_TRANSFER, USER_END};
pub use vectors::{Ranges, read_ranges};

bitflags::bitflags! {
    /// Readiness, with poll's bits.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Events: u32 {
        #[allow(missing_docs)] const IN = 0x001;
        #[allow(missing_docs)] const PRI = 0x002;
        #[allow(missing_docs)] const OUT = 0x004;
        #[allow(missing_docs)] const ERR = 0x008;
        #[allow(missing_docs)] const HUP = 0x010;
        #[allow(missing_docs)] const NVAL = 0x020;
        #[allow(missing_docs)] const RDNORM = 0x040;
        #[allow(missing_docs)] const RDBAND = 0x080;
        #[allow(missing_docs)] const WRNORM = 0x100;
        #[allow(missing_docs)] const WRBAND = 0x200;
        #[allow(missing_docs)] const MSG = 0x400;
        #[allow(missing_docs)] const RDHUP = 0x2000;
    }
}

impl Events {
    /// Data can be read.
    pub const READABLE: Self = Self::IN.union(Self::RDNORM);
    /// Data can be written.
    pub const WRITABLE: Self = Self::OUT.union(Self::WRNORM);
}

/// What can be asked of everything that has a descriptor. Methods take `&self`; files keep
/// their state in cells and wake their own wait queues.
pub trait File {
    /// Reads at `offset` (ignored by streams). 0 is the end. A stream that has nothing
    /// returns `Err(cx.block_on(queue))`, or `EAGAIN` if `open` says `O_NONBLOCK`.
    ///
    /// # Errors
    /// As `read(2)`.
    fn read(&self, cx: &Cx, open: &Open, sink: &mut Sink, offset: u64) -> Result<usize, Stop>;

    /// Writes at `offset` (ignored by streams). A stream that has taken a part and must wait
    /// before the rest adds that part to `cx.progress()` and returns `Err(Stop::Block)`; the
    /// next try's source begins behind it. If the source is [`Source::Server`] it returns
    /// the part instead.
    ///
    /// # Errors
    /// As `write(2)`.
    fn write(&self, cx: &Cx, open: &Open, source: &mut Source, offset: u64) -> Result<usize, Stop>;

    /// What could be done now without waiting.
    fn poll(&self, cx: &Cx) -> Events {
        let _ = cx;
        Events::READABLE | Events::WRITABLE
    }

    /// Shows `visit` the queues that are woken when one of the `interest` bits of `poll` may
    /// have changed (errors and hang-ups always); none for files that are always ready.
    fn watch(&self, cx: &Cx, interest: Events, visit: &mut dyn FnMut(&WaitQueue)) {
        let _ = (cx, interest, visit);
    }

    /// `listener` hears from all of these queues, as long as it has what is returned.
    fn listen(&self, cx: &Cx, interest: Events, listener: &Weak<dyn Listener>) -> Vec<Listening> {
        let mut heard = Vec::new();
        self.watch(cx, interest, &mut |queue| heard.push(queue.listen(listener.clone())));
        heard
    }

    /// Whether `epoll` takes it (regular files and directories it refuses with `EPERM`).
    fn can_wait(&self) -> bool {
        !self.has_position()
    }

    /// A control request.
    ///
    /// # Errors
    /// `ENOTTY` by default.
    fn ioctl(&self, cx: &Cx, open: &Open, request: u32, argument: u64) -> Result<u64, Stop> {
        let _ = (cx, open, request, argument);
        Err(Errno::ENOTTY.into())
    }

    /// The inode: what `fstat` and friends tell. Pipes, sockets and the like have one of their own.
    fn inode(&self) -> Rc<Inode>;

    /// Whether there is a position (`lseek`, `pread`): regular files, directories, some devices.
    fn has_position(&self) -> bool {
        false
    }

    /// `lseek` without a position.
    ///
    /// # Errors
    /// `ESPIPE` by default.
    fn seek(&self, cx: &Cx, offset: i64, whence: u32) -> Result<u64, Errno> {
        let _ = (cx, offset, whence);
        Err(Errno::ESPIPE)
    }

    /// Whether `lseek` always leads to 0 (`/dev/null`).
    fn stays_at_start(&self) -> bool {
        false
    }

    /// Size for `SEEK_END`.
    fn size(&self) -> u64 {
        0
    }

    /// `lseek` with a position: `SEEK_DATA` and `SEEK_HOLE` from `offset`, which is below the size.
    fn seek_hole(&self, offset: u64, hole: bool) -> u64 {
        if hole { self.size() } else { offset }
    }

    /// An open file description went away (after its last descriptor was closed).
    fn closed(&self, open: &Open) {
        let _ = open;
    }

    /// To look at a file as what it is (sockets, terminals, epolls).
    fn as_any(&self) -> &dyn core::any::Any;
}
