//! `O_ASYNC`: a signal when a pipe, socket or terminal may be read or written.

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general::FASYNC;

use super::owner::News;
use super::{Events, Open};
use crate::account::Charge;
use crate::call::Cx;
use crate::errno::Errno;
use crate::fs::inode::Kind;
use crate::unix::Unix;
use crate::wait::{Later, Listener, Listening, RunQueue};

/// What it costs.
const BYTES: usize = 320;

/// Listens to a file for who is told of it.
pub(super) struct Asynchronous {
    open: Weak<Open>,
    /// The descriptor under which it was asked for.
    fd: u32,
    due: Cell<bool>,
    run_queue: Rc<RunQueue>,
    this: Weak<Self>,
    heard: RefCell<Vec<Listening>>,
    _charge: Charge,
}

impl Listener for Asynchronous {
    fn notify(&self, _: bool) -> bool {
        if let Some(this) = self.this.upgrade().filter(|_| !self.due.replace(true)) {
            self.run_queue.later(this);
        }
        false
    }
}

impl Later for Asynchronous {
    fn run(&self, unix: &Unix) {
        self.due.set(false);
        let Some(open) = self.open.upgrade() else { return };
        let Some(thread) = open.owner_thread(unix) else { return };
        let now = open.file.poll(&Cx { unix, thread: &thread, process: &thread.process });
        let news = [
            (Events::HUP, News::HUNG_UP),
            (Events::ERR, News::ERROR),
            (Events::IN, News::IN),
            (Events::OUT, News::OUT),
        ];
        if let Some((_, news)) = news.into_iter().find(|(events, _)| now.intersects(*events)) {
            open.tell(unix, news, self.fd);
        }
    }
}

/// Sets or clears `O_ASYNC` by way of descriptor `fd`.
///
/// # Errors
/// `ENOMEM`.
pub(super) fn set(cx: &Cx, open: &Rc<Open>, fd: u32, on: bool) -> Result<(), Errno> {
    let flags = open.flags.get();
    if on == (flags & FASYNC != 0) {
        return Ok(());
    }
    let listener = match on {
        true => Some(listen(cx, open, fd)?),
        false => None,
    };
    drop(open.told().asynchronous.replace(listener));
    open.flags.set(if on { flags | FASYNC } else { flags & !FASYNC });
    Ok(())
}

fn listen(cx: &Cx, open: &Rc<Open>, fd: u32) -> Result<Rc<Asynchronous>, Errno> {
    let charge = cx.pay(BYTES)?;
    let listener = Rc::new_cyclic(|this| Asynchronous {
        open: Rc::downgrade(open),
        fd,
        due: Cell::new(false),
        run_queue: cx.unix.run_queue.clone(),
        this: this.clone(),
        heard: RefCell::default(),
        _charge: charge,
    });
    let mut interest = Events::empty();
    interest.set(Events::READABLE, open.can_read());
    interest.set(Events::WRITABLE, open.can_write());
    let weak: Weak<dyn Listener> = listener.this.clone();
    // As on Linux nothing is told of the others; what a signal itself makes ready must not be.
    let inode = open.file.inode();
    let tells = match &inode.kind {
        Kind::Fifo | Kind::Socket | Kind::Character(_) | Kind::Pts => true,
        kind => matches!(kind, Kind::Anonymous("inotify")),
    };
    if tells {
        *listener.heard.borrow_mut() = open.file.listen(cx, interest, &weak);
    }
    Ok(listener)
}
