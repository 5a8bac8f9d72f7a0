//! The keyrings of threads, processes, sessions and users; what a caller possesses.

use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use super::{ALL, CHANGE, Key, Kind, READ, SEARCH, USER_SHIFT, VIEW};
use crate::call::Cx;
use crate::errno::Errno;
use crate::process::Pid;

/// Keyrings in keyrings are searched this deep.
const DEPTH: usize = 6;

/// The special numbers of keyrings.
const THREAD: i32 = -1;
const PROCESS: i32 = -2;
const SESSION: i32 = -3;
const USER: i32 = -4;
const USER_SESSION: i32 = -5;
const REQUEST_AUTHORITY: i32 = -7;
const REQUESTOR: i32 = -8;

/// What a process holds. Forked children and new programs have the session's alone.
#[derive(Default)]
pub struct Held {
    /// Of its threads, by id.
    threads: RefCell<Vec<(Pid, Rc<Key>)>>,
    process: RefCell<Option<Rc<Key>>>,
    session: RefCell<Option<Rc<Key>>>,
    /// Where requested keys go (`KEYCTL_SET_REQKEY_KEYRING`).
    pub(super) requested: Cell<i32>,
}

impl Held {
    /// What a child has of it.
    #[must_use]
    pub fn inherited(&self) -> Self {
        Self {
            session: RefCell::new(self.session.borrow().clone()),
            requested: self.requested.clone(),
            ..Self::default()
        }
    }

    /// A new program begins, or the process has ended.
    pub fn leave(&self, ended: bool) {
        let gone = (self.threads.take(), self.process.take());
        let session = if ended { self.session.take() } else { None };
        drop((gone, session));
    }

    /// A thread has ended.
    pub fn thread_ended(&self, tid: Pid) {
        let mut threads = self.threads.borrow_mut();
        let gone = threads.iter().position(|(of, _)| *of == tid).map(|at| threads.remove(at));
        drop(threads);
        drop(gone);
    }

    fn of_thread(&self, tid: Pid) -> Option<Rc<Key>> {
        self.threads.borrow().iter().find(|(of, _)| *of == tid).map(|(_, key)| key.clone())
    }
}

/// A key, and whether the caller possesses it.
pub(super) type Found = (Rc<Key>, bool);

/// The two keyrings of the caller's user.
fn of_user(cx: &Cx) -> Result<[Rc<Key>; 2], Errno> {
    let uid = cx.process.credentials.borrow().uid;
    let keys = &cx.unix.keys;
    if let Some(both) = keys.of_users.borrow().get(&uid) {
        return Ok(both.clone());
    }
    let rights = ALL & !CHANGE | ALL >> USER_SHIFT;
    let make = |name: &str| -> Result<Rc<Key>, Errno> {
        let key = keys.make(cx, Kind::Keyring, name.as_bytes(), Vec::new(), rights)?;
        key.uid.set(uid);
        Ok(key)
    };
    let own = make(&format!("_uid.{uid}"))?;
    let session = make(&format!("_uid_ses.{uid}"))?;
    session.link(&own)?;
    let both = [own, session];
    keys.of_users.borrow_mut().insert(uid, both.clone());
    Ok(both)
}

/// The keyring `place` has, made if there is none and `create` says so.
fn held_in(
    cx: &Cx,
    place: &RefCell<Option<Rc<Key>>>,
    name: &str,
    create: bool,
) -> Result<Rc<Key>, Errno> {
    let held = place.borrow().clone();
    match held {
        Some(key) => Ok(key),
        None if !create => Err(Errno::ENOKEY),
        None => {
            let rights = ALL | VIEW >> USER_SHIFT;
            let key = cx.unix.keys.make(cx, Kind::Keyring, name.as_bytes(), Vec::new(), rights)?;
            place.replace(Some(key.clone()));
            Ok(key)
        }
    }
}

fn thread_ring(cx: &Cx, create: bool) -> Result<Rc<Key>, Errno> {
    let (held, tid) = (&cx.process.state.keys, cx.thread.tid.get());
    let place = RefCell::new(held.of_thread(tid));
    let known = place.borrow().is_some();
    let key = held_in(cx, &place, "_tid", create)?;
    if !known {
        held.threads.borrow_mut().push((tid, key.clone()));
    }
    Ok(key)
}

/// The session's keyring; if there is none, that of the user's sessions, or a new one.
fn session_ring(cx: &Cx, create: bool) -> Result<Rc<Key>, Errno> {
    let held = cx.process.state.keys.session.borrow().clone();
    match held {
        Some(key) => Ok(key),
        None if create => join(cx, None),
        None => {
            let [_, session] = of_user(cx)?;
            cx.process.state.keys.session.replace(Some(session.clone()));
            Ok(session)
        }
    }
}

/// The caller's session has another keyring from now on: the one of this name, or a new one.
pub(super) fn join(cx: &Cx, name: Option<&[u8]>) -> Result<Rc<Key>, Errno> {
    let keys = &cx.unix.keys;
    let known = name.and_then(|name| keys.named(cx, name));
    let rights = ALL | (VIEW | READ | if name.is_some() { super::LINK } else { 0 }) >> USER_SHIFT;
    let key = match known {
        Some(key) => key,
        None => keys.make(cx, Kind::Keyring, name.unwrap_or(b"_ses"), Vec::new(), rights)?,
    };
    let old = cx.process.state.keys.session.replace(Some(key.clone()));
    drop(old);
    Ok(key)
}

