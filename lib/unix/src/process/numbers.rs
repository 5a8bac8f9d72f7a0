//! Namespaces of process numbers (PID): what a process, thread, group or session is called there.
//!
//! Everybody has a number in the first namespace, its [`Pid`]; who was born into another one has one there as well, and in
//! all between. A namespace has two tables, from numbers to ids and back; the first one needs none, so who is there pays
//! nothing. An id leaves the tables when nobody has it any more: no process, no thread, no group, no session.
//!
//! The process with number 1 is the namespace's init: it gets the orphans, and all end with it.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;

use super::pid::Pid;
use super::table::{PID_MAX, RESERVED};
use super::user_space::{Users, is_within as is_within_users};
use super::{Process, namespace, wait};
use crate::account::Charge;
use crate::call::Cx;
use crate::errno::Errno;
use crate::signal::{Info, send};
use crate::unix::Unix;

/// Namespaces are nested no deeper.
pub const MOST_LEVELS: usize = 32;
/// What a namespace costs its user, and what somebody's number in one costs.
const BYTES: usize = 768;
pub(super) const NUMBER_BYTES: usize = 128;
/// The number of init.
const INIT: u32 = 1;

/// A namespace; there is none of this type for the first.
pub struct Numbers {
    /// The number that its files have.
    pub number: u64,
    /// How many are above it.
    pub level: usize,
    /// The one above; none is the first.
    pub above: Option<Rc<Numbers>>,
    /// The namespace of users that it belongs to.
    pub users: Users,
    by_number: RefCell<BTreeMap<u32, Pid>>,
    by_pid: RefCell<BTreeMap<Pid, u32>>,
    /// The number given last.
    last: Cell<u32>,
    /// Its init has ended, with this wait status: nobody is born here any more.
    ended: Cell<bool>,
    /// What init's parent is told that it ended by (`reboot`); 0 is as it was.
    reboot: Cell<u32>,
    _charge: Charge,
}

/// One's own namespace, none being the first, and those above it but the first.
pub fn levels(own: Option<&Rc<Numbers>>) -> impl Iterator<Item = &Rc<Numbers>> {
    core::iter::successors(own, |one| one.above.as_ref())
}

/// The id that is called `number` in `space`.
#[must_use]
pub fn find(space: Option<&Rc<Numbers>>, number: u32) -> Option<Pid> {
    match space {
        None => Some(Pid::from_first(number)),
        Some(space) => space.by_number.borrow().get(&number).copied(),
    }
}

/// What `pid` is called in `space`; 0 is what is not there.
#[must_use]
pub fn shown(space: Option<&Rc<Numbers>>, pid: Pid) -> u32 {
    match space {
        None => pid.first(),
        Some(space) => space.by_pid.borrow().get(&pid).copied().unwrap_or(0),
    }
}

/// The namespace of users that one belongs to.
#[must_use]
pub fn owner(space: Option<&Rc<Numbers>>) -> Users {
    space.and_then(|space| space.users.clone())
}

/// Whether both are the same namespace.
#[must_use]
pub fn same(one: Option<&Rc<Numbers>>, other: Option<&Rc<Numbers>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Rc::ptr_eq(one, other),
        _ => false,
    }
}

/// Whether `one` is `above`, or below it.
#[must_use]
pub fn is_within(one: Option<&Rc<Numbers>>, above: Option<&Rc<Numbers>>) -> bool {
    above.is_none() || levels(one).any(|level| same(Some(level), above))
}

/// A namespace in the caller's own, for its children.
///
/// # Errors
/// `EINVAL` if the children have another one already, `ENOSPC`, `ENOMEM`.
pub(super) fn new(cx: &Cx, users: Users) -> Result<Rc<Numbers>, Errno> {
    let above = cx.process.state.numbers_of_children.borrow().clone();
    let in_users = is_within_users(&users, &owner(above.as_ref()));
    if !same(above.as_ref(), cx.numbers()) || !in_users {
        return Err(Errno::EINVAL);
    }
    let level = levels(above.as_ref()).count() + 1;
    if level > MOST_LEVELS {
        return Err(Errno::ENOSPC);
    }
    let charge = cx.pay(BYTES)?;
    Ok(Rc::new(Numbers {
        number: namespace::new_number(cx),
        level,
        above,
        users,
        by_number: RefCell::default(),
        by_pid: RefCell::default(),
        last: Cell::new(0),
        ended: Cell::new(false),
        reboot: Cell::new(0),
        _charge: charge,
    }))
}

impl Numbers {
    /// Its init, while that runs.
    #[must_use]
    pub fn init(&self, unix: &Unix) -> Option<Rc<Process>> {
        let pid = self.by_number.borrow().get(&INIT).copied()?;
        unix.processes.process(pid).filter(|init| init.ended.get().is_none())
    }

