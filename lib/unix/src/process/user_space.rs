//! Namespaces of users: who is called what in them, and who may do what to what belongs to them.
//!
//! The server knows users and groups by their numbers in the first namespace, everywhere: credentials, inodes, accounts. What
//! a program says or is told goes through the maps of its namespace ([`Cx::user_meant`], [`Cx::user_told`] and the like).
//!
//! A capability is one in its holder's namespace and in those below. [`Credentials::may`] asks about the first one: so whoever is
//! in another may do nothing that its room has not allowed by asking [`Credentials::may_in`], with whose it is.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::fmt::{self, Debug};

use linux_raw_sys::general as l;

use super::capability::Capabilities;
use super::identity::Credentials;
use super::{Process, namespace};
use crate::account::Charge;
use crate::call::Cx;
use crate::errno::Errno;
use crate::fs::inode::Inode;

/// Namespaces are nested no deeper.
const MOST_LEVELS: usize = 32;
/// What a namespace costs its user.
const BYTES: usize = 1024;
/// Whom a namespace has no number for.
pub const OVERFLOW: u32 = 65534;

/// Users, or groups.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Users.
    Users,
    /// Groups.
    Groups,
}

/// Numbers that are mapped in a row.
#[derive(Clone, Copy)]
pub(super) struct Line {
    pub inside: u32,
    /// In the first namespace.
    pub outside: u32,
    pub count: u32,
}

/// A namespace; there is none of this type for the first.
pub struct UserSpace {
    /// The number that its files have.
    pub number: u64,
    /// How many are above it.
    level: usize,
    /// The one above; none is the first.
    pub above: Option<Rc<UserSpace>>,
    /// Who made it.
    pub owner: u32,
    users: RefCell<Vec<Line>>,
    groups: RefCell<Vec<Line>>,
    /// `setgroups` is allowed.
    pub(super) sets_groups: Cell<bool>,
    /// Whoever made it could have given a file capabilities.
    pub(super) by_privileged: bool,
    pub(super) charges: RefCell<Vec<Charge>>,
}

impl PartialEq for UserSpace {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for UserSpace {}

impl Debug for UserSpace {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "user:[{}]", self.number)
    }
}

/// A namespace of users; none is the first.
pub type Users = Option<Rc<UserSpace>>;

impl UserSpace {
    pub(super) fn lines(&self, kind: Kind) -> &RefCell<Vec<Line>> {
        match kind {
            Kind::Users => &self.users,
            Kind::Groups => &self.groups,
        }
    }

    fn told(&self, kind: Kind, id: u32) -> Option<u32> {
        let lines = self.lines(kind).borrow();
        let line = lines.iter().find(|line| id.wrapping_sub(line.outside) < line.count)?;
        Some(line.inside + (id - line.outside))
    }

    fn meant(&self, kind: Kind, number: u32) -> Option<u32> {
        let lines = self.lines(kind).borrow();
        let line = lines.iter().find(|line| number.wrapping_sub(line.inside) < line.count)?;
        Some(line.outside + (number - line.inside))
    }
}

/// What `id` is called in `space`, if it is called anything there.
#[must_use]
pub fn called(space: &Users, kind: Kind, id: u32) -> Option<u32> {
    match space {
        None => Some(id),
        Some(space) => space.told(kind, id),
    }
}

/// The id that is called `number` in `space`.
#[must_use]
pub fn meant(space: &Users, kind: Kind, number: u32) -> Option<u32> {
    match space {
        None => Some(number),
        Some(space) => space.meant(kind, number),
    }
}

/// Whether `space` is `above`, or below it.
#[must_use]
pub fn is_within(space: &Users, above: &Users) -> bool {
    let mut at = space;
    while at != above {
        let Some(one) = at else { return false };
        at = &one.above;
    }
    true
}

impl Credentials {
    /// Whether the capability is in effect in the holder's own namespace.
    #[must_use]
    pub const fn may_here(&self, capability: u32) -> bool {
        self.capabilities.effective >> capability & 1 != 0
    }

    /// Whether it may what the capability allows, to what belongs to `space`: it has it there or above, or it made the
    /// namespace, in its own, that this one is or is in.
    #[must_use]
    pub fn may_in(&self, space: &Users, capability: u32) -> bool {
        let mut at = space;
        loop {
            if *at == self.users {
                return self.may_here(capability);
            }
            let Some(one) = at else { return false };
            if one.above == self.users && one.owner == self.euid {
                return true;
            }
            at = &one.above;
        }
    }

