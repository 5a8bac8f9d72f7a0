//! Linux's asynchronous I/O (`io_setup` and its family): requests that are handed over, and events
//! that say what has become of them.
//!
//! What can be done at once is, when it is handed over, as Linux does it with files in memory; a
//! request for a pipe, socket or terminal that is not ready waits for that and costs nobody a thread.
//! A context belongs to an address space and ends with it.

mod request;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::{Rc, Weak};
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use self::request::{Control, FLAGS, KEY, Request, TELLS, Work, work};
use super::poll::{is_over, read_timespec, set_timeout};
use crate::account::{Charge, What};
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;
use crate::file::Open;
use crate::fs::inode::Kind;
use crate::machine::Access;
use crate::memory::PAGE;
use crate::mm::area::{AREAS_MAX, AreaFlags};
use crate::signal::{OnSignal, mask};
use crate::wait::{Listener, WaitQueue};

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_io_setup, "io_setup", io_setup),
    full(l::__NR_io_destroy, "io_destroy", io_destroy),
    full(l::__NR_io_submit, "io_submit", io_submit),
    full(l::__NR_io_cancel, "io_cancel", io_cancel),
    full(l::__NR_io_getevents, "io_getevents", io_getevents),
    full(l::__NR_io_pgetevents, "io_pgetevents", io_pgetevents),
];

/// Events of all contexts together (`aio-max-nr`).
pub const EVENTS_MAX: u64 = 65_536;
/// More than this no context can have.
const EVENTS_ABSURD: u64 = 0x1000_0000 / size_of::<Event>() as u64;
/// Requests that are taken in one call: others have their turn, too.
const TURN: usize = 64;
/// What a context costs beside its events, and a request that waits beside its ranges.
const CONTEXT_BYTES: usize = 512;
const REQUEST_BYTES: usize = 384;

/// `struct io_event`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    more: i64,
}

/// A context.
pub struct Context {
    /// Its id: the address of a page, where libraries look for a ring and find none.
    id: u64,
    /// Events and requests it can hold.
    most: usize,
    events: RefCell<VecDeque<Event>>,
    /// By number, in the order in which they were handed over.
    waiting: RefCell<BTreeMap<u64, Rc<Request>>>,
    /// Numbers given.
    numbers: Cell<u64>,
    queue: WaitQueue,
    total: Rc<Cell<u64>>,
    _charges: [Charge; 2],
}

impl Drop for Context {
    fn drop(&mut self) {
        self.total.set(self.total.get() - self.most as u64);
    }
}

impl Context {
    /// A number for a request.
    fn number(&self) -> u64 {
        self.numbers.replace(self.numbers.get() + 1)
    }
}

/// The context that argument 0 names.
fn context(cx: &Cx) -> Result<Rc<Context>, Errno> {
    let space = cx.process.space();
    let contexts = space.contexts.borrow();
    let found = contexts.iter().find(|context| context.id == cx.arg(0));
    found.cloned().ok_or(Errno::EINVAL)
}

/// `io_setup(events, id)`.
fn io_setup(cx: &Cx) -> Answer {
    let (most, place) = (u64::from(cx.uint(0)), cx.arg(1));
    if cx.user().read::<u64>(place)? != 0 || most == 0 || most > EVENTS_ABSURD {
        return Err(Errno::EINVAL.into());
    }
    let total = cx.unix.streams.aio_events.clone();
    let all = (total.get(), EVENTS_MAX);
    let events = Charge::share(&cx.process.user(), What::Events, most, all);
    let events = events.map_err(|_| Errno::EAGAIN)?;
    let bytes = cx.pay(CONTEXT_BYTES + most as usize * size_of::<Event>())?;
    let space = cx.process.space();
    if space.area_count() >= AREAS_MAX {
        return Err(Errno::ENOMEM.into());
    }
    space.make_room()?;
    let len = PAGE as u64;
    let id = space.free_range(len, None, false).ok_or(Errno::ENOMEM)?;
    cx.user().write(place, &id)?;
    space.add_anonymous(id, id + len, Access::READ | Access::WRITE, AreaFlags::empty());
    total.set(total.get() + most);
    space.contexts.borrow_mut().push(Rc::new(Context {
        id,
        most: most as usize,
        events: RefCell::default(),
        waiting: RefCell::default(),
        numbers: Cell::new(0),
        queue: WaitQueue::default(),
        total,
        _charges: [events, bytes],
    }));
    Ok(0)
}

/// `io_destroy(id)`.
fn io_destroy(cx: &Cx) -> Answer {
    let context = context(cx)?;
    let space = cx.process.space();
    space.contexts.borrow_mut().retain(|other| !Rc::ptr_eq(other, &context));
    space.unmap(cx.unix, context.id, context.id + PAGE as u64);
    let gone = context.waiting.take();
    context.queue.wake_all();
    drop(gone);
    crate::file::settle(cx.unix);
    Ok(0)
}

