//! Objects by number and by key, their owners, and who may do what.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;

use super::Record;
use crate::account::{Charge, is_fair};
use crate::call::Cx;
use crate::errno::Errno;
use crate::fs::permission::in_group;
use crate::process::identity::Credentials;

/// `IPC_PRIVATE`.
const PRIVATE: i32 = 0;
const CREATE: u32 = 0o1000;
const EXCLUSIVE: u32 = 0o2000;
/// A number is its place and, above, which object there it is.
const PLACE_BITS: u32 = 15;
const PLACES: u32 = (1 << PLACE_BITS) - 1;
/// What an object costs beside what it holds.
const OBJECT_BYTES: usize = 512;

/// To read, and to write (or change), for owner, group and others.
pub const READ: u32 = 0o444;
pub const WRITE: u32 = 0o222;

/// Whose an object is.
pub struct Owner {
    /// Its key; [`PRIVATE`] if it has none (any more).
    pub key: Cell<i32>,
    uid: Cell<u32>,
    gid: Cell<u32>,
    maker: (u32, u32),
    /// Rights, and `SHM_DEST`.
    pub mode: Cell<u32>,
}

impl Owner {
    /// Whether the caller may do what `wanted` (of [`READ`] and [`WRITE`]) says.
    ///
    /// # Errors
    /// `EACCES`.
    pub fn check(&self, cx: &Cx, wanted: u32) -> Result<(), Errno> {
        let who = cx.process.credentials.borrow();
        let wanted = wanted >> 6 | wanted >> 3 | wanted;
        let class = if self.is_of(&who) {
            6
        } else if in_group(&who, self.gid.get()) || in_group(&who, self.maker.1) {
            3
        } else {
            0
        };
        let missing = wanted & !(self.mode.get() >> class) & 7;
        if missing == 0 || who.may_in(&super::of(cx.unix, cx.process).users, l::CAP_IPC_OWNER) {
            Ok(())
        } else {
            Err(Errno::EACCES)
        }
    }

    fn is_of(&self, who: &Credentials) -> bool {
        who.euid == self.uid.get() || who.euid == self.maker.0
    }

    /// Whether the caller may change or remove it.
    ///
    /// # Errors
    /// `EPERM`.
    pub fn check_own(&self, cx: &Cx) -> Result<(), Errno> {
        let who = cx.process.credentials.borrow();
        let users = &super::of(cx.unix, cx.process).users;
        let may = self.is_of(&who) || who.may_in(users, l::CAP_SYS_ADMIN);
        if may { Ok(()) } else { Err(Errno::EPERM) }
    }

    /// `IPC_SET`: user, group and rights from the record at `from`.
    ///
    /// # Errors
    /// `EFAULT`, `EPERM`.
    pub fn set(&self, cx: &Cx, from: u64) -> Result<(), Errno> {
        let [_, uid, gid, _, _, mode] = cx.user().read::<[u32; 6]>(from)?;
        let (uid, gid) = (cx.user_meant(uid)?, cx.group_meant(gid)?);
        self.check_own(cx)?;
        if uid == u32::MAX || gid == u32::MAX {
            return Err(Errno::EINVAL);
        }
        self.uid.set(uid);
        self.gid.set(gid);
        self.mode.set(self.mode.get() & !0o777 | mode & 0o777);
        Ok(())
    }
}

/// An object.
pub struct Object<T> {
    /// Its number.
    pub id: u32,
    /// Whose it is.
    pub owner: Owner,
    /// What it is.
    pub of: T,
    charge: Charge,
}

impl<T> Object<T> {
    /// The head of the record that tells about it.
    pub(super) fn record(&self, cx: &Cx) -> Record {
        let owner = &self.owner;
        let head = [
            owner.key.get() as u32,
            cx.user_told(owner.uid.get()),
            cx.group_told(owner.gid.get()),
            cx.user_told(owner.maker.0),
            cx.group_told(owner.maker.1),
            owner.mode.get(),
            self.id >> PLACE_BITS,
            0,
        ];
        head.into_iter().fold(Record::default(), Record::int).long(0).long(0)
    }