    /// Whether it may what the capability allows, to this file: its user and group are known in the holder's namespace.
    #[must_use]
    pub fn may_to(&self, inode: &Inode, capability: u32) -> bool {
        let known = |kind, id| called(&self.users, kind, id).is_some();
        self.may_here(capability)
            && (self.users.is_none()
                || known(Kind::Users, inode.uid.get()) && known(Kind::Groups, inode.gid.get()))
    }

    /// Whether it is user 0 of its namespace who has this id.
    #[must_use]
    pub fn is_root(&self, id: u32) -> bool {
        self.root() == Some(id)
    }

    /// User 0 of its namespace.
    #[must_use]
    pub fn root(&self) -> Option<u32> {
        meant(&self.users, Kind::Users, 0)
    }

    /// Whether `setgroups` is allowed where it is.
    pub(super) fn may_set_groups(&self) -> bool {
        let allowed =
            |space: &Rc<UserSpace>| space.sets_groups.get() && !space.groups.borrow().is_empty();
        self.may_here(l::CAP_SETGID) && self.users.as_ref().is_none_or(allowed)
    }

    /// It is in `space` from now on, and may anything there.
    pub(super) fn enter(&mut self, space: Users) {
        self.users = space;
        self.capabilities = Capabilities::default();
    }
}

impl Cx<'_> {
    /// The caller's namespace of users.
    #[must_use]
    pub fn users(&self) -> Users {
        self.process.credentials.borrow().users.clone()
    }

    /// What the caller is told of a user.
    #[must_use]
    pub fn user_told(&self, id: u32) -> u32 {
        self.process.sees_user(id)
    }

    /// What it is told of a group.
    #[must_use]
    pub fn group_told(&self, id: u32) -> u32 {
        called(&self.process.credentials.borrow().users, Kind::Groups, id).unwrap_or(OVERFLOW)
    }

    /// Whom the caller calls so; `u32::MAX` is nobody.
    ///
    /// # Errors
    /// `EINVAL` if it is called nothing.
    pub fn user_meant(&self, number: u32) -> Result<u32, Errno> {
        self.meant(Kind::Users, number)
    }

    /// As [`Self::user_meant`], of a group.
    ///
    /// # Errors
    /// As there.
    pub fn group_meant(&self, number: u32) -> Result<u32, Errno> {
        self.meant(Kind::Groups, number)
    }

    fn meant(&self, kind: Kind, number: u32) -> Result<u32, Errno> {
        if number == u32::MAX {
            return Ok(number);
        }
        meant(&self.process.credentials.borrow().users, kind, number).ok_or(Errno::EINVAL)
    }
}

impl Process {
    /// Whether `who`, who may look into it else, may see its memory: it is anybody's to see, or `who` is privileged
    /// where the program began, which may be above where it is now.
    #[must_use]
    pub fn shows_memory(&self, who: &Credentials) -> bool {
        let state = &self.state;
        !state.not_dumpable.get() || who.may_in(&state.seen_from.borrow(), l::CAP_SYS_PTRACE)
    }

    /// What it is told of a user.
    #[must_use]
    pub fn sees_user(&self, id: u32) -> u32 {
        called(&self.credentials.borrow().users, Kind::Users, id).unwrap_or(OVERFLOW)
    }
}

/// A namespace of users in the caller's.
///
/// # Errors
/// `ENOSPC` too deep, `EPERM` in another root directory, or if the caller is not known in its own; `ENOMEM`.
pub(super) fn new(cx: &Cx) -> Result<Rc<UserSpace>, Errno> {
    let who = cx.process.credentials.borrow();
    let above = who.users.clone();
    let level = above.as_ref().map_or(0, |above| above.level) + 1;
    if level > MOST_LEVELS {
        return Err(Errno::ENOSPC);
    }
    let known = called(&above, Kind::Users, who.euid).is_some()
        && called(&above, Kind::Groups, who.egid).is_some();
    if !known || crate::fs::is_elsewhere(cx) {
        return Err(Errno::EPERM);
    }
    let charge = cx.pay(BYTES)?;
    let sets_groups = above.as_ref().is_none_or(|above| above.sets_groups.get());
    Ok(Rc::new(UserSpace {
        number: namespace::new_number(cx),
        level,
        owner: who.euid,
        users: RefCell::default(),
        groups: RefCell::default(),
        sets_groups: Cell::new(sets_groups),
        by_privileged: who.may_here(l::CAP_SETFCAP),
        charges: RefCell::new(alloc::vec![charge]),
        above,
    }))
}
