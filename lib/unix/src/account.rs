//! Who pays: what programs make the server keep is charged to their user, and refused
//! before it could harm the server or other users.
//!
//! A [`Charge`] lies in the object that it pays for, and ends with it. Everything that a
//! program can make the server keep is made with one ([`Cx::pay`]), or grows one. The rules
//! (decision 0024):
//! - nobody gets anything when less than the floor is left: that is for what calls need while
//!   they are at work;
//! - all users but 0 leave a reserve to user 0;
//! - no user but 0 has more than half of anything.

use alloc::collections::BTreeMap;
use alloc::rc::{Rc, Weak};
use core::cell::{Cell, RefCell};

use crate::call::Cx;
use crate::errno::Errno;
use crate::machine::{Gauge, Machine};
use crate::memory::Memory;
use crate::process::Process;
use crate::stream::socket::inet::ANY_PORTS;

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Bytes of the server's own memory.
    Heap,
    /// Frames of files, pipes, sockets and terminals. (Those of processes are theirs: who
    /// has the most of them is killed when there are no more.)
    Frames,
    /// Pages that pipes can hold.
    PipePages,
    /// Queued real-time signals and timers.
    Signals,
    /// Open files under way in messages.
    Flights,
    /// Pages of kernel memory.
    Kernel,
    /// Ports among those that are given to who wants any.
    Ports,
    /// inotifies.
    Inotifies,
    /// Pseudo-terminals.
    Terminals,
    /// Events of asynchronous I/O.
    Events,
}

/// Kinds of [`What`].
const KINDS: usize = 10;
/// Of the heap and of the frames nobody gets the last sixteenth.
pub(crate) const FLOOR: u64 = 16;
/// Users but 0 leave an eighth more.
const RESERVE: u64 = 8;
/// Linux's `pipe-user-pages-soft`: pages that the pipes of a user may hold.
pub const PIPE_PAGES: u64 = 16_384;

/// What is known of a user.
pub struct User {
    /// The user's number.
    pub uid: u32,
    used: [Cell<u64>; KINDS],
    heap: Gauge,
    kernel: Gauge,
    memory: Rc<Memory>,
}

impl User {
    /// How much it has.
    #[must_use]
    pub fn used(&self, what: What) -> u64 {
        self.used[what as usize].get()
    }

    fn change(&self, what: What, from: u64, to: u64) {
        let used = &self.used[what as usize];
        used.set(used.get().wrapping_add(to).wrapping_sub(from));
    }

    /// Whether the user can have so much more.
    ///
    /// # Errors
    /// `ENOMEM`.
    #[inline]
    pub fn check(&self, what: What, more: u64) -> Result<(), Errno> {
        let frames = self.memory.total() as u64;
        let (total, left) = match what {
            What::Heap => (self.heap)(),
            What::Kernel => (self.kernel)(),
            What::Frames => (frames, self.memory.available() as u64),
            What::PipePages => (2 * PIPE_PAGES.min(frames / 8), u64::MAX),
            What::Ports => (u64::from(ANY_PORTS), u64::MAX),
            // Counted against other limits, or by `Charge::share`.
            What::Signals | What::Flights | What::Inotifies | What::Terminals | What::Events => {
                return Ok(());
            }
        };
        let is_root = self.uid == 0;
        let kept = total / FLOOR + if is_root { 0 } else { total / RESERVE };
        let fits = left >= more.saturating_add(kept)
            && (is_root || self.used(what).saturating_add(more) <= total / 2);
        if fits { Ok(()) } else { Err(Errno::ENOMEM) }
    }
}

/// Whether user `uid`, who has `own` of `total` things of which all users have `taken`, can have `more`.
#[must_use]
pub fn is_fair(uid: u32, (own, taken, total): (u64, u64, u64), more: u64) -> bool {
    let (kept, most) = if uid == 0 { (0, total) } else { (total / RESERVE, total.div_ceil(2)) };
    taken.saturating_add(more) <= total - kept && (uid == 0 || own.saturating_add(more) <= most)
}

/// All users that have anything.
pub struct Accounts {
    users: RefCell<BTreeMap<u32, Weak<User>>>,
    heap: Gauge,
    kernel: Gauge,
    memory: Rc<Memory>,
}

