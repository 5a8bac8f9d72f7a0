//! Who a process is: ids and credentials.

use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;

use linux_raw_sys::general as l;
use zerocopy::IntoBytes;

use super::capability::Capabilities;
use super::user_space::Users;
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;
use crate::stream::socket::netlink::connector;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_getpid, "getpid", getpid),
    full(l::__NR_getppid, "getppid", getppid),
    full(l::__NR_gettid, "gettid", gettid),
    full(l::__NR_getuid, "getuid", getuid),
    full(l::__NR_geteuid, "geteuid", geteuid),
    full(l::__NR_getgid, "getgid", getgid),
    full(l::__NR_getegid, "getegid", getegid),
    full(l::__NR_getresuid, "getresuid", getresuid),
    full(l::__NR_getresgid, "getresgid", getresgid),
    full(l::__NR_setuid, "setuid", setuid),
    full(l::__NR_setgid, "setgid", setgid),
    full(l::__NR_setreuid, "setreuid", setreuid),
    full(l::__NR_setregid, "setregid", setregid),
    full(l::__NR_setresuid, "setresuid", setresuid),
    full(l::__NR_setresgid, "setresgid", setresgid),
    full(l::__NR_setfsuid, "setfsuid", setfsuid),
    full(l::__NR_setfsgid, "setfsgid", setfsgid),
    full(l::__NR_getgroups, "getgroups", getgroups),
    full(l::__NR_setgroups, "setgroups", setgroups),
];

/// User and group identities.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Credentials {
    pub uid: u32,
    pub euid: u32,
    pub suid: u32,
    pub fsuid: u32,
    pub gid: u32,
    pub egid: u32,
    pub sgid: u32,
    pub fsgid: u32,
    pub groups: Rc<Vec<u32>>,
    pub capabilities: Capabilities,
    /// The namespace in which it has these; none is the first.
    pub users: Users,
}

/// The real, effective and saved id of a kind.
pub(super) type Ids = [u32; 3];
/// "Leave it as it is."
const SAME: u32 = u32::MAX;

/// By which of its ids and capabilities somebody looks into another process (`PTRACE_MODE_*CREDS`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookingBy {
    /// The real ones and what is permitted: to trace it.
    Real,
    /// Those for files and what is in effect: in `/proc`.
    Files,
}

impl Credentials {
    /// Whether the capability (`CAP_*`) is in effect, in the first namespace of users.
    #[must_use]
    pub const fn may(&self, capability: u32) -> bool {
        self.users.is_none() && self.may_here(capability)
    }

    /// Whether it may look into a process with the credentials `whose`: that one's ids are all its own, and it may all that
    /// that one may; or it may look into anybody's there.
    #[must_use]
    pub fn may_look_into(&self, whose: &Self, by: LookingBy) -> bool {
        let (uid, gid, held) = match by {
            LookingBy::Real => (self.uid, self.gid, self.capabilities.permitted),
            LookingBy::Files => (self.fsuid, self.fsgid, self.capabilities.effective),
        };
        let same = whose.users() == [uid; 3]
            && whose.groups() == [gid; 3]
            && whose.users == self.users
            && whose.capabilities.permitted & !held == 0;
        same || self.may_in(&whose.users, l::CAP_SYS_PTRACE)
    }

    /// Those that decide what it may do.
    fn in_effect(&self) -> [u32; 4] {
        [self.euid, self.fsuid, self.egid, self.fsgid]
    }

    fn users(&self) -> Ids {
        [self.uid, self.euid, self.suid]
    }

    fn groups(&self) -> Ids {
        [self.gid, self.egid, self.sgid]
    }

    fn set_users(&mut self, ids: Ids) {
        [self.uid, self.euid, self.suid] = ids;
        self.fsuid = ids[1];
    }

    fn set_groups(&mut self, ids: Ids) {
        [self.gid, self.egid, self.sgid] = ids;
        self.fsgid = ids[1];
    }
}

fn getpid(cx: &Cx) -> Answer {
    Ok(u64::from(cx.process.number))
}

fn getppid(cx: &Cx) -> Answer {
    Ok(u64::from(cx.process.parent_number.get()))
}

