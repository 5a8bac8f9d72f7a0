//! The descriptor table of a process, and what calls do with it through [`Cx`].

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use linux_raw_sys::general::RLIMIT_NOFILE;

use super::Open;
use crate::account::{Charge, User, What};
use crate::call::Cx;
use crate::errno::Errno;
use crate::unix::Unix;

/// No process has descriptors from here on, whatever its limit and `nr_open`.
pub const MAX_DESCRIPTORS: u64 = 65_536;
/// `nr_open` is not less, and tables have whole words of a bit for each descriptor, as on Linux.
pub const MIN_DESCRIPTORS: u64 = 64;
/// A table has room for so many.
const FEW: usize = 8;

/// A descriptor.
#[derive(Clone)]
struct Slot {
    open: Rc<Open>,
    close_on_exec: bool,
}

/// The table; all below `first_free` are taken.
#[derive(Default)]
struct Table {
    slots: Vec<Option<Slot>>,
    first_free: usize,
}

/// The descriptor table of a process.
#[derive(Default)]
pub struct Descriptors {
    table: RefCell<Table>,
    /// What its room costs; the first process's, as long as it needs no more, nobody.
    charge: RefCell<Option<Charge>>,
}

/// What room for a descriptor costs.
const SLOT_BYTES: usize = size_of::<Option<Slot>>();

impl Table {
    /// The lowest free number from `from` on and below `limit`.
    fn find_free(&self, from: usize, limit: usize) -> Result<usize, Errno> {
        let start = from.max(self.first_free);
        let free = (start..self.slots.len())
            .find(|index| self.slots[*index].is_none())
            .unwrap_or(start.max(self.slots.len()));
        if free < limit { Ok(free) } else { Err(Errno::EMFILE) }
    }

    /// Fills or empties a slot, which exists; what was there.
    fn replace(&mut self, index: usize, slot: Option<Slot>) -> Option<Slot> {
        if slot.is_none() {
            self.first_free = self.first_free.min(index);
        } else if index == self.first_free {
            self.first_free += 1;
        }
        let place = self.slots.get_mut(index)?;
        core::mem::replace(place, slot)
    }
}

impl Descriptors {
    /// Makes sure that slot `index` exists.
    fn grow(&self, cx: &Cx, table: &mut Table, index: usize) -> Result<(), Errno> {
        if index >= table.slots.capacity() {
            self.make_room(cx, table, index + 1)?;
        }
        if index >= table.slots.len() {
            table.slots.resize_with(index + 1, || None);
        }
        Ok(())
    }

    /// Makes room for so many, and for some that may follow; the caller's user pays for it.
    #[cold]
    fn make_room(&self, cx: &Cx, table: &mut Table, least: usize) -> Result<(), Errno> {
        let room = least.max(2 * table.slots.capacity()).max(FEW);
        let mut charge = self.charge.borrow_mut();
        let charge = charge.get_or_insert_with(|| cx.charge(What::Heap));
        let (old, new) = (charge.amount(), (room * SLOT_BYTES) as u64);
        charge.grow(new.saturating_sub(old))?;
        if table.slots.try_reserve_exact(room - table.slots.len()).is_err() {
            charge.set(old);
            return Err(Errno::ENOMEM);
        }
        Ok(())
    }

    /// The open file description of a descriptor, `O_PATH` ones included.
    #[inline]
    #[must_use]
    pub fn get(&self, fd: u32) -> Option<Rc<Open>> {
        match self.table.borrow().slots.get(fd as usize) {
            Some(Some(slot)) => Some(slot.open.clone()),
            _ => None,
        }
    }

    /// Gives `open` the lowest free number from `from` on and below `limit`.
    ///
    /// # Errors
    /// `EMFILE` if all are taken, `ENOMEM`.
    pub fn add(
        &self,
        cx: &Cx,
        (open, close_on_exec): (Rc<Open>, bool),
        from: u64,
        limit: u64,
    ) -> Result<u32, Errno> {
        let limit = limit.min(MAX_DESCRIPTORS) as usize;
        let from = from.min(MAX_DESCRIPTORS) as usize;
        let mut table = self.table.borrow_mut();
        let free = table.find_free(from, limit)?;
        self.grow(cx, &mut table, free)?;
        // The slot was empty: nothing is dropped under the borrow.
        let _ = table.replace(free, Some(Slot { open, close_on_exec }));
        Ok(free as u32)
    }

    /// Makes `fd` a descriptor of `open`; what it was before is returned, to be closed.
    ///
    /// # Errors
    /// `EBADF` if `fd` is not below `limit`, `ENOMEM`.
    pub fn put(
        &self,
        cx: &Cx,
        fd: u32,
        (open, close_on_exec): (Rc<Open>, bool),
        limit: u64,
    ) -> Result<Option<Rc<Open>>, Errno> {
        if u64::from(fd) >= limit.min(MAX_DESCRIPTORS) {
            return Err(Errno::EBADF);
        }
        let mut table = self.table.borrow_mut();
        self.grow(cx, &mut table, fd as usize)?;
        Ok(table.replace(fd as usize, Some(Slot { open, close_on_exec })).map(|slot| slot.open))
    }

