//! Keys: small secrets that programs leave with the server, and the keyrings that hold them.
//!
//! A key lives as long as a keyring or a process holds it; the table of numbers does so weakly. It is paid by
//! the user whose process made it, whoever links it. There is nobody who is asked to make keys
//! (`/sbin/request-key`): what is not there is refused at once.
//!
//! | file | owns |
//! |---|---|
//! | `rings` | the keyrings of processes and users, possession, searching |
//! | `calls`, `control` | `add_key`, `request_key`; `keyctl` |

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::account::Charge;
use crate::call::Cx;
use crate::errno::Errno;
use crate::room::Room;
use crate::unix::Unix;

pub mod calls;
pub mod control;
pub mod rings;

pub use rings::Held;

/// What a key costs beside its description and contents, and what a link costs.
const KEY_BYTES: usize = 512;
const LINK_BYTES: u64 = 32;

/// Rights, for those who possess a key; the user's, the group's and the others' are 8, 16 and
/// 24 bits lower.
const VIEW: u32 = 0x0100_0000;
const READ: u32 = 0x0200_0000;
const WRITE: u32 = 0x0400_0000;
const SEARCH: u32 = 0x0800_0000;
const LINK: u32 = 0x1000_0000;
const CHANGE: u32 = 0x2000_0000;
const ALL: u32 = 0x3F00_0000;
/// A right of possessors as that of the user.
const USER_SHIFT: u32 = 8;

/// What a key holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Other keys.
    Keyring,
    /// Bytes that can be read back.
    User,
    /// Bytes that cannot.
    Logon,
    /// Many bytes.
    Big,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Keyring, Self::User, Self::Logon, Self::Big];

    const fn name(self) -> &'static str {
        match self {
            Self::Keyring => "keyring",
            Self::User => "user",
            Self::Logon => "logon",
            Self::Big => "big_key",
        }
    }

    fn by_name(name: &[u8]) -> Result<Self, Errno> {
        let found = Self::ALL.into_iter().find(|kind| kind.name().as_bytes() == name);
        found.ok_or(Errno::ENODEV)
    }

    /// Whether a key can have this description and so many bytes.
    fn check(self, description: &[u8], len: usize) -> Result<(), Errno> {
        let fits = match self {
            Self::Keyring => len == 0,
            Self::User | Self::Logon => (1..=32_767).contains(&len),
            Self::Big => (1..1 << 20).contains(&len),
        };
        // A logon key says whose it is, before a colon.
        let prefix = description.iter().position(|byte| *byte == b':');
        let named = self != Self::Logon || prefix.is_some_and(|at| at > 0);
        if fits && named { Ok(()) } else { Err(Errno::EINVAL) }
    }
}

/// A key.
pub struct Key {
    /// Its number.
    serial: i32,
    kind: Kind,
    description: Box<[u8]>,
    uid: Cell<u32>,
    gid: Cell<u32>,
    rights: Cell<u32>,
    bytes: RefCell<Vec<u8>>,
    links: RefCell<Vec<Rc<Key>>>,
    /// When it expires, in machine nanoseconds.
    expires_ns: Cell<Option<u64>>,
    revoked: Cell<bool>,
    /// The last round of a search that came by, and how many levels were to be searched below.
    searched: Cell<(u64, usize)>,
    all: Rc<BySerial>,
    charge: Charge,
}

impl Drop for Key {
    /// A chain of keyrings is taken apart in a loop: recursion would need stack for each.
    fn drop(&mut self) {
        self.all.borrow_mut().remove(&self.serial);
        let mut left = self.links.take();
        while let Some(key) = left.pop() {
            if let Some(key) = Rc::into_inner(key) {
                left.append(&mut key.links.borrow_mut());
            }
        }
    }
}

impl Key {
    fn is_keyring(&self) -> bool {
        self.kind == Kind::Keyring
    }

    /// How many levels below it a search has been asked for in this round, if it came by.
    fn searched(&self, round: u64) -> Option<usize> {
        let (last, depth) = self.searched.get();
        (last == round).then_some(depth)
    }

    fn check_keyring(&self) -> Result<(), Errno> {
        if self.is_keyring() { Ok(()) } else { Err(Errno::ENOTDIR) }
    }

    /// Whether it can still be used.
    fn check_alive(&self, unix: &Unix) -> Result<(), Errno> {
        let expired = self.expires_ns.get().is_some_and(|at| unix.machine.now_ns() >= at);
        match self.revoked.get() {
            true => Err(Errno::EKEYREVOKED),
            false if expired => Err(Errno::EKEYEXPIRED),
            false => Ok(()),
        }
    }

