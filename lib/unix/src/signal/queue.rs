//! Signals that were sent and not taken yet.

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use super::info::Info;
use super::set::{self, bit};

/// The pending signals of a thread or of a process.
#[derive(Default)]
pub struct Queue {
    set: Cell<u64>,
    infos: RefCell<Vec<Info>>,
}

impl Queue {
    /// Which signals are there.
    #[must_use]
    pub fn set(&self) -> u64 {
        self.set.get()
    }

    /// How many signals are there, real-time signals counted each.
    #[must_use]
    pub fn len(&self) -> usize {
        self.infos.borrow().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.get() == 0
    }

    /// Adds a signal. One below the real-time signals is there only once; then false.
    pub fn add(&self, info: Info) -> bool {
        if info.signal < set::FIRST_REAL_TIME && self.set.get() & bit(info.signal) != 0 {
            return false;
        }
        self.set.set(self.set.get() | bit(info.signal));
        self.infos.borrow_mut().push(info);
        true
    }

    /// Takes the signal that is due first among those in `wanted`.
    pub fn take(&self, wanted: u64) -> Option<Info> {
        let ready = self.set.get() & wanted;
        let first = ready & set::SYNCHRONOUS;
        let signal = set::lowest(if first != 0 { first } else { ready })?;
        let mut infos = self.infos.borrow_mut();
        let at = infos.iter().position(|info| info.signal == signal)?;
        let info = infos.remove(at);
        if !infos.iter().any(|info| info.signal == signal) {
            self.set.set(self.set.get() & !bit(signal));
        }
        Some(info)
    }

    /// Forgets all signals in `which`.
    pub fn remove(&self, which: u64) {
        if self.set.get() & which != 0 {
            self.infos.borrow_mut().retain(|info| bit(info.signal) & which == 0);
            self.set.set(self.set.get() & !which);
        }
    }

    /// Whether a signal of this timer (number + 1) is queued.
    #[must_use]
    pub fn has_timer(&self, timer: u32) -> bool {
        self.infos.borrow().iter().any(|info| info.timer == timer)
    }

    /// Forgets the signals of a deleted timer.
    pub fn remove_timer(&self, timer: u32) {
        let mut infos = self.infos.borrow_mut();
        infos.retain(|info| info.timer != timer);
        self.set.set(infos.iter().fold(0, |set, info| set | bit(info.signal)));
    }
}
