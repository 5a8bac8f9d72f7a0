//! Sockets of native tasks: tasks of the system below that are the other side of programs' streams
//! (decision 0083). A native task listens where its service is offered in `/srv`, or connects to a
//! program's socket; then it is a peer as any other, with an inbox of the same size.
//!
//! Whoever waits is the native task's thread: what it asks for is kept here and answered when it can
//! be, after the programs' turns ([`serve`]). It is never waited for: an answer that it does not take
//! is lost, the bytes in it are not.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::cell::{Cell, RefCell};

use linux_raw_sys::net::SHUT_WR;

use super::ancillary::Credentials;
use super::connect::{enter, has_room};
use super::{Kind, Socket};
use crate::errno::Errno;
use crate::file::{Sink, Source};
use crate::fs;
use crate::machine::Told;
use crate::unix::Unix;
use crate::wait::{Listener, Listening, RunQueue};

/// Bytes that are sent or received at once, at most.
pub const CHUNK: usize = 480;
/// Sockets that one owner has, at most.
pub const EACH: usize = 32;
/// Connections that wait to be accepted at a native task's socket, beside one.
const BACKLOG: usize = 15;

/// A native task's socket.
struct End {
    number: u64,
    /// Its task: a life of it.
    owner: u64,
    socket: Rc<Socket>,
    /// Who waits to accept or to receive.
    takes: Cell<Option<u64>>,
    /// Who waits to send, and what.
    sends: RefCell<Option<(u64, Vec<u8>)>>,
    run_queue: Rc<RunQueue>,
    /// Is in the run queue.
    queued: Cell<bool>,
    heard: RefCell<Vec<Listening>>,
}

impl Listener for End {
    fn notify(&self, _enough: bool) -> bool {
        let waits = self.takes.get().is_some() || self.sends.borrow().is_some();
        if waits && !self.queued.replace(true) {
            self.run_queue.push_native(self.number);
        }
        false
    }
}

/// All of them.
#[derive(Default)]
pub struct Natives {
    ends: RefCell<BTreeMap<u64, Rc<End>>>,
    last: Cell<u64>,
}

/// The task `owner`, registered as `service`, takes streams that programs open to that; the
/// socket's number.
///
/// # Errors
/// `ENOENT` for what is not offered, `EADDRINUSE` if somebody listens there, `EMFILE`, `ENOMEM`.
pub fn listen(unix: &Unix, owner: u64, service: &str) -> Result<u64, Errno> {
    let offer = unix.streams.services.offered(service).ok_or(Errno::ENOENT)?;
    if offer.listener.borrow().strong_count() > 0 {
        return Err(Errno::EADDRINUSE);
    }
    let socket = Socket::stream_for(unix, &unix.accounts.user(0))?;
    socket.backlog.set(Some(BACKLOG));
    socket.listener.set(Credentials::SYSTEM);
    let path = format!("/srv/{service}").into_bytes();
    *socket.name.borrow_mut() = Some(Rc::new(super::Name::Local(path)));
    let number = keep(unix, owner, &socket)?;
    *offer.listener.borrow_mut() = Rc::downgrade(&socket);
    Ok(number)
}

/// Connects the task `owner` to a program's socket: the new socket's number, and the user who listens.
///
/// # Errors
/// `ENOENT`, `ECONNREFUSED`, `EPROTOTYPE` for what is no stream, `EAGAIN` if too many wait there
/// already, `EMFILE`, `ENOMEM`.
pub fn connect(unix: &Unix, owner: u64, path: &str) -> Result<(u64, u32), Errno> {
    let inode = fs::plain(unix, path).ok_or(Errno::ENOENT)?;
    let bound = inode.bound.borrow().as_ref().and_then(Weak::upgrade);
    let bound: Rc<dyn Any> = bound.ok_or(Errno::ECONNREFUSED)?;
    let target = super::address::socket(bound)?;
    if target.kind != Kind::Stream {
        return Err(Errno::EPROTOTYPE);
    }
    if !has_room(&target)? {
        return Err(Errno::EAGAIN);
    }
    let uid = target.listener.get().uid;
    let socket = Socket::stream_for(unix, &unix.accounts.user(0))?;
    // It will be the program's, which may keep it for as long as it wants to.
    let own = Socket::stream_for(unix, &unix.accounts.user(uid))?;
    let number = keep(unix, owner, &socket)?;
    enter(&target, own, &socket, Credentials::SYSTEM);
    Ok((number, uid))
}

