//! NETLINK_CONNECTOR, CN_IDX_PROC: what processes do, told to those who have asked and may know all of it.
//!
//! An event is one message, made in the call that it is about, and put into the inbox of each listener, whose user pays for
//! it; who has no room is told so by `ENOBUFS`, and nobody waits. While nobody listens an event costs a comparison
//! ([`Connector::is_heard`]).

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general::CAP_NET_ADMIN;
use zerocopy::{FromBytes, IntoBytes};

use super::{HEADER, Header, NLMSG_DONE, give};
use crate::call::Cx;
use crate::errno::Errno;
use crate::process::Process;
use crate::stream::socket::Socket;
use crate::thread::Thread;
use crate::unix::Unix;

/// `CN_IDX_PROC`: also the bit of its group, and `CN_VAL_PROC`.
const PROCESSES: u32 = 1;
const VALUE: u32 = 1;
/// `PROC_CN_MCAST_LISTEN` and `PROC_CN_MCAST_IGNORE`.
const LISTEN: u32 = 1;
const IGNORE: u32 = 2;
/// Words of a `struct cn_msg`, whose last has length and flags; of a `struct proc_event`, and of what it says.
const HEAD: usize = 5;
const EVENT: usize = 10;
const SAYS: usize = 6;
/// Bytes of both.
const BYTES: usize = (HEAD + EVENT) * 4;
/// `exit_signal` of what is no process's first thread.
const NO_SIGNAL: u32 = u32::MAX;

/// What happened (`PROC_EVENT_*`).
#[derive(Clone, Copy)]
#[repr(u32)]
enum What {
    Asked = 0,
    Fork = 1,
    Exec = 2,
    Users = 4,
    Groups = 0x40,
    Session = 0x80,
    Traced = 0x100,
    Name = 0x200,
    Dumped = 0x4000_0000,
    Exit = 0x8000_0000,
}

/// Who listens.
#[derive(Default)]
pub struct Connector {
    is_heard: Cell<bool>,
    listeners: RefCell<Vec<Weak<Socket>>>,
    /// Events so far.
    count: Cell<u32>,
}

impl Connector {
    /// Whether anybody listens.
    #[inline]
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.is_heard.get()
    }

    /// `socket` listens from now on, or does not.
    fn change(&self, socket: &Rc<Socket>, listens: bool) -> Result<(), Errno> {
        let mut listeners = self.listeners.borrow_mut();
        let other =
            |one: &Weak<Socket>| one.strong_count() > 0 && one.as_ptr() != Rc::as_ptr(socket);
        listeners.retain(other);
        if listens {
            listeners.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
            listeners.push(Rc::downgrade(socket));
        }
        self.is_heard.set(!listeners.is_empty());
        Ok(())
    }

    /// The number of the next event.
    fn next(&self) -> u32 {
        self.count.replace(self.count.get().wrapping_add(1))
    }

    /// Tells all of them.
    fn tell(&self, unix: &Unix, what: What, says: &[u32]) {
        let event = Event { what, sequence: self.next(), acknowledges: 0, processor: 0 };
        let bytes = event.message(unix, says);
        let mut gone = false;
        for listener in self.listeners.borrow().iter() {
            match listener.upgrade() {
                Some(socket) => give(&socket, &bytes, PROCESSES),
                None => gone = true,
            }
        }
        if gone {
            let mut listeners = self.listeners.borrow_mut();
            listeners.retain(|listener| listener.strong_count() > 0);
            self.is_heard.set(!listeners.is_empty());
        }
    }
}

/// An event.
struct Event {
    what: What,
    sequence: u32,
    acknowledges: u32,
    processor: u32,
}

impl Event {
    /// The message of it.
    fn message(&self, unix: &Unix, says: &[u32]) -> Vec<u8> {
        let now_ns = unix.machine.now_ns();
        let mut words = [0; HEAD + EVENT];
        let len = (EVENT * 4) as u32;
        let head = [PROCESSES, VALUE, self.sequence, self.acknowledges, len];
        let event = [self.what as u32, self.processor, now_ns as u32, (now_ns >> 32) as u32];
        let known = head.iter().chain(&event).chain(says.iter().take(SAYS));
        words.iter_mut().zip(known).for_each(|(word, known)| *word = *known);
        let len = (HEADER + BYTES) as u32;
        let header = Header { len, kind: NLMSG_DONE, flags: 0, sequence: self.sequence, port: 0 };
        [header.as_bytes(), words.as_bytes()].concat()
    }
}