    /// Whether it has, or had, an init.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.last.get() != 0
    }

    /// A free number, or `wanted`.
    fn choose(&self, wanted: Option<u32>) -> Result<u32, Errno> {
        let taken = self.by_number.borrow();
        if self.ended.get() {
            return Err(Errno::ENOMEM);
        }
        if let Some(wanted) = wanted {
            let wrong = wanted != INIT && !self.is_begun() || wanted == 0 || wanted >= PID_MAX;
            return match taken.contains_key(&wanted) {
                _ if wrong => Err(Errno::EINVAL),
                true => Err(Errno::EEXIST),
                false => Ok(wanted),
            };
        }
        let next = |last: u32| if last + 1 < PID_MAX { last + 1 } else { RESERVED };
        let mut number = next(self.last.get());
        for _ in 0..PID_MAX {
            if !taken.contains_key(&number) {
                return Ok(number);
            }
            number = next(number);
        }
        Err(Errno::EAGAIN)
    }

    /// `pid` is called `number` from now on.
    fn enter(&self, pid: Pid, number: u32, chosen: bool) {
        if chosen || !self.is_begun() {
            self.last.set(number);
        }
        self.by_number.borrow_mut().insert(number, pid);
        self.by_pid.borrow_mut().insert(pid, number);
    }

    fn leave(&self, pid: Pid) {
        if let Some(number) = self.by_pid.borrow_mut().remove(&pid) {
            self.by_number.borrow_mut().remove(&number);
        }
    }

    /// All ids that have a number here, by number.
    #[must_use]
    pub fn all(&self) -> Vec<Pid> {
        self.by_number.borrow().values().copied().collect()
    }

    /// The first id whose number is `from` or more, and the number.
    #[must_use]
    pub fn next(&self, from: u32) -> Option<(u32, Pid)> {
        self.by_number.borrow().range(from..).next().map(|(number, pid)| (*number, *pid))
    }

    /// The number given last.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.last.get()
    }

    /// The next number is the one behind `number`, if it is free.
    ///
    /// # Errors
    /// `EINVAL` for what is no number.
    pub fn set_last(&self, number: u64) -> Result<(), Errno> {
        let number = u32::try_from(number).ok().filter(|number| *number < PID_MAX);
        self.last.set(number.ok_or(Errno::EINVAL)?);
        Ok(())
    }
}

/// An id for whoever is born into `space`: `wanted` are its numbers there, in the one above and so on.
///
/// # Errors
/// `EAGAIN` if all are in use; `EINVAL`, `EEXIST`, of those that are wanted; `ENOMEM` if the namespace's init has ended.
pub(super) fn allocate(
    unix: &Unix,
    space: Option<&Rc<Numbers>>,
    wanted: &[u32],
) -> Result<Pid, Errno> {
    let depth = levels(space).count();
    if wanted.len() > depth + 1 {
        return Err(Errno::EINVAL);
    }
    let chosen: Result<Vec<u32>, Errno> = levels(space)
        .enumerate()
        .map(|(index, level)| level.choose(wanted.get(index).copied()))
        .collect();
    let chosen = chosen?;
    let pid = match wanted.get(depth) {
        Some(number) => unix.processes.take_id(*number)?,
        None => unix.processes.allocate_id()?,
    };
    for (index, (level, number)) in levels(space).zip(chosen).enumerate() {
        level.enter(pid, number, wanted.get(index).is_none());
    }
    if let Some(space) = space {
        unix.processes.homes.borrow_mut().insert(pid, space.clone());
    }
    Ok(pid)
}

/// Somebody, of whatever namespace, does not have `pid` any more: its numbers are free if nobody else has it.
pub fn release(unix: &Unix, pid: Pid) {
    let mut homes = unix.processes.homes.borrow_mut();
    if homes.contains_key(&pid) && !unix.processes.in_use(pid) {
        let home = homes.remove(&pid);
        levels(home.as_ref()).for_each(|level| level.leave(pid));
    }
}

/// A process is no more: so are its numbers, unless it led a group or session that is still there. Those that it was
/// the last member of go as well.
pub(super) fn release_process(unix: &Unix, process: &Process) {
    for pid in [process.pid, process.group.get(), process.session.get()] {
        release(unix, pid);
    }
}

/// Whether it is the init of its namespace, the first included.
#[must_use]
pub fn is_init(process: &Process) -> bool {
    process.number == INIT
}

/// A process has ended. If it was an init, all of its namespace are killed, and its parent hears of it when they have
/// ended: whether it has to wait for that.
pub(super) fn ended(unix: &Unix, process: &Rc<Process>) -> bool {
    let Some(space) = process.state.numbers.as_ref().filter(|_| is_init(process)) else {
        return false;
    };
    space.ended.set(true);
    if space.reboot.get() != 0 {
        process.ended.set(Some(space.reboot.get()));
    }
    let others = space.running(unix);
    for other in &others {
        send::send_from_above(unix, other, Info::kernel(l::SIGKILL));
    }
    if others.is_empty() {
        wait::bury_children(unix, process);
    }
    !others.is_empty()
}

/// A process has ended: if it was the last that an init waits for, that one's end is told.
pub(super) fn after_end(unix: &Unix, process: &Rc<Process>) {
    for space in levels(process.state.numbers.as_ref()).filter(|space| space.ended.get()) {
        if space.running(unix).is_empty() {
            let init = space.by_number.borrow().get(&INIT).copied();
            let init = init.and_then(|pid| unix.processes.process(pid));
            if let Some(init) = init.filter(|init| init.state.lingers.replace(false)) {
                wait::bury_children(unix, &init);
                super::end::tell_end(unix, &init);
            }
        }
    }
}

impl Numbers {
    /// The processes in it that have not ended.
    fn running(&self, unix: &Unix) -> Vec<Rc<Process>> {
        let processes = self.all().into_iter().filter_map(|pid| unix.processes.process(pid));
        processes.filter(|process| process.ended.get().is_none()).collect()
    }
}

/// `reboot` in a namespace ends its init, as if by `signal`.
pub(super) fn reboot(cx: &Cx, space: &Rc<Numbers>, signal: u32) {
    space.reboot.set(signal);
    if let Some(init) = space.init(cx.unix) {
        send::send_from_above(cx.unix, &init, Info::kernel(l::SIGKILL));
    }
}