fn gettid(cx: &Cx) -> Answer {
    Ok(u64::from(cx.thread.own_tid.get()))
}

fn getuid(cx: &Cx) -> Answer {
    Ok(cx.user_told(cx.process.credentials.borrow().uid).into())
}

fn geteuid(cx: &Cx) -> Answer {
    Ok(cx.user_told(cx.process.credentials.borrow().euid).into())
}

fn getgid(cx: &Cx) -> Answer {
    Ok(cx.group_told(cx.process.credentials.borrow().gid).into())
}

fn getegid(cx: &Cx) -> Answer {
    Ok(cx.group_told(cx.process.credentials.borrow().egid).into())
}

/// Writes three ids to the three addresses that are the arguments.
fn write_ids(cx: &Cx, ids: Ids) -> Answer {
    for (index, id) in ids.iter().enumerate() {
        cx.user().write(cx.arg(index), id)?;
    }
    Ok(0)
}

fn getresuid(cx: &Cx) -> Answer {
    let ids = cx.process.credentials.borrow().users().map(|id| cx.user_told(id));
    write_ids(cx, ids)
}

fn getresgid(cx: &Cx) -> Answer {
    let ids = cx.process.credentials.borrow().groups().map(|id| cx.group_told(id));
    write_ids(cx, ids)
}

/// Ids after `setuid(id)`: root changes all three, others the effective one.
fn set_one(root: bool, old: Ids, id: u32) -> Result<Ids, Errno> {
    match id {
        SAME => Err(Errno::EINVAL),
        _ if root => Ok([id; 3]),
        _ if id == old[0] || id == old[2] => Ok([old[0], id, old[2]]),
        _ => Err(Errno::EPERM),
    }
}

/// Ids after `setreuid(real, effective)`.
fn set_two(root: bool, old: Ids, real: u32, effective: u32) -> Result<Ids, Errno> {
    let real_ok = real == SAME || real == old[0] || real == old[1];
    let effective_ok = effective == SAME || old.contains(&effective);
    if !(root || real_ok && effective_ok) {
        return Err(Errno::EPERM);
    }
    let new_real = if real == SAME { old[0] } else { real };
    let new_effective = if effective == SAME { old[1] } else { effective };
    let keeps_saved = real == SAME && (effective == SAME || effective == old[0]);
    Ok([new_real, new_effective, if keeps_saved { old[2] } else { new_effective }])
}

/// Ids after `setresuid(..)`.
fn set_three(root: bool, old: Ids, new: Ids) -> Result<Ids, Errno> {
    if !root && !new.iter().all(|id| *id == SAME || old.contains(id)) {
        return Err(Errno::EPERM);
    }
    let mut ids = new;
    for (id, old) in ids.iter_mut().zip(old) {
        if *id == SAME {
            *id = old;
        }
    }
    Ok(ids)
}

/// A process that has become somebody else keeps its memory to itself: it may hold what its former user
/// could read. And the parent's end, which its former user may decide about, is no signal for it any more.
fn keep_to_itself(cx: &Cx, changed: bool) {
    if changed {
        cx.process.state.not_dumpable.set(true);
        cx.process.state.death_signal.set(0);
    }
}

/// Changes the user ids as `change(may choose any, old)` says.
fn change_users(cx: &Cx, change: impl FnOnce(bool, Ids) -> Result<Ids, Errno>) -> Answer {
    let before = connector::before(cx);
    let mut own = cx.process.credentials.borrow_mut();
    let (old, in_effect) = (own.users(), own.in_effect());
    let ids = change(own.may_here(l::CAP_SETUID), old)?;
    own.set_users(ids);
    keep_to_itself(cx, own.in_effect() != in_effect);
    let root = own.root();
    own.capabilities.users_changed(old, ids, root);
    drop(own);
    cx.process.set_user(cx.unix, ids[0]);
    connector::changed(cx, before);
    Ok(0)
}

