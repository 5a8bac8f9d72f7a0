//! Streams: pipes, UNIX sockets, eventfd, timerfd, signalfd; and waiting for several
//! files: poll, select, epoll.

use alloc::rc::Rc;

use linux_raw_sys::general as nr;

use crate::call::{Answer, Cx, Entry, Stop, full, partial};
use crate::file::{Open, Source};
use crate::signal::OnSignal;
use crate::wait::WaitQueue;

pub mod pipe;
pub mod ring;

pub use pipe::open_fifo;

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[
    full(nr::__NR_pipe, "pipe", pipe::pipe),
    partial(nr::__NR_pipe2, "pipe2", pipe::pipe2, "O_DIRECT, O_NOTIFICATION_PIPE"),
];

/// What all streams share.
#[derive(Default)]
pub struct Streams {
    /// Fifos that somebody waits to open.
    pub opening: pipe::Opening,
}

/// Makes descriptors of both files and writes their numbers to `address`; both or none.
fn add_pair(cx: &Cx, files: [Rc<Open>; 2], close_on_exec: bool, address: u64) -> Answer {
    let [first, second] = files;
    let first = cx.add_file(first, close_on_exec)?;
    let second = cx.add_file(second, close_on_exec);
    let written = match second {
        Ok(second) => cx.user().write(address, &[first as i32, second as i32]),
        Err(errno) => Err(errno),
    };
    if let Err(errno) = written {
        for fd in [Ok(first), second].into_iter().flatten() {
            let open = cx.process.files.borrow().remove(fd);
            drop(open);
        }
        return Err(errno.into());
    }
    Ok(0)
}

/// A stream has taken `done` bytes of a write that wants to have written all, and waits.
pub(crate) fn wait_for_rest(
    cx: &Cx,
    source: &Source,
    done: usize,
    queue: &WaitQueue,
) -> Result<usize, Stop> {
    if done > 0 {
        if matches!(source, Source::Server(_)) {
            return Ok(done);
        }
        cx.set_progress(cx.progress() + done as u64);
    }
    cx.on_signal(OnSignal::Partial);
    Err(cx.block_on(queue))
}