    /// The beginning and the end of its line in `/proc/sysvipc`: what is between differs.
    pub fn line(&self, cx: &Cx, middle: &str, end: &str) -> alloc::string::String {
        let owner = &self.owner;
        alloc::format!(
            "{:10} {:10}  {:4o} {middle} {:5} {:5} {:5} {:5} {end}\n",
            owner.key.get(),
            self.id,
            owner.mode.get(),
            cx.user_told(owner.uid.get()),
            cx.group_told(owner.gid.get()),
            cx.user_told(owner.maker.0),
            cx.group_told(owner.maker.1),
        )
    }
}

/// All objects of a kind.
pub struct Table<T> {
    objects: RefCell<BTreeMap<u32, Rc<Object<T>>>>,
    /// Places by key.
    keys: RefCell<BTreeMap<i32, u32>>,
    /// All places below are taken.
    taken: Cell<u32>,
    /// How many there have been: no number comes again soon.
    ever: Cell<u32>,
    /// How many of them who has made.
    makers: RefCell<BTreeMap<u32, u32>>,
    /// How many there can be (`/proc/sys/kernel`).
    pub most: Cell<u32>,
    /// The number that the next one gets if its place is free (`/proc/sys/kernel/*_next_id`).
    pub next: Cell<Option<u32>>,
}

impl<T> Table<T> {
    pub(super) fn new(most: u32) -> Self {
        Self {
            objects: RefCell::default(),
            keys: RefCell::default(),
            taken: Cell::new(0),
            ever: Cell::new(0),
            makers: RefCell::default(),
            most: Cell::new(most),
            next: Cell::new(None),
        }
    }

