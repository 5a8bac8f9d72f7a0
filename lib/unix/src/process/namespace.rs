//! Namespaces: what a process finds under a name that others find something else under. There are those
//! of the system's names (UTS), of mounts, of IPC, of process numbers, of clocks and of users, as many as are made. Each belongs to
//! one of users, in which its maker was.
//!
//! A process has its namespaces, which its children have too; a file of `/proc/PID/ns` keeps one as long as it
//! is open.

use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use linux_raw_sys::general as l;

use super::user_space::{Users, is_within};
use super::{Clocks, Numbers, Process, clocks, descriptor, numbers};
use crate::account::Charge;
use crate::call::{Answer, Cx, Entry, partial};
use crate::errno::Errno;
use crate::file::Open;
use crate::fs::inode::Kind;
use crate::fs::{Mount, MountSpace, Place};
use crate::ipc::Ipc;
use crate::unix::Unix;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[partial(l::__NR_setns, "setns", setns, "namespaces of networks")];

/// Flags of `clone` and `unshare` that ask for namespaces of which there is one only.
pub const SINGLE: u64 = (l::CLONE_NEWCGROUP | l::CLONE_NEWNET) as u64;

/// What a namespace of names costs its user.
const BYTES: usize = 512;
/// Numbers of the first namespaces, as Linux gives them, and of the first that is made.
/// (IPC)
pub(crate) const FIRST_IPC: u64 = 0xEFFF_FFFF;
const FIRST_NAMES: u64 = 0xEFFF_FFFE;
const FIRST_USERS: u64 = 0xEFFF_FFFD;
const FIRST_NUMBERS: u64 = 0xEFFF_FFFC;
const FIRST_CLOCKS: u64 = 0xEFFF_FFFA;
const FIRST_MADE: u64 = 0xF000_0001;

/// `ioctl` requests of namespaces.
const NS_GET_USERNS: u32 = 0xB701;
const NS_GET_PARENT: u32 = 0xB702;
const NS_GET_NSTYPE: u32 = 0xB703;
const NS_GET_OWNER_UID: u32 = 0xB704;

/// The system's names.
pub struct Names {
    number: u64,
    /// The namespace of users that it belongs to.
    pub users: Users,
    /// Host name.
    pub host: RefCell<Vec<u8>>,
    /// NIS domain name.
    pub domain: RefCell<Vec<u8>>,
    _charge: Option<Charge>,
}

impl Default for Names {
    /// Those of process 1.
    fn default() -> Self {
        let (host, domain) = (RefCell::new(b"baton".to_vec()), RefCell::new(b"(none)".to_vec()));
        Self { number: FIRST_NAMES, users: None, host, domain, _charge: None }
    }
}

/// A namespace.
#[derive(Clone)]
pub enum Namespace {
    /// Of the system's names.
    Names(Rc<Names>),
    /// Of users; none is the first.
    Users(Users),
    /// Of mounts.
    Mounts(Rc<MountSpace>),
    /// Of System V's objects and POSIX message queues.
    Ipc(Rc<Ipc>),
    /// Of process numbers; none is the first.
    Numbers(Option<Rc<Numbers>>),
    /// Of clocks; none is the first.
    Clocks(Option<Rc<Clocks>>),
}

impl Namespace {
    /// The number that its files have.
    #[must_use]
    pub fn number(&self) -> u64 {
        match self {
            Self::Names(names) => names.number,
            Self::Users(users) => users.as_ref().map_or(FIRST_USERS, |space| space.number),
            Self::Mounts(space) => space.number,
            Self::Ipc(ipc) => ipc.number,
            Self::Numbers(space) => space.as_ref().map_or(FIRST_NUMBERS, |space| space.number),
            Self::Clocks(clocks) => clocks.as_ref().map_or(FIRST_CLOCKS, |clocks| clocks.number),
        }
    }

    /// The users that it belongs to; of users, those above.
    fn owner(&self) -> Result<Users, Errno> {
        Ok(match self {
            Self::Names(names) => names.users.clone(),
            Self::Mounts(space) => space.users.clone(),
            Self::Ipc(ipc) => ipc.users.clone(),
            Self::Numbers(space) => numbers::owner(space.as_ref()),
            Self::Clocks(clocks) => clocks::owner(clocks.as_ref()),
            Self::Users(users) => users.as_ref().ok_or(Errno::EPERM)?.above.clone(),
        })
    }

    /// The flag that asks for one of its kind.
    fn flag(&self) -> u32 {
        match self {
            Self::Names(_) => l::CLONE_NEWUTS,
            Self::Users(_) => l::CLONE_NEWUSER,
            Self::Mounts(_) => l::CLONE_NEWNS,
            Self::Ipc(_) => l::CLONE_NEWIPC,
            Self::Numbers(_) => l::CLONE_NEWPID,
            Self::Clocks(_) => l::CLONE_NEWTIME,
        }
    }

