//! Waiting without blocking the server: queues of threads whose calls will be tried
//! again, and the run queue of those whose turn it is.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, OnceCell, RefCell};

use crate::account::{Charge, What};
use crate::errno::Errno;
use crate::machine::Urgency;
use crate::thread::Thread;
use crate::unix::Unix;
use crate::weak_list::WeakList;

/// Threads that have something to do: a call to be tried again, a signal to take.
#[derive(Default)]
pub struct RunQueue {
    threads: RefCell<VecDeque<Rc<Thread>>>,
    /// Sockets of native tasks that something has happened to.
    natives: RefCell<Vec<u64>>,
    /// Those who have it when all others have had theirs, in the queue or at work: the ordinary ones, and those in the
    /// background.
    held: [RefCell<VecDeque<Rc<Thread>>>; 2],
    /// What is done before they have it.
    later: RefCell<Vec<Rc<dyn Later>>>,
    any_later: Cell<bool>,
    /// How many they are; looked at with every call.
    len: Cell<usize>,
}

/// Something that is to be done once nobody is at work in the middle of a call: where many cells may
/// be borrowed, signals cannot be sent.
pub trait Later {
    /// Does it.
    fn run(&self, unix: &Unix);
}

impl RunQueue {
    /// Adds `thread`, once.
    pub fn push(&self, thread: &Rc<Thread>) {
        if !thread.queued.replace(true) {
            self.threads.borrow_mut().push_back(thread.clone());
            self.len.set(self.len.get() + 1);
        }
    }

    /// Takes `thread` out until [`Self::release`], if it is in the queue: whether it was.
    #[must_use]
    pub fn hold(&self, thread: &Rc<Thread>, urgency: Urgency) -> bool {
        let mut threads = self.threads.borrow_mut();
        let found = threads.iter().rposition(|queued| Rc::ptr_eq(queued, thread));
        let Some(held) = found.and_then(|index| threads.remove(index)) else { return false };
        self.len.set(self.len.get() - 1);
        self.held[urgency as usize].borrow_mut().push_back(held);
        true
    }

    /// Of those who were held back the first `most` are in the queue again; whether there are more.
    #[must_use]
    pub fn release(&self, urgency: Urgency, most: usize) -> bool {
        let mut held = self.held[urgency as usize].borrow_mut();
        let count = held.len().min(most);
        self.len.set(self.len.get() + count);
        self.threads.borrow_mut().extend(held.drain(..count));
        !held.is_empty()
    }

    /// Adds a native task's socket, which is not in it.
    pub fn push_native(&self, socket: u64) {
        self.natives.borrow_mut().push(socket);
        self.len.set(self.len.get() + 1);
    }

    /// Room for so many sockets of native tasks.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn reserve_natives(&self, count: usize) -> Result<(), Errno> {
        let mut natives = self.natives.borrow_mut();
        let more = count.saturating_sub(natives.len());
        natives.try_reserve(more).map_err(|_| Errno::ENOMEM)
    }

    /// Next of the sockets of native tasks.
    #[must_use]
    pub fn pop_native(&self) -> Option<u64> {
        let socket = self.natives.borrow_mut().pop()?;
        self.len.set(self.len.get() - 1);
        Some(socket)
    }

    /// Has `what` done soon; once for each time that it is asked for, so whoever asks sees to it that
    /// nothing waits twice.
    pub fn later(&self, what: Rc<dyn Later>) {
        self.later.borrow_mut().push(what);
        self.any_later.set(true);
        self.len.set(self.len.get() + 1);
    }

    /// Whether something is to be done now that nobody is at work.
    #[inline(always)]
    #[must_use]
    pub fn has_later(&self) -> bool {
        self.any_later.get()
    }

    /// Does it.
    #[cold]
    #[inline(never)]
    pub fn do_later(&self, unix: &Unix) {
        let all = self.later.take();
        self.any_later.set(false);
        self.len.set(self.len.get() - all.len());
        all.iter().for_each(|later| later.run(unix));
    }

    /// Whether nobody has anything to do.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    /// The next thread with something to do; when there is none more, native tasks have their turn.
    #[must_use]
    pub fn pop(&self) -> Option<Rc<Thread>> {
        let thread = self.threads.borrow_mut().pop_front()?;
        self.len.set(self.len.get() - 1);
        thread.queued.set(false);
        Some(thread)
    }
}

/// Something that outlives a call and wants to know whenever a condition may have changed
/// (an epoll's entry).
pub trait Listener {
    /// The condition may hold now. Only cells change here: nobody is called. Whether it is
    /// one of those of whom one that does something about it is enough, and does
    /// (`EPOLLEXCLUSIVE`); with `enough`, one does already.
    fn notify(&self, enough: bool) -> bool;
}

/// Where queues find a thread, as long as it is there: it is small, and left in queues when the thread has ended.
#[derive(Default)]
pub struct Seat(RefCell<Weak<Thread>>);

impl Seat {
    /// The one of `thread`.
    pub(crate) fn of(thread: &Rc<Thread>) -> &Rc<Self> {
        thread.seat.get_or_init(|| Rc::new(Self(RefCell::new(Rc::downgrade(thread)))))
    }

    /// Its thread, as long as it is there.
    pub(crate) fn thread(&self) -> Option<Rc<Thread>> {
        self.0.borrow().upgrade()
    }

    /// Its thread has ended.
    pub fn leave(&self) {
        drop(self.0.take());
    }
}

/// A thread and the serial number of its call. Weak: a queue may be its own process's.
struct Waiter(Rc<Seat>, u64);

impl Waiter {
    /// Whether it is the present call of `thread`.
    fn is_of(&self, thread: &Rc<Thread>) -> bool {
        self.1 == thread.wait_serial.get() && Rc::ptr_eq(&self.0, Seat::of(thread))
    }