    /// Whether the caller, who `possesses` it or not, has all rights of `wanted`.
    fn check(&self, cx: &Cx, possesses: bool, wanted: u32) -> Result<(), Errno> {
        let who = cx.process.credentials.borrow();
        let rights = self.rights.get();
        let group =
            rights >> 8 & 0xFF != 0 && crate::fs::permission::in_group(&who, self.gid.get());
        let mut granted = match who.fsuid == self.uid.get() {
            true => rights >> 16,
            false if group => rights >> 8,
            false => rights,
        };
        if possesses {
            granted |= rights >> 24;
        }
        if wanted >> 24 & !granted == 0 { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// The key in it of this kind and description.
    fn find(&self, kind: Kind, description: &[u8]) -> Option<Rc<Self>> {
        let links = self.links.borrow();
        let is = |key: &&Rc<Self>| key.kind == kind && *key.description == *description;
        links.iter().find(is).cloned()
    }

    /// Links `key` into it, in place of one of the same kind and description.
    fn link(&self, key: &Rc<Self>) -> Result<(), Errno> {
        let old = self.find(key.kind, &key.description);
        if old.is_none() {
            self.charge.grow(LINK_BYTES).map_err(|_| Errno::EDQUOT)?;
        }
        let mut links = self.links.borrow_mut();
        match old.and_then(|old| links.iter().position(|one| Rc::ptr_eq(one, &old))) {
            Some(at) => drop(core::mem::replace(&mut links[at], key.clone())),
            None => links.push(key.clone()),
        }
        Ok(())
    }

    /// Takes `key` out; whether it was there.
    fn unlink(&self, key: &Rc<Self>) -> bool {
        let mut links = self.links.borrow_mut();
        let Some(at) = links.iter().position(|one| Rc::ptr_eq(one, key)) else { return false };
        let gone = links.remove(at);
        links.trim();
        drop(links);
        self.charge.shrink(LINK_BYTES);
        drop(gone);
        true
    }

    /// Takes everything out.
    fn clear(&self) {
        let gone = self.links.take();
        self.charge.shrink(LINK_BYTES * gone.len() as u64);
        drop(gone);
        let bytes = self.bytes.take();
        self.charge.shrink(bytes.len() as u64);
    }

    /// Its contents from now on.
    fn set(&self, bytes: Vec<u8>) -> Result<(), Errno> {
        let (old, new) = (self.bytes.borrow().len() as u64, bytes.len() as u64);
        self.charge.grow(new.saturating_sub(old)).map_err(|_| Errno::EDQUOT)?;
        self.charge.shrink(old.saturating_sub(new));
        drop(self.bytes.replace(bytes));
        Ok(())
    }
}

/// Keys by their numbers.
type BySerial = RefCell<BTreeMap<i32, Weak<Key>>>;

/// All keys.
#[derive(Default)]
pub struct Keys {
    by_serial: Rc<BySerial>,
    last: Cell<i32>,
    /// Searches so far: a keyring knows the last one that came by.
    rounds: Cell<u64>,
    /// The keyrings of users: a user's own, and that of sessions which have none.
    of_users: RefCell<BTreeMap<u32, [Rc<Key>; 2]>>,
}

impl Keys {
    /// A new key, which nobody holds yet.
    fn make(
        &self,
        cx: &Cx,
        kind: Kind,
        description: &[u8],
        bytes: Vec<u8>,
        rights: u32,
    ) -> Result<Rc<Key>, Errno> {
        let cost = KEY_BYTES + description.len() + bytes.len();
        let charge = cx.pay(cost).map_err(|_| Errno::EDQUOT)?;
        let mut table = self.by_serial.borrow_mut();
        let mut serial = self.last.get();
        loop {
            serial = serial.checked_add(1).unwrap_or(1);
            if !table.contains_key(&serial) {
                break;
            }
        }
        self.last.set(serial);
        let who = cx.process.credentials.borrow();
        let key = Rc::new(Key {
            serial,
            kind,
            description: description.into(),
            uid: Cell::new(who.fsuid),
            gid: Cell::new(who.fsgid),
            rights: Cell::new(rights),
            bytes: RefCell::new(bytes),
            links: RefCell::default(),
            expires_ns: Cell::new(None),
            revoked: Cell::new(false),
            searched: Cell::default(),
            all: self.by_serial.clone(),
            charge,
        });
        table.insert(serial, Rc::downgrade(&key));
        Ok(key)
    }

    /// A search begins.
    fn new_round(&self) -> u64 {
        self.rounds.set(self.rounds.get() + 1);
        self.rounds.get()
    }

    fn get(&self, serial: i32) -> Option<Rc<Key>> {
        self.by_serial.borrow().get(&serial)?.upgrade()
    }

    /// The keyring with this name that the caller may search.
    fn named(&self, cx: &Cx, name: &[u8]) -> Option<Rc<Key>> {
        let table = self.by_serial.borrow();
        let mut keys = table.values().filter_map(Weak::upgrade);
        keys.find(|key| {
            key.is_keyring()
                && *key.description == *name
                && key.uid.get() == cx.process.credentials.borrow().fsuid
                && key.check_alive(cx.unix).is_ok()
                && key.check(cx, false, SEARCH).is_ok()
        })
    }
}