    /// What a link to it says.
    #[must_use]
    pub fn text(&self) -> Vec<u8> {
        let kind = match self {
            Self::Names(_) => "uts",
            Self::Users(_) => "user",
            Self::Mounts(_) => "mnt",
            Self::Ipc(_) => "ipc",
            Self::Numbers(_) => "pid",
            Self::Clocks(_) => "time",
        };
        format!("{kind}:[{}]", self.number()).into()
    }
}

/// Names that a process gets which asks for its own: those it had.
///
/// # Errors
/// `EPERM`, `ENOMEM`.
pub(super) fn new_names(cx: &Cx, users: Users) -> Result<Rc<Names>, Errno> {
    check_in(cx, &users)?;
    let charge = cx.pay(BYTES)?;
    let old = names(cx.unix, cx.process);
    let number = new_number(cx);
    let (host, domain) = (old.host.clone(), old.domain.clone());
    Ok(Rc::new(Names { number, users, host, domain, _charge: Some(charge) }))
}

/// No object yet, for a process that asks for its own.
///
/// # Errors
/// `EPERM`, `ENOMEM`.
pub(super) fn new_ipc(cx: &Cx, users: Users) -> Result<Rc<Ipc>, Errno> {
    check_in(cx, &users)?;
    let charge = cx.pay(BYTES)?;
    Ok(Rc::new(Ipc::new(new_number(cx), users, Some(charge))))
}

/// The caller finds these objects from now on. What it wanted taken back of others is.
pub(super) fn enter_ipc(cx: &Cx, new: Rc<Ipc>) {
    crate::ipc::of(cx.unix, cx.process).process_ended(cx.process);
    drop(cx.process.state.ipc.replace(Some(new)));
}

pub(super) fn new_number(cx: &Cx) -> u64 {
    let made = &cx.unix.processes.namespaces;
    FIRST_MADE + made.replace(made.get() + 1)
}

/// The mounts that a process sees.
#[must_use]
pub fn mounts(unix: &Unix, process: &Process) -> Rc<MountSpace> {
    let own = process.state.mounts.borrow().clone();
    own.unwrap_or_else(|| unix.fs.first.clone())
}

/// A copy of the caller's mounts, in which `place` is from now on.
///
/// # Errors
/// `EPERM`, `ENOMEM`, `ENOSPC`.
pub(super) fn new_mounts(cx: &Cx, users: Users, place: &Place) -> Result<Rc<MountSpace>, Errno> {
    check_in(cx, &users)?;
    crate::fs::copy_space(cx, new_number(cx), users, place)
}

/// The caller's mounts, if it may change them.
///
/// # Errors
/// `EPERM`.
pub(crate) fn check_mounts(cx: &Cx) -> Result<Rc<MountSpace>, Errno> {
    let space = mounts(cx.unix, cx.process);
    check_in(cx, &space.users)?;
    Ok(space)
}

/// Whether the caller may change what may be done in a mount to what `flags` says, or (without `MS_BIND`) in its file
/// system.
///
/// # Errors
/// `EPERM`.
pub(crate) fn check_flags(cx: &Cx, mount: &Mount, flags: u32) -> Result<(), Errno> {
    if flags & l::MS_BIND == 0 {
        check_in(cx, &mount.root().fs.users.borrow())?;
    }
    if mount.may_have(flags) { Ok(()) } else { Err(Errno::EPERM) }
}

/// Whether the caller may make or change what belongs to these users.
///
/// # Errors
/// `EPERM`.
pub(super) fn check_in(cx: &Cx, users: &Users) -> Result<(), Errno> {
    let may = cx.process.credentials.borrow().may_in(users, l::CAP_SYS_ADMIN);
    if may { Ok(()) } else { Err(Errno::EPERM) }
}

/// Whether the caller may enter a namespace that belongs to these users.
pub(super) fn check_enter(cx: &Cx, users: &Users) -> Result<(), Errno> {
    check_in(cx, users)?;
    check_in(cx, &cx.users())
}

/// Refuses namespaces of which there is one only.
///
/// # Errors
/// `EPERM` to whom Linux would say that, `EINVAL`.
pub(super) fn check_single(cx: &Cx, flags: u64) -> Result<(), Errno> {
    if flags & SINGLE == 0 {
        return Ok(());
    }
    // Anybody could make a namespace of users, and others in it.
    if flags & u64::from(l::CLONE_NEWUSER) == 0 {
        check_in(cx, &cx.users())?;
    }
    Err(Errno::EINVAL)
}

/// The names that a process sees.
#[must_use]
pub fn names(unix: &Unix, process: &Process) -> Rc<Names> {
    let own = process.state.names.borrow().clone();
    own.unwrap_or_else(|| unix.processes.names.clone())
}