/// As [`change_users`], for group ids.
fn change_groups(cx: &Cx, change: impl FnOnce(bool, Ids) -> Result<Ids, Errno>) -> Answer {
    let before = connector::before(cx);
    let mut own = cx.process.credentials.borrow_mut();
    let in_effect = own.in_effect();
    let ids = change(own.may_here(l::CAP_SETGID), own.groups())?;
    own.set_groups(ids);
    keep_to_itself(cx, own.in_effect() != in_effect);
    drop(own);
    connector::changed(cx, before);
    Ok(0)
}

fn setuid(cx: &Cx) -> Answer {
    let id = cx.user_meant(cx.uint(0))?;
    change_users(cx, |root, old| set_one(root, old, id))
}

fn setgid(cx: &Cx) -> Answer {
    let id = cx.group_meant(cx.uint(0))?;
    change_groups(cx, |root, old| set_one(root, old, id))
}

fn setreuid(cx: &Cx) -> Answer {
    let (real, effective) = (cx.user_meant(cx.uint(0))?, cx.user_meant(cx.uint(1))?);
    change_users(cx, |root, old| set_two(root, old, real, effective))
}

fn setregid(cx: &Cx) -> Answer {
    let (real, effective) = (cx.group_meant(cx.uint(0))?, cx.group_meant(cx.uint(1))?);
    change_groups(cx, |root, old| set_two(root, old, real, effective))
}

fn setresuid(cx: &Cx) -> Answer {
    let mut new = [0; 3];
    for (index, id) in new.iter_mut().enumerate() {
        *id = cx.user_meant(cx.uint(index))?;
    }
    change_users(cx, |root, old| set_three(root, old, new))
}

fn setresgid(cx: &Cx) -> Answer {
    let mut new = [0; 3];
    for (index, id) in new.iter_mut().enumerate() {
        *id = cx.group_meant(cx.uint(index))?;
    }
    change_groups(cx, |root, old| set_three(root, old, new))
}

fn setfsuid(cx: &Cx) -> Answer {
    let new = cx.user_meant(cx.uint(0)).unwrap_or(SAME);
    let mut own = cx.process.credentials.borrow_mut();
    let old = own.fsuid;
    if new != SAME && (new == old || own.may_here(l::CAP_SETUID) || own.users().contains(&new)) {
        own.fsuid = new;
        let root = own.root();
        own.capabilities.file_user_changed(old, new, root);
        keep_to_itself(cx, new != old);
    }
    drop(own);
    Ok(cx.user_told(old).into())
}

fn setfsgid(cx: &Cx) -> Answer {
    let new = cx.group_meant(cx.uint(0)).unwrap_or(SAME);
    let mut own = cx.process.credentials.borrow_mut();
    let old = own.fsgid;
    if new != SAME && (own.may_here(l::CAP_SETGID) || own.groups().contains(&new)) {
        own.fsgid = new;
        keep_to_itself(cx, new != old);
    }
    drop(own);
    Ok(cx.group_told(old).into())
}

fn getgroups(cx: &Cx) -> Answer {
    let groups = cx.process.credentials.borrow().groups.clone();
    if cx.int(0) < 0 {
        return Err(Errno::EINVAL.into());
    }
    if cx.int(0) != 0 {
        if groups.len() > cx.int(0) as usize {
            return Err(Errno::EINVAL.into());
        }
        let told: Vec<u32> = groups.iter().map(|id| cx.group_told(*id)).collect();
        cx.user().write_bytes(cx.arg(1), told.as_bytes())?;
    }
    Ok(groups.len() as u64)
}

/// Most supplementary groups.
const MAX_GROUPS: u32 = 65536;

fn setgroups(cx: &Cx) -> Answer {
    let count = cx.uint(0);
    if !cx.process.credentials.borrow().may_set_groups() {
        return Err(Errno::EPERM.into());
    }
    if count > MAX_GROUPS {
        return Err(Errno::EINVAL.into());
    }
    let mut groups = vec![0_u32; count as usize];
    cx.user().read_bytes(cx.arg(1), groups.as_mut_bytes())?;
    if groups.contains(&SAME) {
        return Err(Errno::EINVAL.into());
    }
    for group in &mut groups {
        *group = cx.group_meant(*group)?;
    }
    groups.sort_unstable();
    cx.process.credentials.borrow_mut().groups = Rc::new(groups);
    Ok(0)
}