/// `io_submit(id, count, controls)`: how many were taken.
fn io_submit(cx: &Cx) -> Answer {
    let context = context(cx)?;
    let count = usize::try_from(cx.arg(1) as i64).map_err(|_| Errno::EINVAL)?;
    let mut done = 0;
    while done < count.min(TURN) {
        let taken = submit(cx, &context, cx.arg(2).wrapping_add(8 * done as u64));
        match taken {
            Ok(()) => done += 1,
            Err(errno) if done == 0 => return Err(errno.into()),
            Err(_) => break,
        }
    }
    Ok(done as u64)
}

fn submit(cx: &Cx, context: &Rc<Context>, place: u64) -> Result<(), Errno> {
    let object: u64 = cx.user().read(place)?;
    let control: Control = cx.user().read(object)?;
    if control.reserved != 0 || (control.len as i64) < 0 || control.flags & !FLAGS != 0 {
        return Err(Errno::EINVAL);
    }
    if context.events.borrow().len() + context.waiting.borrow().len() >= context.most {
        return Err(Errno::EAGAIN);
    }
    let open = cx.file(control.fd)?;
    let counter = match control.flags & TELLS {
        0 => None,
        _ => Some(cx.file(control.told)?),
    };
    let counts = |open: &Rc<Open>| matches!(open.file.inode().kind, Kind::Anonymous("[eventfd]"));
    if counter.as_ref().is_some_and(|open| !counts(open)) {
        return Err(Errno::EINVAL);
    }
    cx.user().write(object + KEY, &0_u32)?;
    let work = work(cx, &control, &open)?;
    let pieces = if let Work::Transfer { ranges, .. } = &work { ranges.len() } else { 0 };
    let charge = cx.pay(REQUEST_BYTES + pieces * size_of::<(u64, usize)>())?;
    let request = Rc::new_cyclic(|this| Request {
        number: context.number(),
        context: Rc::downgrade(context),
        space: Rc::downgrade(&cx.process.space()),
        thread: Rc::downgrade(cx.thread),
        open,
        work,
        data: control.data,
        object,
        counter,
        due: Cell::new(false),
        run_queue: cx.unix.run_queue.clone(),
        this: this.clone(),
        heard: RefCell::default(),
        _charge: charge,
    });
    if let Some(result) = request.attempt(cx) {
        request.finish(cx, result);
        return Ok(());
    }
    let interest = request.work.interest();
    let listener: Weak<dyn Listener> = request.this.clone();
    *request.heard.borrow_mut() = request.open.file.listen(cx, interest, &listener);
    context.waiting.borrow_mut().insert(request.number, request);
    Ok(())
}

/// `io_cancel(id, control, event)`.
fn io_cancel(cx: &Cx) -> Answer {
    let object = cx.arg(1);
    if cx.user().read::<u32>(object.wrapping_add(KEY))? != 0 {
        return Err(Errno::EINVAL.into());
    }
    let context = context(cx)?;
    let waits = |request: &&Rc<Request>| request.object == object;
    let found = context.waiting.borrow().values().find(waits).cloned();
    let request = found.ok_or(Errno::EINVAL)?;
    request.finish(cx, Errno::ECANCELED.result() as i64);
    // It is told by an event, as that of any other.
    Err(Errno::EINPROGRESS.into())
}

/// `io_getevents(id, least, most, events, timeout)`.
fn io_getevents(cx: &Cx) -> Answer {
    let timeout_ns = read_timespec(cx, cx.arg(4))?;
    events(cx, timeout_ns)
}

/// `io_pgetevents(id, least, most, events, timeout, mask)`.
fn io_pgetevents(cx: &Cx) -> Answer {
    let timeout_ns = read_timespec(cx, cx.arg(4))?;
    if cx.arg(5) != 0 {
        let [address, size] = cx.user().read::<[u64; 2]>(cx.arg(5))?;
        mask::set_temporary_mask_from(cx, address, size)?;
    }
    events(cx, timeout_ns)
}

fn events(cx: &Cx, timeout_ns: Option<u64>) -> Answer {
    let context = context(cx)?;
    let (least, most) = (cx.arg(1) as i64, cx.arg(2) as i64);
    let (Ok(least), Ok(most), true) =
        (usize::try_from(least), usize::try_from(most), least <= most)
    else {
        return Err(Errno::EINVAL.into());
    };
    set_timeout(cx, timeout_ns);
    if context.events.borrow().len() < least && !is_over(cx, timeout_ns) {
        cx.on_signal(OnSignal::Return);
        return Err(cx.block_on(&context.queue));
    }
    let mut told = 0;
    while told < most {
        let Some(event) = context.events.borrow().front().copied() else { break };
        let place = cx.arg(3).wrapping_add((told * size_of::<Event>()) as u64);
        match cx.user().write(place, &event) {
            Ok(()) => drop(context.events.borrow_mut().pop_front()),
            Err(errno) if told == 0 => return Err(errno.into()),
            Err(_) => break,
        }
        told += 1;
    }
    Ok(told as u64)
}