/// `setns(fd, kind)`: a namespace, or that of a process (pidfd).
fn setns(cx: &Cx) -> Answer {
    let kind = cx.uint(1);
    let open = cx.file(cx.uint(0))?;
    let inode = open.file.inode();
    let new = match &inode.kind {
        Kind::Namespace(namespace) if kind == 0 || kind == namespace.flag() => namespace.clone(),
        _ if kind == l::CLONE_NEWUTS => Namespace::Names(names(cx.unix, &*of_process(cx, &open)?)),
        _ if kind == l::CLONE_NEWNS => Namespace::Mounts(mounts(cx.unix, &*of_process(cx, &open)?)),
        _ if kind == l::CLONE_NEWIPC => {
            Namespace::Ipc(crate::ipc::of(cx.unix, &*of_process(cx, &open)?))
        }
        _ if kind == l::CLONE_NEWUSER => {
            Namespace::Users(of_process(cx, &open)?.credentials.borrow().users.clone())
        }
        _ if kind == l::CLONE_NEWPID => {
            Namespace::Numbers(of_process(cx, &open)?.state.numbers.clone())
        }
        _ if kind == l::CLONE_NEWTIME => {
            Namespace::Clocks(of_process(cx, &open)?.state.clocks.borrow().clone())
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    match new {
        Namespace::Names(names) => {
            check_enter(cx, &names.users)?;
            cx.process.state.names.replace(Some(names));
            Ok(0)
        }
        Namespace::Mounts(space) => enter_mounts(cx, space),
        Namespace::Ipc(ipc) => {
            check_enter(cx, &ipc.users)?;
            enter_ipc(cx, ipc);
            Ok(0)
        }
        Namespace::Numbers(space) => {
            check_enter(cx, &numbers::owner(space.as_ref()))?;
            if !numbers::is_within(space.as_ref(), cx.numbers()) {
                return Err(Errno::EINVAL.into());
            }
            cx.process.state.numbers_of_children.replace(space);
            Ok(0)
        }
        Namespace::Clocks(clocks) => {
            clocks::enter_by_call(cx, clocks)?;
            Ok(0)
        }
        Namespace::Users(users) => enter_users(cx, users),
    }
}

/// Nobody comes back up: above, it has no capabilities.
fn enter_users(cx: &Cx, users: Users) -> Answer {
    let alone =
        cx.process.threads.borrow().len() == 1 && Rc::strong_count(&cx.process.place.borrow()) == 1;
    if users == cx.users() || !alone {
        return Err(Errno::EINVAL.into());
    }
    check_in(cx, &users)?;
    cx.process.credentials.borrow_mut().enter(users);
    // What it has in its memory is nobody's there to see, until it runs another program.
    cx.process.state.not_dumpable.set(true);
    Ok(0)
}

fn enter_mounts(cx: &Cx, space: Rc<MountSpace>) -> Answer {
    check_enter(cx, &space.users)?;
    if !cx.process.credentials.borrow().may_here(l::CAP_SYS_CHROOT) {
        return Err(Errno::EPERM.into());
    }
    if Rc::strong_count(&cx.process.place.borrow()) > 1 {
        return Err(Errno::EINVAL.into());
    }
    crate::fs::enter_space(cx, &space, &cx.process.place.borrow())?;
    drop(cx.process.state.mounts.replace(Some(space)));
    Ok(0)
}

/// The process of a pidfd, whose namespaces only who may look closely at it can enter.
fn of_process(cx: &Cx, open: &Open) -> Result<Rc<Process>, Errno> {
    let no_pidfd = |errno| if errno == Errno::EBADF { Errno::EINVAL } else { errno };
    let process = descriptor::of(cx, open).map_err(no_pidfd)?;
    crate::fs::check_close_look(cx, &process).map_err(|_| Errno::EPERM)?;
    Ok(process)
}

/// `ioctl` of a file that is a namespace.
pub(crate) fn ioctl(cx: &Cx, namespace: &Namespace, request: u32, argument: u64) -> Answer {
    match (request, namespace) {
        (NS_GET_NSTYPE, _) => Ok(namespace.flag().into()),
        (NS_GET_PARENT, Namespace::Numbers(space)) => {
            let above = space.as_ref().map(|space| space.above.clone()).ok_or(Errno::EPERM)?;
            if !numbers::is_within(above.as_ref(), cx.numbers()) {
                return Err(Errno::EPERM.into());
            }
            Ok(crate::fs::open_namespace(cx, Namespace::Numbers(above))?.into())
        }
        (NS_GET_OWNER_UID, Namespace::Users(users)) => {
            let owner = users.as_ref().map_or(0, |space| space.owner);
            cx.user().write(argument, &cx.user_told(owner))?;
            Ok(0)
        }
        (NS_GET_USERNS, _) | (NS_GET_PARENT, Namespace::Users(_)) => {
            let owner = namespace.owner()?;
            if !is_within(&owner, &cx.users()) {
                return Err(Errno::EPERM.into());
            }
            Ok(crate::fs::open_namespace(cx, Namespace::Users(owner))?.into())
        }
        (NS_GET_PARENT | NS_GET_OWNER_UID, _) => Err(Errno::EINVAL.into()),
        _ => Err(Errno::ENOTTY.into()),
    }
}
