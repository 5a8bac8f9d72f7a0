//! sendmmsg and recvmmsg: several messages in one call.
//!
//! The call waits for each of them, as it would alone; what was sent or received before counts if a later one is
//! refused, or a signal comes meanwhile.

use alloc::boxed::Box;

use linux_raw_sys::net::MSG_DONTWAIT;

use super::message::{MOST, receive_message, send_message};
use super::shared;
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::Open;
use crate::signal::OnSignal;
use crate::time::Timespec;

/// Bytes of a `struct mmsghdr`, and where in it the length is told.
const BYTES: u64 = 64;
const LENGTH: u64 = 56;
/// Only the first message is waited for.
const MSG_WAITFORONE: u32 = 0x10000;

/// A call that waits: messages that are done, bytes of the one it is at, when it ends behind a message.
#[derive(Clone, Copy, Default)]
struct Batch {
    done: u64,
    bytes: u64,
    end_ns: Option<u64>,
}

impl Batch {
    /// Where the call went on waiting; none at its first try.
    fn of(cx: &Cx) -> Option<Self> {
        let held = cx.thread.held.take()?;
        held.downcast::<Self>().ok().map(|batch| *batch)
    }

    /// Whether the time is over.
    fn is_over(&self, cx: &Cx) -> bool {
        self.end_ns.is_some_and(|end| cx.unix.machine.now_ns() >= end)
    }

    /// Has `one` send or receive each message from here on; how many are done.
    fn run(mut self, cx: &Cx, count: u64, one: impl Fn(&Self, u64) -> Answer) -> Answer {
        cx.set_progress(self.bytes);
        while self.done < count {
            let at = cx.arg(1).wrapping_add(self.done * BYTES);
            let tell = |len: u64| cx.user().write(at.wrapping_add(LENGTH), &(len as u32));
            match one(&self, at).and_then(|len| Ok(tell(len)?)) {
                Ok(()) => {}
                Err(Stop::Block) => {
                    self.bytes = cx.progress();
                    // A message of which some is done counts, should a signal end the call.
                    if self.bytes > 0 {
                        tell(self.bytes)?;
                    }
                    return Err(self.wait(cx));
                }
                Err(stop) if self.done == 0 => return Err(stop),
                Err(_) => break,
            }
            self.done += 1;
            self.bytes = 0;
            // The next one's tries are its own.
            cx.set_progress(0);
            cx.thread.retried.set(false);
            if self.is_over(cx) {
                break;
            }
        }
        Ok(self.done)
    }

    fn wait(self, cx: &Cx) -> Stop {
        let told = self.done + u64::from(self.bytes > 0);
        cx.set_progress(told);
        if told > 0 {
            cx.on_signal(OnSignal::Partial);
        }
        cx.thread.held.replace(Some(Box::new(self)));
        Stop::Block
    }
}

/// `sendmmsg(fd, headers, count, flags)`.
pub fn sendmmsg(cx: &Cx) -> Answer {
    let open = open(cx)?;
    let batch = Batch::of(cx).unwrap_or_default();
    batch.run(cx, cx.uint(2).min(MOST).into(), |_, at| send_message(cx, &open, at, cx.uint(3)))
}

/// `recvmmsg(fd, headers, count, flags, timeout)`. The time is looked at behind each message only.
pub fn recvmmsg(cx: &Cx) -> Answer {
    let batch = match Batch::of(cx) {
        Some(batch) => batch,
        None => Batch { end_ns: end(cx)?, ..Batch::default() },
    };
    let open = open(cx)?;
    let flags = cx.uint(3);
    let done = batch.run(cx, cx.uint(2).min(MOST).into(), |batch, at| {
        let waits_on = flags & MSG_WAITFORONE == 0 || batch.done == 0;
        let flags = if waits_on { flags } else { flags | MSG_DONTWAIT };
        receive_message(cx, &open, at, flags & !MSG_WAITFORONE)
    })?;
    if let Some(end_ns) = batch.end_ns.filter(|_| done > 0) {
        let left = end_ns.saturating_sub(cx.unix.machine.now_ns());
        cx.user().write(cx.arg(4), &Timespec::from_ns(left))?;
    }
    Ok(done)
}

/// When the call ends behind a message.
fn end(cx: &Cx) -> Result<Option<u64>, Errno> {
    if cx.arg(4) == 0 {
        return Ok(None);
    }
    let time_ns = cx.user().read::<Timespec>(cx.arg(4))?.nanoseconds()?;
    Ok(Some(cx.unix.machine.now_ns().saturating_add(time_ns)))
}

fn open(cx: &Cx) -> Result<alloc::rc::Rc<Open>, Errno> {
    let open = cx.file(cx.uint(0))?;
    shared(&open)?;
    Ok(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_linuxs() {
        use linux_raw_sys::net::mmsghdr;
        assert_eq!(size_of::<mmsghdr>() as u64, BYTES);
        assert_eq!(core::mem::offset_of!(mmsghdr, msg_len) as u64, LENGTH);
    }
}
