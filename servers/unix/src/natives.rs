//! Sockets of native tasks (decision 0083): who may have which, and when a task has ended. What they
//! are is the library's (`unix::stream::socket::native`).
//!
//! Nobody is waited for but the root task. A thread for each of the few tasks that have sockets waits
//! for the task's first thread, which never sends it anything: the wait fails when that ends.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use abi::{ThreadId, Time};
use interfaces::sockets::{
    Accepted, Connection, ConnectionReceiveReply, ConnectionSendReply, Listener,
    ListenerAcceptReply, Server, Trouble,
};
use runtime::service::{Answer, Caller, Handle};
use runtime::{Msg, ipc, root, thread};
use unix::Errno;
use unix::machine::Told;
use unix::stream::socket::native;

use crate::serve::System;

/// Label of a watcher's message: the task that it watches has ended. MR1: which watcher it is.
pub const LABEL: u64 = 0x403;
/// Tasks that have sockets, at most.
const TASKS: usize = 8;
/// Threads that are remembered.
const KNOWN: usize = 32;
/// How long a watcher may take to be ready for a message, µs.
const PATIENCE_US: u64 = 50_000;

/// The right to answer a thread, once.
enum Owed {
    Accept(ListenerAcceptReply),
    Receive(ConnectionReceiveReply),
    Send(ConnectionSendReply),
}

/// A native task: its number, and which of its lives it is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Life {
    task: u32,
    life: u64,
}

impl Life {
    /// As one word, which never comes back.
    const fn key(self) -> u64 {
        self.life << 16 | self.task as u64
    }
}

/// A thread that waits for the end of a task.
struct Watcher {
    id: ThreadId,
    /// Its name inside this task, which is how its messages come.
    local: ThreadId,
    /// The task that it watches.
    task: Cell<Option<Life>>,
}

/// What is known of native tasks.
pub struct Natives {
    server: ThreadId,
    /// Tasks by name, and the programs' sockets that each may connect to.
    allowed: Vec<(String, String)>,
    watchers: RefCell<Vec<Watcher>>,
    known: RefCell<Vec<(ThreadId, Life)>>,
    owed: RefCell<BTreeMap<u64, Owed>>,
}

impl Natives {
    /// The words `socket/TASK=PATH` of the task's `args` say who may connect to which socket; watchers
    /// send to `server`.
    pub fn told(arguments: &str, server: ThreadId) -> Result<Self, String> {
        let mut allowed = Vec::new();
        for word in arguments.split_whitespace() {
            let Some(words) = word.strip_prefix("socket/") else { continue };
            let whole = words.split_once('=');
            let Some((task, path)) = whole.filter(|(_, path)| path.starts_with('/')) else {
                return Err(alloc::format!(
                    "`{word}` in args is no socket; write socket/TASK=/PATH for each that a native task may connect to"
                ));
            };
            allowed.push((task.to_string(), path.to_string()));
        }
        let (watchers, known, owed) = Default::default();
        Ok(Self { server, allowed, watchers, known, owed })
    }

    /// The task of `thread`, if its description uses this server.
    fn life(&self, thread: ThreadId) -> Result<Life, Trouble> {
        let known = self.known.borrow().iter().find(|known| known.0 == thread).map(|known| known.1);
        if let Some(life) = known {
            return Ok(life);
        }
        let who = root::client(thread).map_err(|_| Trouble::NotAllowed)?;
        if !who.rights.has(root::Rights::USES) {
            return Err(Trouble::NotAllowed);
        }
        let life = Life { task: who.task, life: who.life };
        let mut known = self.known.borrow_mut();
        if known.len() >= KNOWN {
            known.remove(0);
        }
        known.push((thread, life));
        Ok(life)
    }