/// A message from a program: whether it wants to listen. What is something else is lost, as on Linux.
pub(super) fn asked(cx: &Cx, socket: &Rc<Socket>, payload: &[u8]) {
    let Ok((words, _)) = <[u32; HEAD + 1]>::read_from_prefix(payload) else { return };
    let [index, value, _, acknowledges, len, wish] = words;
    if (index, value, len & 0xffff) != (PROCESSES, VALUE, 4) {
        return;
    }
    let inside = cx.users().is_some() || cx.numbers().is_some();
    let groups = socket.netlink.get().map_or(0, |netlink| netlink.groups.get());
    if inside || groups & PROCESSES == 0 {
        return;
    }
    let connector = &cx.unix.streams.connector;
    let result = match wish {
        _ if !cx.process.credentials.borrow().may(CAP_NET_ADMIN) => Err(Errno::EPERM),
        LISTEN | IGNORE => connector.change(socket, wish == LISTEN),
        _ => Err(Errno::EINVAL),
    };
    if connector.is_heard() {
        let error = result.map_or_else(|errno| u32::from(errno.0), |()| 0);
        let acknowledges = acknowledges.wrapping_add(1);
        let sequence = connector.next();
        let event = Event { what: What::Asked, sequence, acknowledges, processor: u32::MAX };
        give(socket, &event.message(cx.unix, &[error]), PROCESSES);
    }
}

/// A thread's number and its process's, in the first namespace: who listens is there.
fn who(thread: &Thread) -> [u32; 2] {
    [thread.tid.get().first(), thread.process.pid.first()]
}

fn parent(process: &Process) -> [u32; 2] {
    [process.parent_pid.get().first(); 2]
}

/// Tells of a thread, if anybody listens.
fn tell(unix: &Unix, what: What, thread: &Thread, more: &[u32]) {
    let mut says = [0; SAYS];
    let all = who(thread).into_iter().chain(more.iter().copied());
    says.iter_mut().zip(all).for_each(|(word, said)| *word = said);
    unix.streams.connector.tell(unix, what, &says);
}

/// The caller has made a process, or a thread.
pub fn born(cx: &Cx, thread: &Thread) {
    if cx.unix.streams.connector.is_heard() {
        let process = &thread.process;
        let is_own_child = process.parent_pid.get() == cx.process.pid;
        let [one, all] = if is_own_child { who(cx.thread) } else { parent(process) };
        let [own, group] = who(thread);
        cx.unix.streams.connector.tell(cx.unix, What::Fork, &[one, all, own, group]);
    }
}

/// A process runs another program.
pub fn executed(unix: &Unix, thread: &Thread) {
    if unix.streams.connector.is_heard() {
        tell(unix, What::Exec, thread, &[]);
    }
}

/// A thread has another name.
pub fn named(unix: &Unix, thread: &Thread) {
    if unix.streams.connector.is_heard() {
        let name = thread.name.get();
        let words = <[u32; 4]>::read_from_bytes(&name).unwrap_or_default();
        tell(unix, What::Name, thread, &words);
    }
}

/// The ids of users, and of groups: real and effective.
type Ids = [[u32; 2]; 2];

/// The ids that the caller has, if anybody wants to know of changes.
#[must_use]
pub fn before(cx: &Cx) -> Option<Ids> {
    cx.unix.streams.connector.is_heard().then(|| ids(cx.process))
}

fn ids(process: &Process) -> Ids {
    let own = process.credentials.borrow();
    [[own.uid, own.euid], [own.gid, own.egid]]
}

/// The caller's ids may be others than before.
pub fn changed(cx: &Cx, before: Option<Ids>) {
    let Some([users_before, groups_before]) = before else { return };
    let [users, groups] = ids(cx.process);
    if users != users_before {
        tell(cx.unix, What::Users, cx.thread, &users);
    }
    if groups != groups_before {
        tell(cx.unix, What::Groups, cx.thread, &groups);
    }
}

/// The caller has begun a session.
pub fn began_session(cx: &Cx) {
    if cx.unix.streams.connector.is_heard() {
        tell(cx.unix, What::Session, cx.thread, &[]);
    }
}

/// The caller traces a thread now, or (`None`) does not any more.
pub fn traced(cx: &Cx, thread: &Thread, tracer: Option<&Thread>) {
    if cx.unix.streams.connector.is_heard() {
        tell(cx.unix, What::Traced, thread, &tracer.map_or([0; 2], who));
    }
}

/// A signal ends a process that leaves a core file.
pub fn dumped(unix: &Unix, thread: &Thread) {
    if unix.streams.connector.is_heard() {
        tell(unix, What::Dumped, thread, &parent(&thread.process));
    }
}

/// A thread ends, with this wait status.
pub fn ended(unix: &Unix, thread: &Thread, status: u32) {
    if unix.streams.connector.is_heard() {
        let process = &thread.process;
        let is_first = thread.tid.get() == process.pid;
        let signal = if is_first { process.state.exit_signal.get() } else { NO_SIGNAL };
        let [one, all] = parent(process);
        tell(unix, What::Exit, thread, &[status, signal, one, all]);
    }
}