    /// Takes a descriptor away.
    #[must_use]
    pub fn remove(&self, fd: u32) -> Option<Rc<Open>> {
        let mut table = self.table.borrow_mut();
        if fd as usize >= table.slots.len() {
            return None;
        }
        table.replace(fd as usize, None).map(|slot| slot.open)
    }

    /// Whether a descriptor is closed by exec; `None` if there is no such descriptor.
    #[must_use]
    pub fn close_on_exec(&self, fd: u32) -> Option<bool> {
        let table = self.table.borrow();
        table.slots.get(fd as usize)?.as_ref().map(|slot| slot.close_on_exec)
    }

    /// Sets whether exec closes a descriptor; whether there is such a descriptor.
    pub fn set_close_on_exec(&self, fd: u32, close: bool) -> bool {
        match self.table.borrow_mut().slots.get_mut(fd as usize) {
            Some(Some(slot)) => {
                slot.close_on_exec = close;
                true
            }
            _ => false,
        }
    }

    /// Exec: takes out the descriptors that it closes. Drop them, then [`settle`].
    #[must_use]
    pub fn exec(&self) -> Vec<Rc<Open>> {
        let mut table = self.table.borrow_mut();
        let mut closed = Vec::new();
        for index in 0..table.slots.len() {
            if table.slots[index].as_ref().is_some_and(|slot| slot.close_on_exec) {
                closed.extend(table.replace(index, None).map(|slot| slot.open));
            }
        }
        closed
    }

    /// Another table with the same files, for a process of `user` that may have so many (`nr_open`).
    ///
    /// # Errors
    /// `EMFILE` if there are more, `ENOMEM`.
    pub fn copy(&self, user: &Rc<User>, most: u64) -> Result<Rc<Self>, Errno> {
        let table = self.table.borrow();
        let most = most.next_multiple_of(MIN_DESCRIPTORS) as usize;
        let beyond = table.slots.get(most..).unwrap_or_default();
        if beyond.iter().any(Option::is_some) {
            Err(Errno::EMFILE)
        } else {
            let bytes = (table.slots.len() * SLOT_BYTES) as u64;
            let charge = Charge::new(user, What::Heap, bytes)?;
            let mut slots = Vec::new();
            slots.try_reserve_exact(table.slots.len()).map_err(|_| Errno::ENOMEM)?;
            slots.extend_from_slice(&table.slots);
            let table = RefCell::new(Table { slots, first_free: table.first_free });
            Ok(Rc::new(Self { table, charge: RefCell::new(Some(charge)) }))
        }
    }

    /// The numbers that are in use, ascending.
    #[must_use]
    pub fn numbers(&self) -> Vec<u32> {
        let table = self.table.borrow();
        let used = table.slots.iter().enumerate().filter(|(_, slot)| slot.is_some());
        used.map(|(index, _)| index as u32).collect()
    }

    /// How many slots there are (`FDSize` of `/proc/self/status`).
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.table.borrow().slots.len().next_power_of_two().max(64)
    }

    /// One more than the highest number in use.
    pub(super) fn end(&self) -> u32 {
        self.table.borrow().slots.len() as u32
    }
}

/// A process (or its exec) needs this table no more. The last one closes the files in it.
pub fn release(unix: &Unix, descriptors: Rc<Descriptors>) {
    drop(descriptors);
    settle(unix);
}

/// Does what the closing of files has left to be done (hang-ups of terminals, files that are
/// only under way to nobody, unmounted file systems). To be called after descriptors were
/// closed.
pub fn settle(unix: &Unix) {
    unix.terminals.settle(unix);
    unix.streams.flights.settle();
    unix.streams.services.settle(&*unix.machine);
}

impl Cx<'_> {
    /// The open file of descriptor `fd`, which must not be an `O_PATH` one.
    ///
    /// # Errors
    /// `EBADF`.
    #[inline]
    pub fn file(&self, fd: u32) -> Result<Rc<Open>, Errno> {
        match self.process.files.borrow().get(fd) {
            Some(open) if !open.is_path() => Ok(open),
            _ => Err(Errno::EBADF),
        }
    }

    /// The open file of descriptor `fd`, `O_PATH` ones included (`fstat`, `..at`, `fchdir`).
    ///
    /// # Errors
    /// `EBADF`.
    pub fn file_or_path(&self, fd: u32) -> Result<Rc<Open>, Errno> {
        self.process.files.borrow().get(fd).ok_or(Errno::EBADF)
    }

    /// The process's limit of descriptors.
    #[must_use]
    pub fn descriptor_limit(&self) -> u64 {
        let limits = self.process.limits.borrow();
        let own = limits.get(RLIMIT_NOFILE as usize).map_or(0, |limit| limit.0);
        own.min(self.unix.streams.most_descriptors.get())
    }

    /// A descriptor for `open`: the lowest free one.
    ///
    /// # Errors
    /// `EMFILE`, `ENOMEM`.
    pub fn add_file(&self, open: Rc<Open>, close_on_exec: bool) -> Result<u32, Errno> {
        let files = self.process.files.borrow();
        files.add(self, (open, close_on_exec), 0, self.descriptor_limit())
    }
}
