//! Who is told, by a signal, that something has happened to a file (`F_SETOWN`, `F_SETSIG`).

use alloc::rc::{Rc, Weak};
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;

use super::asynchronous::Asynchronous;
use super::directory_notice::Notices;
use super::{Events, Open};
use crate::call::Cx;
use crate::errno::Errno;
use crate::process::{Pid, Process};
use crate::signal::{self, Info, send::members};
use crate::thread::Thread;
use crate::unix::Unix;

/// What a file has beside, once somebody wants to be told of it.
#[derive(Default)]
pub struct Told {
    owner: RefCell<Option<Owner>>,
    /// `F_SETSIG`; 0 is SIGIO, about which nothing is said.
    pub(super) signal: Cell<u32>,
    /// `O_ASYNC` is set.
    pub(super) asynchronous: RefCell<Option<Rc<Asynchronous>>>,
    /// `F_NOTIFY`.
    pub(super) notices: Notices,
}

/// Who is told.
struct Owner {
    target: Target,
    /// Its id.
    id: Pid,
    /// Who said so: real and effective user.
    uid: u32,
    euid: u32,
}

enum Target {
    Thread(Weak<Thread>),
    Process(Weak<Process>),
    Group,
}

/// What is told: `si_code` and `si_band`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct News(i32, Events);

impl News {
    /// Something can be read.
    pub const IN: Self = Self(1, Events::READABLE);
    /// Something can be written.
    pub const OUT: Self = Self(2, Events::WRITABLE.union(Events::WRBAND));
    /// Something has happened.
    pub const MESSAGE: Self = Self(3, Events::READABLE.union(Events::MSG));
    /// An error.
    pub const ERROR: Self = Self(4, Events::ERR);
    /// The other side is gone.
    pub const HUNG_UP: Self = Self(6, Events::HUP.union(Events::ERR));
}

impl Owner {
    fn new(cx: &Cx, kind: u32, number: u32) -> Result<Self, Errno> {
        let processes = &cx.unix.processes;
        let id = cx.pid(number).unwrap_or_default();
        let target = match kind {
            l::F_OWNER_TID => {
                let thread = processes.by_tid.borrow().get(&id).map(Rc::downgrade);
                Target::Thread(thread.ok_or(Errno::ESRCH)?)
            }
            l::F_OWNER_PID => {
                let process = processes.by_pid.borrow().get(&id).map(Rc::downgrade);
                Target::Process(process.ok_or(Errno::ESRCH)?)
            }
            l::F_OWNER_PGRP if members(cx.unix, id).is_empty() => return Err(Errno::ESRCH),
            l::F_OWNER_PGRP => Target::Group,
            _ => return Err(Errno::EINVAL),
        };
        let who = cx.process.credentials.borrow();
        Ok(Self { target, id, uid: who.uid, euid: who.euid })
    }

    /// Whether who set the owner may signal `process`.
    fn may(&self, process: &Process) -> bool {
        let whose = process.credentials.borrow();
        let users = [whose.uid, whose.suid];
        self.euid == 0 || users.contains(&self.euid) || users.contains(&self.uid)
    }

    /// A thread of those that are told.
    fn thread(&self, unix: &Unix) -> Option<Rc<Thread>> {
        let first = |process: Rc<Process>| process.threads.borrow().first().cloned();
        match &self.target {
            Target::Thread(thread) => thread.upgrade(),
            Target::Process(process) => process.upgrade().and_then(first),
            Target::Group => members(unix, self.id).into_iter().find_map(first),
        }
    }

    fn tell(&self, unix: &Unix, info: Info) {
        match &self.target {
            Target::Thread(thread) => {
                if let Some(thread) = thread.upgrade().filter(|thread| self.may(&thread.process)) {
                    signal::send_thread(unix, &thread, info);
                }
            }
            Target::Process(process) => {
                if let Some(process) = process.upgrade().filter(|process| self.may(process)) {
                    signal::send(unix, &process, info);
                }
            }
            Target::Group => {
                for process in members(unix, self.id).iter().filter(|process| self.may(process)) {
                    signal::send(unix, process, info);
                }
            }
        }
    }
}

impl Open {
    /// What is told of it, and whom.
    pub(crate) fn told(&self) -> &Told {
        self.told.get_or_init(Default::default)
    }

    /// `F_SETOWN`, `F_SETOWN_EX`: nobody is told if `id` is 0.
    ///
    /// # Errors
    /// `ESRCH`, `EINVAL`.
    pub(super) fn set_owner(&self, cx: &Cx, kind: u32, id: u32) -> Result<(), Errno> {
        let owner = match (kind, id) {
            (l::F_OWNER_TID | l::F_OWNER_PID | l::F_OWNER_PGRP, 0) => None,
            _ => Some(Owner::new(cx, kind, id)?),
        };
        *self.told().owner.borrow_mut() = owner;
        Ok(())
    }

    /// The caller is told if nobody else is.
    pub(crate) fn set_owner_if_none(&self, cx: &Cx) {
        if self.told().owner.borrow().is_none() {
            let _ = self.set_owner(cx, l::F_OWNER_PID, cx.process.number);
        }
    }

    /// Kind and number of who is told, if that is still there.
    pub(super) fn owner(&self, cx: &Cx) -> (u32, u32) {
        let none = (l::F_OWNER_PID, 0);
        let Some(told) = self.told.get() else { return none };
        told.owner.borrow().as_ref().map_or(none, |owner| {
            let (kind, there) = match &owner.target {
                Target::Thread(thread) => (l::F_OWNER_TID, thread.strong_count() != 0),
                Target::Process(process) => (l::F_OWNER_PID, process.strong_count() != 0),
                Target::Group => (l::F_OWNER_PGRP, true),
            };
            (kind, if there { cx.shown(owner.id) } else { 0 })
        })
    }

    /// A thread of who is told.
    pub(super) fn owner_thread(&self, unix: &Unix) -> Option<Rc<Thread>> {
        self.told.get()?.owner.borrow().as_ref()?.thread(unix)
    }

    /// Sends a signal to who is told.
    pub(crate) fn signal_owner(&self, unix: &Unix, info: Info) {
        let Some(told) = self.told.get() else { return };
        if let Some(owner) = &*told.owner.borrow() {
            owner.tell(unix, info);
        }
    }

    /// Tells `news` about descriptor `fd` of it.
    pub(crate) fn tell(&self, unix: &Unix, news: News, fd: u32) {
        let Some(told) = self.told.get() else { return };
        let info = match told.signal.get() {
            0 => Info::kernel(l::SIGIO),
            signal => Info::poll(signal, news.0, news.1.bits().into(), fd),
        };
        self.signal_owner(unix, info);
    }
}