/// Keeps a socket for its owner, and hears what happens to it.
fn keep(unix: &Unix, owner: u64, socket: &Rc<Socket>) -> Result<u64, Errno> {
    let natives = &unix.streams.natives;
    let mut ends = natives.ends.borrow_mut();
    if ends.values().filter(|end| end.owner == owner).count() >= EACH {
        return Err(Errno::EMFILE);
    }
    unix.run_queue.reserve_natives(ends.len() + 1)?;
    let number = natives.last.get() + 1;
    natives.last.set(number);
    let end = Rc::new(End {
        number,
        owner,
        socket: socket.clone(),
        takes: Cell::new(None),
        sends: RefCell::default(),
        run_queue: unix.run_queue.clone(),
        queued: Cell::new(false),
        heard: RefCell::default(),
    });
    let listener: Rc<dyn Listener> = end.clone();
    let heard = [&socket.can_read, &socket.can_write];
    *end.heard.borrow_mut() = heard.map(|queue| queue.listen(Rc::downgrade(&listener))).into();
    ends.insert(number, end);
    Ok(number)
}

fn find(unix: &Unix, owner: u64, number: u64) -> Result<Rc<End>, Errno> {
    let ends = unix.streams.natives.ends.borrow();
    let end = ends.get(&number).filter(|end| end.owner == owner);
    end.cloned().ok_or(Errno::EBADF)
}

/// The thread `asker` waits for the next connection; `Machine::tell_native` answers.
///
/// # Errors
/// `EBADF` for what is no socket that listens, `EBUSY` if another thread waits for the same.
pub fn accept(unix: &Unix, owner: u64, number: u64, asker: u64) -> Result<(), Errno> {
    let end = find(unix, owner, number)?;
    end.socket.backlog.get().ok_or(Errno::EBADF)?;
    take(unix, &end, asker)
}

/// The thread `asker` waits for bytes; `Machine::tell_native` answers.
///
/// # Errors
/// `EBADF` for what is no connection, `EBUSY` if another thread waits for the same.
pub fn receive(unix: &Unix, owner: u64, number: u64, asker: u64) -> Result<(), Errno> {
    let end = connection(unix, owner, number)?;
    take(unix, &end, asker)
}

fn connection(unix: &Unix, owner: u64, number: u64) -> Result<Rc<End>, Errno> {
    let end = find(unix, owner, number)?;
    if end.socket.connected.get() { Ok(end) } else { Err(Errno::EBADF) }
}

/// A thread has one call at a time: who asks for something has given up what it waited for.
fn gave_up(unix: &Unix, owner: u64, asker: u64) {
    let ends = unix.streams.natives.ends.borrow();
    for end in ends.values().filter(|end| end.owner == owner) {
        if end.takes.get() == Some(asker) {
            end.takes.set(None);
        }
        let mut sends = end.sends.borrow_mut();
        sends.take_if(|(waits, _)| *waits == asker);
    }
}

fn take(unix: &Unix, end: &End, asker: u64) -> Result<(), Errno> {
    gave_up(unix, end.owner, asker);
    if end.takes.get().is_some() {
        return Err(Errno::EBUSY);
    }
    end.takes.set(Some(asker));
    serve_end(unix, end);
    Ok(())
}

/// The thread `asker` sends bytes; `Machine::tell_native` says how many were taken.
///
/// # Errors
/// `EBADF` for what is no connection, `EBUSY` if another thread waits for the same, `ENOMEM`.
pub fn send(unix: &Unix, owner: u64, number: u64, asker: u64, bytes: &[u8]) -> Result<(), Errno> {
    let end = connection(unix, owner, number)?;
    gave_up(unix, owner, asker);
    if end.sends.borrow().is_some() {
        return Err(Errno::EBUSY);
    }
    let mut kept = Vec::new();
    kept.try_reserve_exact(bytes.len().min(CHUNK)).map_err(|_| Errno::ENOMEM)?;
    kept.extend_from_slice(bytes.get(..bytes.len().min(CHUNK)).unwrap_or_default());
    *end.sends.borrow_mut() = Some((asker, kept));
    serve_end(unix, &end);
    Ok(())
}

/// The owner sends no more.
///
/// # Errors
/// `EBADF` for what is no connection.
pub fn shut(unix: &Unix, owner: u64, number: u64) -> Result<(), Errno> {
    connection(unix, owner, number)?.socket.shut(SHUT_WR);
    Ok(())
}

/// The socket is not needed any more.
pub fn close(unix: &Unix, owner: u64, number: u64) {
    if find(unix, owner, number).is_ok() {
        let end = unix.streams.natives.ends.borrow_mut().remove(&number);
        end.into_iter().for_each(|end| part_with(unix, &end));
    }
}

