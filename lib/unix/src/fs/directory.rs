//! Directories in memory.
//!
//! Entries are found by name through a hash table and listed newest first, as Linux's
//! tmpfs lists them. Each has a sequence number, from which its position (`d_off`) is
//! made; so a listing goes on where it was, whatever is made or removed meanwhile.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

use hashbrown::HashMap;

use super::inode::Inode;
use crate::errno::Errno;

/// Longest name, in bytes.
pub const NAME_MAX: usize = 255;
/// Positions of entries: behind those of `.` and `..`.
const POSITION_MAX: u64 = 1 << 62;
/// What tmpfs says an entry adds to a directory's size.
const ENTRY_SIZE: u64 = 20;

/// A name as a directory holds it.
pub type Name = Rc<[u8]>;

/// Tables for more names than this get smaller again.
const SMALL: usize = 4;

struct Entry {
    sequence: u64,
    inode: Rc<Inode>,
}

#[derive(Default)]
struct Entries {
    by_name: HashMap<Name, Entry>,
    by_sequence: BTreeMap<u64, Name>,
    next: u64,
}

impl Entries {
    /// The table gets smaller if it is much too large, and if there is memory for a smaller one beside it.
    fn shrink(&mut self) {
        let names = self.by_name.len();
        if self.by_name.capacity() / 4 <= names.max(SMALL) {
            return;
        }
        let mut smaller = HashMap::default();
        if smaller.try_reserve(2 * names).is_ok() {
            smaller.extend(self.by_name.drain());
            self.by_name = smaller;
        }
    }
}

/// A directory's contents.
#[derive(Default)]
pub struct Directory {
    entries: RefCell<Entries>,
    /// The directory above and the name there; the root of a file system has none.
    above: RefCell<Option<(Rc<Inode>, Name)>>,
    /// No longer has a name.
    removed: Cell<bool>,
}

/// An entry as `getdents` lists it.
pub struct Listed {
    /// Its name.
    pub name: Name,
    /// What it names.
    pub inode: Rc<Inode>,
    /// Position of the next one.
    pub next: u64,
}

impl Directory {
    /// A directory below `parent`, to be entered there as `name`.
    #[must_use]
    pub fn below(parent: &Rc<Inode>, name: &Name) -> Self {
        Self { above: RefCell::new(Some((parent.clone(), name.clone()))), ..Self::default() }
    }

    /// The entry `name`.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<Rc<Inode>> {
        Some(self.entries.borrow().by_name.get(name)?.inode.clone())
    }

    /// The entry `name`, and its name as the directory holds it.
    #[must_use]
    pub fn find_entry(&self, name: &[u8]) -> Option<(Name, Rc<Inode>)> {
        let entries = self.entries.borrow();
        let (name, entry) = entries.by_name.get_key_value(name)?;
        Some((name.clone(), entry.inode.clone()))
    }

    /// Room for another name, which [`Self::insert`] finds whatever is taken out before.
    ///
    /// # Errors
    /// `ENOENT` for a removed directory, `ENOSPC` without memory.
    pub fn reserve(&self) -> Result<(), Errno> {
        if self.removed.get() {
            return Err(Errno::ENOENT);
        }
        self.entries.borrow_mut().by_name.try_reserve(1).map_err(|_| Errno::ENOSPC)
    }

    /// The entry `name`, which is there, names `inode` from now on.
    pub fn exchange(&self, name: &[u8], inode: &Rc<Inode>) {
        if let Some(entry) = self.entries.borrow_mut().by_name.get_mut(name) {
            entry.inode = inode.clone();
        }
    }

    /// Enters `inode` as `name`, which is not there.
    ///
    /// # Errors
    /// `ENOENT` for a removed directory, `EEXIST` if the name is there, `ENOSPC` without memory.
    pub fn insert(&self, name: &Name, inode: &Rc<Inode>) -> Result<(), Errno> {
        if self.removed.get() {
            return Err(Errno::ENOENT);
        }
        let mut entries = self.entries.borrow_mut();
        if entries.by_name.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        entries.by_name.try_reserve(1).map_err(|_| Errno::ENOSPC)?;
        let sequence = entries.next;
        entries.next += 1;
        entries.by_sequence.insert(sequence, name.clone());
        entries.by_name.insert(name.clone(), Entry { sequence, inode: inode.clone() });
        Ok(())
    }

    /// Takes an entry out.
    pub fn remove(&self, name: &[u8]) -> Option<Rc<Inode>> {
        let mut entries = self.entries.borrow_mut();
        let entry = entries.by_name.remove(name)?;
        entries.by_sequence.remove(&entry.sequence);
        entries.shrink();
        Some(entry.inode)
    }

    /// The first entry at or behind `position` (2 is the beginning).
    #[must_use]
    pub fn next(&self, position: u64) -> Option<Listed> {
        let entries = self.entries.borrow();
        let end = (POSITION_MAX + 2).saturating_sub(position.max(2));
        let (sequence, name) = entries.by_sequence.range(..end).next_back()?;
        let inode = entries.by_name.get(name)?.inode.clone();
        Some(Listed { name: name.clone(), inode, next: POSITION_MAX + 2 - sequence })
    }

    /// Number of entries, `.` and `..` not counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.borrow().by_name.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `st_size`, as tmpfs tells it.
    #[must_use]
    pub fn size(&self) -> u64 {
        (self.len() as u64 + 2) * ENTRY_SIZE
    }

    /// The directory above.
    #[must_use]
    pub fn parent(&self) -> Option<Rc<Inode>> {
        Some(self.above.borrow().as_ref()?.0.clone())
    }

    /// The directory above and the name there.
    #[must_use]
    pub fn above(&self) -> Option<(Rc<Inode>, Name)> {
        self.above.borrow().clone()
    }

    /// Now it is in `parent` as `name`.
    pub fn move_to(&self, parent: &Rc<Inode>, name: &Name) {
        let old = self.above.replace(Some((parent.clone(), name.clone())));
        drop(old);
    }

    pub(super) fn take_parent(&self) -> Option<Rc<Inode>> {
        Some(self.above.take()?.0)
    }

    /// It has lost its name: nothing can be entered any more.
    pub fn set_removed(&self) {
        self.removed.set(true);
    }

    /// Whether it has lost its name.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.removed.get()
    }

    /// Everything in it.
    #[must_use]
    pub fn inodes(&self) -> alloc::vec::Vec<Rc<Inode>> {
        self.entries.borrow().by_name.values().map(|entry| entry.inode.clone()).collect()
    }

    /// Takes everything out, for the end of a file system; returns what was there.
    pub fn clear(&self) -> alloc::vec::Vec<Rc<Inode>> {
        let entries = self.entries.take();
        entries.by_name.into_values().map(|entry| entry.inode).collect()
    }
}