    /// Sees to it that the end of a task is heard of.
    fn watch(&self, life: Life) -> Result<(), Trouble> {
        let mut watchers = self.watchers.borrow_mut();
        if watchers.iter().any(|watcher| watcher.task.get() == Some(life)) {
            return Ok(());
        }
        let free = watchers.iter().position(|watcher| watcher.task.get().is_none());
        let index = match free {
            Some(index) => index,
            None if watchers.len() < TASKS => {
                let index = watchers.len();
                watchers.push(Watcher::start(self.server, index as u64)?);
                index
            }
            None => return Err(Trouble::Exhausted),
        };
        let about = root::describe(life.task.into()).map_err(|_| Trouble::Unknown)?;
        if about.main.is_nil() {
            return Err(Trouble::Unknown);
        }
        let watcher = &watchers[index];
        let msg = Msg::new(LABEL).word(about.main.0);
        ipc::send_within(watcher.id, &msg, Time::micros(PATIENCE_US))
            .map_err(|_| Trouble::Exhausted)?;
        watcher.task.set(Some(life));
        Ok(())
    }

    /// `from` says that the task which it watches has ended: which it was.
    pub fn ended(&self, from: ThreadId, msg: &Msg) -> Option<u64> {
        let watchers = self.watchers.borrow();
        let watcher = watchers.get(msg.mr[0] as usize).filter(|watcher| watcher.local == from)?;
        let life = watcher.task.take().filter(|_| msg.label() == LABEL)?;
        self.known.borrow_mut().retain(|(_, known)| *known != life);
        Some(life.key())
    }

    /// Answers a thread; whether it still waited.
    pub fn tell(&self, asker: u64, told: Told) -> bool {
        let Some(owed) = self.owed.borrow_mut().remove(&asker) else { return false };
        let refused =
            if let Told::Refused(errno) = told { trouble(errno) } else { Trouble::Closed };
        let answer = match (owed, told) {
            (Owed::Accept(owed), Told::Accepted { socket, uid }) => {
                owed.answer(Ok(accepted(socket, uid)), &mut [])
            }
            (Owed::Receive(owed), Told::Came(bytes)) => owed.answer(Ok(bytes), &mut []),
            (Owed::Send(owed), Told::Sent(count)) => owed.answer(Ok(count), &mut []),
            (Owed::Accept(owed), _) => owed.answer(Err(refused), &mut []),
            (Owed::Receive(owed), _) => owed.answer(Err(refused), &mut []),
            (Owed::Send(owed), _) => owed.answer(Err(refused), &mut []),
        };
        is_taken(answer)
    }

    /// A thread's call is answered when the library says so, or now, if it refuses.
    fn owe(&self, asker: Caller, owed: Owed, asked: impl FnOnce() -> Result<(), Errno>) {
        // A thread has one call: what was owed to it before it does not wait for any more.
        self.owed.borrow_mut().insert(asker.0, owed);
        if let Err(errno) = asked() {
            self.tell(asker.0, Told::Refused(errno));
        }
    }
}

impl Watcher {
    fn start(server: ThreadId, index: u64) -> Result<Self, Trouble> {
        let started = thread::spawn(move || watch(server, index));
        let id = started.map_err(|_| Trouble::Exhausted)?;
        let local = thread::other_id(id).unwrap_or(id);
        Ok(Self { id, local, task: Cell::new(None) })
    }
}

fn watch(server: ThreadId, index: u64) {
    loop {
        let Ok(msg) = ipc::receive(server, Time::NEVER) else { continue };
        let main = ThreadId(msg.mr[0]);
        // Whatever it sends is nothing to anybody; that it cannot send any more is.
        while !ipc::receive(main, Time::NEVER).is_err_and(root::is_gone) {}
        while ipc::send(server, &Msg::new(LABEL).word(index)).is_err() {}
    }
}

/// Sends an answer; whether its client took it.
fn is_taken((to, answer): (Caller, Answer<Msg>)) -> bool {
    answer.message().is_some_and(|(answer, _)| ipc::send_within(to, &answer, Time::ZERO).is_ok())
}

