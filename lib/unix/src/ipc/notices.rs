//! `mq_notify`: who is told that a message has come to a queue.

use alloc::rc::{Rc, Weak};

use linux_raw_sys::general as l;

use super::posix::{Queue, queue};
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::file::Open;
use crate::process::Process;
use crate::signal::{self, Info, set};
use crate::stream::socket::{Socket, netlink};

/// Who is told when a message comes to the empty queue.
pub(super) struct Notify {
    process: Weak<Process>,
    /// The description by which that was asked for, with which it ends.
    open: *const Open,
    how: How,
}

/// How.
enum How {
    Not,
    /// By a signal, with a value.
    Signal(u32, u64),
    /// By a message to a socket: what the library finds its thread by.
    Socket(Rc<Socket>, [u8; COOKIE]),
}

/// Bytes of such a message; the last says why it was sent.
const COOKIE: usize = 32;
const WOKEN: u8 = 1;
const REMOVED: u8 = 2;

/// Tells a socket why.
fn tell(socket: &Socket, cookie: &[u8; COOKIE], why: u8) {
    let mut bytes = *cookie;
    bytes[COOKIE - 1] = why;
    netlink::tell(socket, &bytes);
}

impl Queue {
    /// A message has come to the empty queue, and nobody waited for it.
    pub(super) fn tell(&self, cx: &Cx) {
        let Some(notify) = self.notify.take() else { return };
        match notify.how {
            How::Not => {}
            How::Signal(signal, value) => {
                let uid = cx.process.credentials.borrow().uid;
                if let Some(process) = notify.process.upgrade() {
                    let uid = process.sees_user(uid);
                    let pid = process.sees(cx.process.pid);
                    let mut info = Info::user(signal, l::SI_MESGQ, pid, uid);
                    info.data[1] = value;
                    signal::send(cx.unix, &process, info);
                }
            }
            How::Socket(socket, cookie) => tell(&socket, &cookie, WOKEN),
        }
    }

    /// The description `open` is gone: what was asked for by it is over.
    pub(super) fn description_closed(&self, open: &Open) {
        let asked = |notify: &Notify| core::ptr::eq(notify.open, open);
        if self.notify.borrow().as_ref().is_some_and(asked) {
            self.forget();
        }
    }

    /// Nobody is to be told any more.
    fn forget(&self) {
        if let Some(Notify { how: How::Socket(socket, cookie), .. }) = self.notify.take() {
            tell(&socket, &cookie, REMOVED);
        }
    }
}

/// How the `sigevent` at argument 1 wants it; `None`: not any more.
fn wish(cx: &Cx) -> Result<Option<How>, Errno> {
    let address = cx.arg(1);
    if address == 0 {
        return Ok(None);
    }
    let [value, both] = cx.user().read::<[u64; 2]>(address)?;
    let (signal, kind) = (both as u32, (both >> 32) as u32);
    Ok(Some(match kind {
        l::SIGEV_NONE => How::Not,
        l::SIGEV_SIGNAL if signal <= set::LAST => How::Signal(signal, value),
        l::SIGEV_THREAD => {
            let cookie = cx.user().read::<[u8; COOKIE]>(value)?;
            How::Socket(netlink::of(&*cx.file(signal)?)?, cookie)
        }
        _ => return Err(Errno::EINVAL),
    }))
}

/// `mq_notify(queue, event)`.
pub(super) fn mq_notify(cx: &Cx) -> Answer {
    let wish = wish(cx)?;
    let (open, queue) = queue(cx)?;
    let present = queue.notify.borrow().as_ref().and_then(|notify| notify.process.upgrade());
    let present = present.filter(|process| process.ended.get().is_none());
    match (wish, present) {
        (None, Some(process)) if Rc::ptr_eq(&process, cx.process) => queue.forget(),
        (None, _) => {}
        (Some(_), Some(_)) => return Err(Errno::EBUSY.into()),
        (Some(how), None) => {
            let process = Rc::downgrade(cx.process);
            let notify = Notify { process, open: Rc::as_ptr(&open), how };
            drop(queue.notify.replace(Some(notify)));
        }
    }
    Ok(0)
}