/// The owner has ended, and its sockets with it.
pub fn forget(unix: &Unix, owner: u64) {
    let gone: Vec<Rc<End>> = {
        let mut ends = unix.streams.natives.ends.borrow_mut();
        let gone = ends.values().filter(|end| end.owner == owner).cloned().collect();
        ends.retain(|_, end| end.owner != owner);
        gone
    };
    gone.iter().for_each(|end| part_with(unix, end));
}

/// Nobody is left waiting at a socket that ends.
fn part_with(unix: &Unix, end: &End) {
    let refused = Told::Refused(Errno::EBADF);
    let waiting = [end.takes.take(), end.sends.take().map(|(asker, _)| asker)];
    for asker in waiting.into_iter().flatten() {
        unix.machine.tell_native(asker, refused);
    }
}

/// Native tasks whose sockets something has happened to have their turn.
#[cold]
pub fn serve(unix: &Unix) {
    while let Some(number) = unix.run_queue.pop_native() {
        let end = unix.streams.natives.ends.borrow().get(&number).cloned();
        if let Some(end) = end {
            end.queued.set(false);
            serve_end(unix, &end);
        }
    }
}

/// Answers those who wait at a socket, if they need not wait any longer.
fn serve_end(unix: &Unix, end: &End) {
    if let Some(asker) = end.takes.get() {
        let served = if end.socket.backlog.get().is_some() {
            give_connection(unix, end, asker)
        } else {
            give_bytes(unix, end, asker)
        };
        if served {
            end.takes.set(None);
        }
    }
    let waiting = end.sends.take();
    if let Some((asker, bytes)) = waiting
        && !take_bytes(unix, end, asker, &bytes)
    {
        *end.sends.borrow_mut() = Some((asker, bytes));
    }
}

/// Accepts a connection, if one waits; whether `asker` has its answer.
fn give_connection(unix: &Unix, end: &End, asker: u64) -> bool {
    let Some(next) = end.socket.next_pending() else { return false };
    let uid = next.peer_credentials.get().uid;
    let told = match keep(unix, end.owner, &next) {
        Ok(socket) => {
            next.embryo.set(false);
            Told::Accepted { socket, uid }
        }
        Err(errno) => {
            end.socket.pending.borrow_mut().push_front(next);
            unix.machine.tell_native(asker, Told::Refused(errno));
            return true;
        }
    };
    end.socket.can_write.wake_all();
    if !unix.machine.tell_native(asker, told)
        && let Told::Accepted { socket, .. } = told
    {
        // Nobody has its number: the one who has connected is not left waiting.
        close(unix, end.owner, socket);
    }
    true
}

/// Gives what has come, if anything has; whether `asker` has its answer.
fn give_bytes(unix: &Unix, end: &End, asker: u64) -> bool {
    let socket = &end.socket;
    if socket.inbox.is_empty() {
        let told = match socket.error.take() {
            Some(errno) => Told::Refused(errno),
            None if socket.shut_in.get() => Told::Came(&[]),
            None => return false,
        };
        unix.machine.tell_native(asker, told);
        return true;
    }
    let mut bytes = Vec::new();
    let before = socket.inbox.level();
    if bytes.try_reserve_exact(CHUNK).is_err()
        || socket.inbox.peek(&mut Sink::Server { to: &mut bytes, max: CHUNK }, 0).is_err()
    {
        unix.machine.tell_native(asker, Told::Refused(Errno::ENOMEM));
    } else if unix.machine.tell_native(asker, Told::Came(&bytes)) {
        // Files that came with them are for programs.
        socket.inbox.consume(bytes.len(), false);
        socket.made_room(before);
    }
    true
}

/// Sends what there is room for, if there is any; whether `asker` has its answer.
fn take_bytes(unix: &Unix, end: &End, asker: u64, bytes: &[u8]) -> bool {
    let peer = end.socket.peer();
    let peer = peer.filter(|peer| !end.socket.shut_out.get() && !peer.shut_in.get());
    let told = match peer {
        None => Told::Refused(Errno::EPIPE),
        Some(peer) if peer.inbox.room() == 0 && !bytes.is_empty() => return false,
        Some(peer) => {
            let source = &mut Source::Server(bytes);
            match peer.inbox.add_bytes(source, Credentials::SYSTEM, &mut None) {
                Ok(count) => {
                    peer.can_read.wake_all();
                    Told::Sent(count as u32)
                }
                Err(errno) => Told::Refused(errno),
            }
        }
    };
    unix.machine.tell_native(asker, told);
    true
}
