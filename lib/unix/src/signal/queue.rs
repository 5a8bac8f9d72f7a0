//! Signals that were sent and not taken yet.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use super::info::Info;
use super::set::{self, bit};
use crate::account::{Charge, User, What};
use crate::room::Room;

/// The pending signals of a thread or of a process.
#[derive(Default)]
pub struct Queue {
    set: Cell<u64>,
    infos: RefCell<Vec<Info>>,
    /// What it costs the user.
    charge: RefCell<Option<Charge>>,
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

    /// The signals have changed: what they cost has, too.
    fn count(&self, infos: usize) {
        if let Some(charge) = self.charge.borrow().as_ref() {
            charge.set(infos as u64);
        }
    }

    /// Adds a signal to `user`'s. One below the real-time signals is there only once, and so
    /// is any if the user has too many (`full`); then false.
    pub fn add(&self, info: Info, user: &Rc<User>, full: bool) -> bool {
        let once = info.signal < set::FIRST_REAL_TIME || full;
        if once && self.set.get() & bit(info.signal) != 0 {
            return false;
        }
        self.set.set(self.set.get() | bit(info.signal));
        let mut infos = self.infos.borrow_mut();
        infos.push(info);
        let new = || Charge::nothing(user, What::Signals);
        self.charge.borrow_mut().get_or_insert_with(new).set(infos.len() as u64);
        true
    }

    /// The signal at this place in the order of their arrival; it stays.
    pub fn peek(&self, at: u64) -> Option<Info> {
        self.infos.borrow().get(usize::try_from(at).ok()?).copied()
    }

    /// Takes the signal that is due first among those in `wanted`.
    pub fn take(&self, wanted: u64) -> Option<Info> {
        let ready = self.set.get() & wanted;
        let first = ready & set::SYNCHRONOUS;
        let signal = set::lowest(if first != 0 { first } else { ready })?;
        let mut infos = self.infos.borrow_mut();
        let at = infos.iter().position(|info| info.signal == signal)?;
        let info = infos.remove(at);
        infos.trim();
        self.count(infos.len());
        if !infos.iter().any(|info| info.signal == signal) {
            self.set.set(self.set.get() & !bit(signal));
        }
        Some(info)
    }

    /// Forgets all signals in `which`.
    pub fn remove(&self, which: u64) {
        if self.set.get() & which != 0 {
            let mut infos = self.infos.borrow_mut();
            infos.retain(|info| bit(info.signal) & which == 0);
            infos.trim();
            self.count(infos.len());
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
        infos.trim();
        self.count(infos.len());
        self.set.set(infos.iter().fold(0, |set, info| set | bit(info.signal)));
    }
}