/// The key that `id` names, if the caller has the rights `wanted` (with none: whatever its state).
pub(super) fn find(cx: &Cx, id: i32, create: bool, wanted: u32) -> Result<Found, Errno> {
    let (key, possesses) = find_any(cx, id, create)?;
    if wanted != 0 {
        key.check_alive(cx.unix)?;
        key.check(cx, possesses, wanted)?;
    }
    Ok((key, possesses))
}

fn find_any(cx: &Cx, id: i32, create: bool) -> Result<Found, Errno> {
    let key = match id {
        THREAD => thread_ring(cx, create)?,
        PROCESS => held_in(cx, &cx.process.state.keys.process, "_pid", create)?,
        SESSION => session_ring(cx, create)?,
        USER => of_user(cx)?[0].clone(),
        USER_SESSION => of_user(cx)?[1].clone(),
        REQUEST_AUTHORITY | REQUESTOR => return Err(Errno::ENOKEY),
        ..1 => return Err(Errno::EINVAL),
        _ => {
            let key = cx.unix.keys.get(id).ok_or(Errno::ENOKEY)?;
            let possesses = possesses(cx, &key);
            return Ok((key, possesses));
        }
    };
    Ok((key, true))
}

/// The keyrings at which the caller's searches begin.
fn beginnings(cx: &Cx) -> Vec<Rc<Key>> {
    let held = &cx.process.state.keys;
    let session = held.session.borrow().clone();
    let session = session.or_else(|| of_user(cx).ok().map(|[_, session]| session));
    let process = held.process.borrow().clone();
    [held.of_thread(cx.thread.tid.get()), process, session].into_iter().flatten().collect()
}

/// Visits what is in `ring` and the keyrings in it that may be searched, until `visit` has
/// found something. What an earlier visit of the same `round` has found nothing in is passed over.
fn each<T>(
    cx: &Cx,
    ring: &Rc<Key>,
    (round, depth): (u64, usize),
    visit: &mut impl FnMut(&Rc<Key>) -> Option<T>,
) -> Option<T> {
    let searched = ring.searched(round);
    if !ring.is_keyring()
        || searched.is_some_and(|before| before >= depth)
        || ring.check_alive(cx.unix).is_err()
        || ring.check(cx, true, SEARCH).is_err()
    {
        return None;
    }
    ring.searched.set((round, depth));
    let links = ring.links.borrow();
    let found = if searched.is_none() { links.iter().find_map(&mut *visit) } else { None };
    if found.is_some() || depth == 0 {
        return found;
    }
    links.iter().find_map(|key| each(cx, key, (round, depth - 1), visit))
}

fn possesses(cx: &Cx, key: &Rc<Key>) -> bool {
    let is = |one: &Rc<Key>| Rc::ptr_eq(one, key);
    let mut visit = |one: &Rc<Key>| is(one).then_some(());
    let from = (cx.unix.keys.new_round(), DEPTH);
    beginnings(cx).iter().any(|ring| is(ring) || each(cx, ring, from, &mut visit).is_some())
}

/// Looks for a key in `ring` and below. `ENOKEY`: none; another error: of one that was found.
pub(super) fn search(
    cx: &Cx,
    ring: &Rc<Key>,
    kind: Kind,
    description: &[u8],
) -> Result<Rc<Key>, Errno> {
    let mut failed = Errno::ENOKEY;
    let mut visit = |key: &Rc<Key>| {
        if key.kind != kind || *key.description != *description {
            return None;
        }
        let usable = key.check_alive(cx.unix).and_then(|()| key.check(cx, true, SEARCH));
        match usable {
            Ok(()) => Some(key.clone()),
            Err(errno) => {
                failed = errno;
                None
            }
        }
    };
    let found = each(cx, ring, (cx.unix.keys.new_round(), DEPTH), &mut visit);
    found.ok_or(failed)
}

/// The same in all that the caller has.
pub(super) fn search_all(cx: &Cx, kind: Kind, description: &[u8]) -> Result<Rc<Key>, Errno> {
    let mut failed = Errno::ENOKEY;
    for ring in beginnings(cx) {
        match search(cx, &ring, kind, description) {
            Ok(key) => return Ok(key),
            Err(Errno::ENOKEY) => {}
            Err(errno) => failed = errno,
        }
    }
    Err(failed)
}

/// How deep keyrings lie in `key`, and whether `other` is among them.
fn check_no_cycle(
    key: &Rc<Key>,
    other: &Rc<Key>,
    (round, depth): (u64, usize),
) -> Result<(), Errno> {
    if Rc::ptr_eq(key, other) {
        return Err(Errno::EDEADLK);
    }
    if key.searched(round).is_some_and(|before| before <= depth) {
        return Ok(());
    }
    key.searched.set((round, depth));
    for inner in key.links.borrow().iter().filter(|inner| inner.is_keyring()) {
        let depth = depth.checked_sub(1).ok_or(Errno::ELOOP)?;
        check_no_cycle(inner, other, (round, depth))?;
    }
    Ok(())
}

/// Links `key` into `ring`, both of which may be.
pub(super) fn link(cx: &Cx, ring: &Rc<Key>, key: &Rc<Key>) -> Result<(), Errno> {
    ring.check_keyring()?;
    if key.is_keyring() {
        check_no_cycle(key, ring, (cx.unix.keys.new_round(), DEPTH))?;
    }
    ring.link(key)
}