impl Accounts {
    /// None.
    #[must_use]
    pub fn new(machine: &dyn Machine, memory: &Rc<Memory>) -> Self {
        let (heap, kernel) = (machine.heap_gauge(), machine.kernel_gauge());
        Self { users: RefCell::default(), heap, kernel, memory: memory.clone() }
    }

    /// The user with this number.
    #[must_use]
    pub fn user(&self, uid: u32) -> Rc<User> {
        let mut users = self.users.borrow_mut();
        if let Some(user) = users.get(&uid).and_then(Weak::upgrade) {
            return user;
        }
        users.retain(|_, user| user.strong_count() > 0);
        let (heap, kernel, memory) = (self.heap, self.kernel, self.memory.clone());
        let user = Rc::new(User { uid, used: Default::default(), heap, kernel, memory });
        users.insert(uid, Rc::downgrade(&user));
        user
    }
}

/// What an object costs its user, as long as it is there.
pub struct Charge {
    user: Rc<User>,
    what: What,
    amount: Cell<u64>,
}

impl Charge {
    /// A charge of nothing, to be changed.
    #[must_use]
    pub fn nothing(user: &Rc<User>, what: What) -> Self {
        Self { user: user.clone(), what, amount: Cell::new(0) }
    }

    /// A charge of so much.
    ///
    /// # Errors
    /// `ENOMEM` if the user cannot have it.
    pub fn new(user: &Rc<User>, what: What, amount: u64) -> Result<Self, Errno> {
        user.check(what, amount)?;
        let charge = Self::nothing(user, what);
        charge.set(amount);
        Ok(charge)
    }

    /// A charge of so many of `total` things, of which all users have `taken`.
    ///
    /// # Errors
    /// `ENOSPC` if the others would have too few.
    pub fn share(
        user: &Rc<User>,
        what: What,
        amount: u64,
        (taken, total): (u64, u64),
    ) -> Result<Self, Errno> {
        if !is_fair(user.uid, (user.used(what), taken, total), amount) {
            return Err(Errno::ENOSPC);
        }
        let charge = Self::nothing(user, what);
        charge.set(amount);
        Ok(charge)
    }

    /// It costs so much more.
    ///
    /// # Errors
    /// `ENOMEM` if the user cannot have it.
    pub fn grow(&self, more: u64) -> Result<(), Errno> {
        self.user.check(self.what, more)?;
        self.set(self.amount.get() + more);
        Ok(())
    }

    /// It costs so much less.
    pub fn shrink(&self, less: u64) {
        self.set(self.amount.get().saturating_sub(less));
    }

    /// It costs so much now, like it or not.
    pub fn set(&self, amount: u64) {
        self.user.change(self.what, self.amount.replace(amount), amount);
    }

    /// What it costs.
    #[must_use]
    pub fn amount(&self) -> u64 {
        self.amount.get()
    }

    /// Who pays.
    #[must_use]
    pub fn user(&self) -> &Rc<User> {
        &self.user
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Counts a signal or a timer of a process against its limit (`RLIMIT_SIGPENDING`).
///
/// # Errors
/// `EAGAIN` at the limit.
pub fn check_signals(process: &Process) -> Result<(), Errno> {
    let limit = process.limit(linux_raw_sys::general::RLIMIT_SIGPENDING);
    if process.user().used(What::Signals) < limit { Ok(()) } else { Err(Errno::EAGAIN) }
}

impl Cx<'_> {
    /// What the caller has made costs its user so many bytes of the server's memory.
    ///
    /// # Errors
    /// `ENOMEM` if it cannot have them.
    pub fn pay(&self, bytes: usize) -> Result<Charge, Errno> {
        Charge::new(&self.process.user(), What::Heap, bytes as u64)
    }

    /// Whether the caller could have so many more bytes of the server's memory.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn check_heap(&self, bytes: usize) -> Result<(), Errno> {
        self.process.user().check(What::Heap, bytes as u64)
    }

    /// A charge of nothing yet for the caller's user.
    #[must_use]
    pub fn charge(&self, what: What) -> Charge {
        Charge::nothing(&self.process.user(), what)
    }
}
