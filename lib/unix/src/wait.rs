//! Waiting without blocking the server: queues of threads whose calls will be tried
//! again, and the run queue of those whose turn it is.

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use crate::thread::Thread;

/// Threads that have something to do: a call to be tried again, a signal to take.
#[derive(Default)]
pub struct RunQueue {
    threads: RefCell<VecDeque<Rc<Thread>>>,
}

impl RunQueue {
    /// Adds `thread`, once.
    pub fn push(&self, thread: &Rc<Thread>) {
        if !thread.queued.replace(true) {
            self.threads.borrow_mut().push_back(thread.clone());
        }
    }

    /// Whether nobody has anything to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.threads.borrow().is_empty()
    }

    /// The next thread with something to do.
    #[must_use]
    pub fn pop(&self) -> Option<Rc<Thread>> {
        let thread = self.threads.borrow_mut().pop_front()?;
        thread.queued.set(false);
        Some(thread)
    }
}

/// Threads that wait for one condition.
#[derive(Default)]
pub struct WaitQueue {
    waiters: RefCell<Vec<(Rc<Thread>, u64)>>,
}

impl WaitQueue {
    /// The thread's present call waits here (as well); see [`crate::Cx::block_on`].
    pub fn add(&self, thread: &Rc<Thread>) {
        let serial = thread.wait_serial.get();
        let mut waiters = self.waiters.borrow_mut();
        // Entries of calls that have ended since are dropped before the queue grows.
        if waiters.len() == waiters.capacity() {
            waiters.retain(|(waiter, serial)| waiter.wait_serial.get() == *serial);
        }
        waiters.push((thread.clone(), serial));
    }

    /// The condition may hold now: everybody tries again.
    pub fn wake_all(&self) {
        for (thread, serial) in self.waiters.take() {
            thread.wake(serial);
        }
    }

    /// Wakes the first `count` that still wait; how many there were.
    pub fn wake(&self, count: usize) -> usize {
        let mut woken = 0;
        while woken < count {
            let first = {
                let mut waiters = self.waiters.borrow_mut();
                if waiters.is_empty() {
                    return woken;
                }
                waiters.remove(0)
            };
            woken += usize::from(first.0.wake(first.1));
        }
        woken
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.waiters.borrow().iter().any(|(thread, serial)| thread.wait_serial.get() == *serial)
    }
}