    /// The number of the object with this key, as `flags` say; made if there is none.
    ///
    /// # Errors
    /// `ENOENT`, `EEXIST`, `EACCES`, `ENOSPC`, what `fits` says of one that is there, and what
    /// `make` says.
    pub(super) fn get(
        &self,
        cx: &Cx,
        (key, flags): (i32, u32),
        fits: impl FnOnce(&T) -> Result<(), Errno>,
        make: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<u64, Errno> {
        if key != PRIVATE
            && let Some(object) = self.by_key(key)
        {
            if flags & CREATE != 0 && flags & EXCLUSIVE != 0 {
                return Err(Errno::EEXIST);
            }
            object.owner.check(cx, flags & 0o777)?;
            fits(&object.of)?;
            return Ok(object.id.into());
        }
        if key != PRIVATE && flags & CREATE == 0 {
            return Err(Errno::ENOENT);
        }
        let wanted = self.next.get().filter(|id| self.at(*id).is_none());
        let (free, uid) = self.free_place(cx).ok_or(Errno::ENOSPC)?;
        let charge = cx.pay(OBJECT_BYTES)?;
        let of = make()?;
        let ever = self.ever.get();
        self.ever.set(ever.wrapping_add(1));
        let id = wanted.unwrap_or((ever << PLACE_BITS | free) & i32::MAX as u32);
        let place = id & PLACES;
        self.next.set(None);
        let who = cx.process.credentials.borrow();
        let owner = Owner {
            key: Cell::new(key),
            uid: Cell::new(who.euid),
            gid: Cell::new(who.egid),
            maker: (who.euid, who.egid),
            mode: Cell::new(flags & 0o777),
        };
        let object = Rc::new(Object { id, owner, of, charge });
        self.objects.borrow_mut().insert(place, object);
        *self.makers.borrow_mut().entry(uid).or_default() += 1;
        if wanted.is_none() {
            self.taken.set(place + 1);
        }
        if key != PRIVATE {
            self.keys.borrow_mut().insert(key, place);
        }
        Ok(id.into())
    }

    fn by_key(&self, key: i32) -> Option<Rc<Object<T>>> {
        let place = self.keys.borrow().get(&key).copied()?;
        self.at(place)
    }

    /// No key leads to the object any more.
    pub fn forget_key(&self, object: &Object<T>) {
        self.keys.borrow_mut().remove(&object.owner.key.replace(PRIVATE));
    }

    /// A place for one more of the caller's, and who that is, if it leaves the others theirs.
    fn free_place(&self, cx: &Cx) -> Option<(u32, u32)> {
        let objects = self.objects.borrow();
        let (uid, most) = (cx.process.user().uid, u64::from(self.most.get()));
        let own = self.makers.borrow().get(&uid).copied().unwrap_or(0);
        // A namespace that is not of the first users is theirs altogether.
        let shares = super::of(cx.unix, cx.process).users.is_none();
        let who = if shares { uid } else { 0 };
        if !is_fair(who, (own.into(), objects.len() as u64, most), 1) {
            return None;
        }
        let mut free = self.taken.get();
        for place in objects.range(free..).map(|(place, _)| *place) {
            if place != free {
                break;
            }
            free += 1;
        }
        (free < 1 << PLACE_BITS).then_some((free, uid))
    }

    /// The object with this number.
    ///
    /// # Errors
    /// `EINVAL`.
    pub fn find(&self, id: i32) -> Result<Rc<Object<T>>, Errno> {
        let id = u32::try_from(id).map_err(|_| Errno::EINVAL)?;
        let found = self.at(id).ok_or(Errno::EINVAL)?;
        if found.id == id { Ok(found) } else { Err(Errno::EINVAL) }
    }

    /// As [`Self::find`], for a call that may have waited: the object may be gone since.
    ///
    /// # Errors
    /// `EINVAL`, `EIDRM`.
    pub fn find_again(&self, cx: &Cx) -> Result<Rc<Object<T>>, Errno> {
        self.find(cx.int(0)).map_err(|errno| if cx.is_retry() { Errno::EIDRM } else { errno })
    }

    /// The object at a place (of a number, its place counts).
    #[must_use]
    pub fn at(&self, place: u32) -> Option<Rc<Object<T>>> {
        self.objects.borrow().get(&(place & PLACES)).cloned()
    }

    /// The highest place that is taken; 0 if none is.
    #[must_use]
    pub fn highest(&self) -> u64 {
        self.objects.borrow().keys().next_back().map_or(0, |place| u64::from(*place))
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.objects.borrow().len() as u32
    }

    /// All of them now.
    pub fn all(&self) -> impl Iterator<Item = Rc<Object<T>>> + use<T> {
        self.objects.borrow().values().cloned().collect::<Vec<_>>().into_iter()
    }

    /// The next records of a text about all of them: `head`, and then what `line` says of each, from number `from` on.
    pub(super) fn told(
        &self,
        from: u64,
        text: &mut Vec<u8>,
        head: &str,
        line: impl FnOnce(&Object<T>) -> alloc::string::String,
    ) -> Option<u64> {
        let Some(place) = from.checked_sub(1) else {
            text.extend_from_slice(head.as_bytes());
            return Some(1);
        };
        let place = u32::try_from(place).ok()?;
        let next = self.objects.borrow().range(place..).next().map(|(at, one)| (*at, one.clone()));
        let (at, object) = next?;
        text.extend_from_slice(line(&object).as_bytes());
        Some(u64::from(at) + 2)
    }

    /// Takes one out.
    pub fn remove(&self, object: &Object<T>) {
        self.forget_key(object);
        let place = object.id & PLACES;
        let gone = self.objects.borrow_mut().remove(&place);
        let uid = gone.as_ref().map(|gone| gone.charge.user().uid);
        if let Some(uid) = uid
            && let Entry::Occupied(mut count) = self.makers.borrow_mut().entry(uid)
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        self.taken.set(self.taken.get().min(place));
        drop(gone);
    }
}