/// What a native task is told of the library's refusal.
fn trouble(errno: Errno) -> Trouble {
    match errno {
        Errno::EADDRINUSE | Errno::EBUSY => Trouble::Taken,
        Errno::ECONNREFUSED => Trouble::Refused,
        Errno::EPIPE | Errno::ECONNRESET => Trouble::Closed,
        Errno::EAGAIN => Trouble::Busy,
        Errno::ENOENT | Errno::EBADF | Errno::EPROTOTYPE => Trouble::Unknown,
        _ => Trouble::Exhausted,
    }
}

/// A connection that there is now, with this user.
const fn accepted(socket: u64, uid: u32) -> Accepted {
    Accepted { connection: Connection(Handle(socket)), uid }
}

impl System {
    /// The task of `caller`, which may have sockets.
    fn native(&self, caller: Caller) -> Result<Life, Trouble> {
        self.machine.natives.life(caller)
    }

    /// The socket is not needed any more.
    fn close(&self, caller: Caller, Handle(number): Handle) {
        if let Ok(life) = self.native(caller) {
            native::close(&self.unix, life.key(), number);
        }
    }

    /// `asked` is the library's, for the task of `caller`.
    fn later(&self, caller: Caller, owed: Owed, asked: impl FnOnce(u64) -> Result<(), Errno>) {
        let natives = &self.machine.natives;
        let life = natives.life(caller);
        natives.owe(caller, owed, || asked(life.map_err(|_| Errno::EBADF)?.key()));
    }
}

impl Server for System {
    fn listener_drop(&self, caller: Caller, this: Listener) {
        self.close(caller, this.0);
    }

    fn connection_drop(&self, caller: Caller, this: Connection) {
        self.close(caller, this.0);
    }

    fn listener_accept(&self, caller: Caller, this: Listener, later: ListenerAcceptReply) {
        self.later(caller, Owed::Accept(later), |owner| {
            native::accept(&self.unix, owner, this.0.0, caller.0)
        });
    }

    fn connection_receive(&self, caller: Caller, this: Connection, later: ConnectionReceiveReply) {
        self.later(caller, Owed::Receive(later), |owner| {
            native::receive(&self.unix, owner, this.0.0, caller.0)
        });
    }

    fn connection_send(
        &self,
        caller: Caller,
        this: Connection,
        bytes: &[u8],
        later: ConnectionSendReply,
    ) {
        self.later(caller, Owed::Send(later), |owner| {
            native::send(&self.unix, owner, this.0.0, caller.0, bytes)
        });
    }

    fn connection_shut(&self, caller: Caller, this: Connection) -> Result<(), Trouble> {
        native::shut(&self.unix, self.native(caller)?.key(), this.0.0).map_err(trouble)
    }

    fn listen(&self, caller: Caller, name: &str) -> Result<Listener, Trouble> {
        let life = self.native(caller)?;
        let provider = root::lookup(name).and_then(root::client);
        if !provider.is_ok_and(|who| (who.task, who.life) == (life.task, life.life)) {
            return Err(Trouble::NotAllowed);
        }
        self.machine.natives.watch(life)?;
        let number = native::listen(&self.unix, life.key(), name).map_err(trouble)?;
        Ok(Listener(Handle(number)))
    }

    fn connect(&self, caller: Caller, path: &str) -> Result<Accepted, Trouble> {
        let life = self.native(caller)?;
        let about = root::describe(life.task.into()).map_err(|_| Trouble::NotAllowed)?;
        let natives = &self.machine.natives;
        let is_it = |(task, to): &(String, String)| task == about.name.as_str() && to == path;
        if !natives.allowed.iter().any(is_it) {
            return Err(Trouble::NotAllowed);
        }
        natives.watch(life)?;
        let (socket, uid) = native::connect(&self.unix, life.key(), path).map_err(trouble)?;
        Ok(accepted(socket, uid))
    }
}