    /// The thread, if the call still waits.
    fn thread(&self) -> Option<Rc<Thread>> {
        let thread = self.0.thread();
        thread.filter(|thread| thread.wait_serial.get() == self.1)
    }

    /// Lets the call be tried again; whether it still waited.
    fn wake(&self) -> bool {
        let thread = self.0.thread();
        thread.is_some_and(|thread| thread.wake(self.1))
    }
}

/// What a listener keeps of a queue as long as it listens.
pub struct Listening(Rc<WeakList<dyn Listener>>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.one_has_ended();
    }
}

/// Threads that wait for one condition.
#[derive(Default)]
pub struct WaitQueue {
    /// Whether there may be anybody in either list: what most wakes look at only.
    watched: Cell<bool>,
    waiters: RefCell<Vec<Waiter>>,
    /// What room for more than [`FEW`] costs the user who needed it.
    charge: Cell<Option<Box<Charge>>>,
    listeners: OnceCell<Rc<WeakList<dyn Listener>>>,
}

/// What room for a waiter costs, with a seat that has nobody but the queue.
const WAITER_BYTES: usize = size_of::<Waiter>() + size_of::<Seat>() + 2 * size_of::<usize>();
/// Waiters that cost nothing: what has a queue is paid for with room for so many.
const FEW: usize = 8;

impl WaitQueue {
    /// The thread's present call waits here (as well); see [`crate::Cx::block_on`]. All that it adds
    /// to one queue it adds at once, so that once is enough.
    ///
    /// # Errors
    /// `ENOMEM` if its user cannot pay for the room.
    pub fn add(&self, thread: &Rc<Thread>) -> Result<(), Errno> {
        self.watched.set(true);
        let mut waiters = self.waiters.borrow_mut();
        if waiters.last().is_some_and(|last| last.is_of(thread)) {
            return Ok(());
        }
        if waiters.len() == waiters.capacity() {
            self.grow(&mut waiters, thread)?;
        }
        waiters.push(Waiter(Seat::of(thread).clone(), thread.wait_serial.get()));
        Ok(())
    }

    /// Makes room for another waiter.
    fn grow(&self, waiters: &mut Vec<Waiter>, thread: &Rc<Thread>) -> Result<(), Errno> {
        // Entries of calls that have ended since make room before the queue grows.
        waiters.retain(|waiter| waiter.thread().is_some());
        let room = (2 * waiters.len()).max(FEW / 2);
        let done = self.resize(waiters, room, thread);
        if waiters.len() < waiters.capacity() { Ok(()) } else { done }
    }

    /// Room for so many, no more and no less.
    fn resize(
        &self,
        waiters: &mut Vec<Waiter>,
        room: usize,
        thread: &Rc<Thread>,
    ) -> Result<(), Errno> {
        let charge = match room > FEW {
            true => {
                let bytes = room * WAITER_BYTES;
                Some(Box::new(Charge::new(&thread.process.user(), What::Heap, bytes as u64)?))
            }
            false => None,
        };
        let mut moved = Vec::new();
        moved.try_reserve_exact(room).map_err(|_| Errno::ENOMEM)?;
        moved.append(waiters);
        *waiters = moved;
        drop(self.charge.replace(charge));
        Ok(())
    }

    /// `listener` hears of every wake until it is dropped, and with it what is returned.
    #[must_use]
    pub fn listen(&self, listener: Weak<dyn Listener>) -> Listening {
        self.watched.set(true);
        let listeners = self.listeners.get_or_init(Rc::default);
        listeners.push(listener);
        Listening(listeners.clone())
    }

    /// The condition may hold now: everybody tries again.
    #[inline]
    pub fn wake_all(&self) {
        if self.watched.get() {
            self.wake_everybody();
        }
    }

    /// As [`Self::wake_all`]; whether any thread waited.
    #[inline(never)]
    pub fn wake_everybody(&self) -> bool {
        let listens = self.listeners.get().is_some_and(|all| !all.is_empty());
        self.watched.set(listens);
        let any = self.wake_waiters();
        self.notify();
        any
    }

    /// As [`Self::wake_all`], but without telling the listeners; whether anybody waited.
    pub fn wake_waiters(&self) -> bool {
        let mut any = false;
        if !self.waiters.borrow().is_empty() {
            let mut waiters = self.waiters.take();
            for waiter in waiters.drain(..) {
                any |= waiter.wake();
            }
            // The room is kept for the next ones, if it is for few.
            let mut now = self.waiters.borrow_mut();
            if now.is_empty() {
                if waiters.capacity() <= FEW {
                    core::mem::swap(&mut *now, &mut waiters);
                } else {
                    drop(self.charge.take());
                }
            }
        }
        any
    }

    /// Tells the listeners.
    fn notify(&self) {
        let Some(listeners) = self.listeners.get() else { return };
        let mut enough = false;
        listeners.visit(|listener| enough |= listener.notify(enough));
    }

    /// Wakes the first `count` that still wait; how many there were.
    pub fn wake(&self, count: usize) -> usize {
        let mut woken = 0;
        while woken < count {
            let first = {
                let mut waiters = self.waiters.borrow_mut();
                if waiters.is_empty() {
                    break;
                }
                waiters.remove(0)
            };
            woken += usize::from(first.wake());
        }
        self.notify();
        woken
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.waiters.borrow().iter().any(|waiter| waiter.thread().is_some())
    }

    /// Of how many who wait `is` says so.
    pub fn count(&self, is: impl Fn(&Thread) -> bool) -> usize {
        let waiters = self.waiters.borrow();
        waiters.iter().filter_map(Waiter::thread).filter(|thread| is(thread)).count()
    }
}
