//! Mounts: which directory of which file system is seen where. A mount namespace is a set of them.
//!
//! A mount covers an inode in another mount. That is entered in one table, by the number of the
//! covered mount and the inode's address, and counted in the inode: who walks over an inode that nothing
//! covers looks at one number. An inode can be covered in one namespace and free in another. Inodes of `/proc` are
//! made for whoever looks them up: there it is the number that counts, and the file system knows which are covered.
//!
//! Whoever is in a mount, or has a file open that was found there, holds it. So how many hold it says whether
//! it is busy, and a file system goes with the last mount of it.

use alloc::collections::btree_map::Entry;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use hashbrown::HashMap;
use linux_raw_sys::general as linux;

use super::directory::Name;
use super::filesystem::Kind;
use super::inode::Inode;
use super::mount_space::{MountSpace, Reserved};
use super::spot::Spot;
use crate::account::Charge;
use crate::errno::Errno;

/// A file system's tree, which comes apart with its last mount.
pub struct Tree(pub(super) Rc<Inode>);

impl Drop for Tree {
    /// Directories and what is in them hold each other.
    fn drop(&mut self) {
        super::tree::take_apart(&self.0);
    }
}

/// Where a mount is mounted.
#[derive(Clone)]
pub struct Point {
    /// What it covers.
    pub spot: Spot,
    /// The directory and the name by which that was found, unless it is a directory.
    pub location: Option<(Rc<Inode>, Name)>,
}

/// To whom a mount tells what is mounted in it, and who tells it: numbers of groups, 0 for nobody.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Sharing {
    /// Its peers: they hear of everything, and say everything.
    pub peers: u64,
    /// Of these it hears only.
    pub master: u64,
    /// It cannot be bound.
    pub unbindable: bool,
}

/// A mount.
pub struct Mount {
    /// Its number, which no other has or had.
    pub id: u64,
    /// What was mounted, as the caller named it.
    pub source: Name,
    /// `MS_*` that say what may be done in it.
    pub flags: Cell<u32>,
    /// Who hears of it.
    pub sharing: Cell<Sharing>,
    tree: Rc<Tree>,
    root: Rc<Inode>,
    pub(super) point: RefCell<Option<Point>>,
    /// Where its root was found, if that is not a directory.
    origin: Option<(Rc<Inode>, Name)>,
    /// Its namespace, if it is in one.
    pub(super) space: RefCell<Weak<MountSpace>>,
    pub(super) locked: Cell<bool>,
    /// Flags that stay as they are: it was copied for somebody who may not change them.
    pub(super) locked_flags: Cell<u32>,
    /// Locked mounts that have covered something in it until both were taken away: they still do.
    kept: RefCell<Vec<Kept>>,
    /// Its place in the namespace that it was made for, until it is in one.
    pub(super) reserved: RefCell<Option<Reserved>>,
    /// The table it is known in while it shares.
    table: Weak<Table>,
    _charge: Option<Charge>,
}

impl Drop for Mount {
    /// One that was never mounted may belong to groups.
    fn drop(&mut self) {
        if let Some(table) = self.table.upgrade() {
            table.leave(self);
        }
    }
}

/// What a locked mount that is gone still covers.
struct Kept {
    inode: Rc<Inode>,
    by: Rc<Mount>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.inode.uncover();
    }
}

/// Flags of a mount, apart from its file system.
pub const OF_MOUNT: u32 = linux::MS_RDONLY
    | linux::MS_NOSUID
    | linux::MS_NODEV
    | linux::MS_NOEXEC
    | linux::MS_NOATIME
    | linux::MS_NODIRATIME
    | linux::MS_RELATIME;

/// Among locked flags: those about access times (no flag of a mount has this bit).
const TIMES_LOCKED: u32 = 1 << 31;

impl Mount {
    /// The directory (or file) that is seen where it is mounted.
    #[must_use]
    pub fn root(&self) -> &Rc<Inode> {
        &self.root
    }

    /// The root of its whole file system.
    #[must_use]
    pub fn tree_root(&self) -> &Rc<Inode> {
        &self.tree.0
    }

    /// Its file system.
    pub(super) fn tree(&self) -> Rc<Tree> {
        self.tree.clone()
    }

    /// Where its root was found, if that is not a directory.
    #[must_use]
    pub fn origin(&self) -> Option<(Rc<Inode>, Name)> {
        self.origin.clone()
    }

    /// Where it is mounted; the root of a namespace nowhere.
    #[must_use]
    pub fn point(&self) -> Option<Point> {
        self.point.borrow().clone()
    }

    /// Its namespace, if it is in one (still).
    #[must_use]
    pub fn space(&self) -> Option<Rc<MountSpace>> {
        self.space.borrow().upgrade()
    }

    fn kept(&self, inode: &Rc<Inode>) -> Option<Rc<Self>> {
        let kept = self.kept.borrow();
        kept.iter().find(|kept| kept.inode.place() == inode.place()).map(|kept| kept.by.clone())
    }

    /// It was copied for somebody who may see and do no more than is there: `covers` something there.
    pub(super) fn lock(&self, covers: bool) {
        let times = linux::MS_NOATIME | linux::MS_NODIRATIME | linux::MS_RELATIME;
        let flags = self.locked_flags.get() | self.flags.get() & !times | TIMES_LOCKED;
        self.locked_flags.set(flags);
        self.locked.set(self.locked.get() || covers);
    }

    /// Whether its flags may become these.
    pub(crate) fn may_have(&self, new: u32) -> bool {
        let (locked, old) = (self.locked_flags.get(), self.flags.get());
        let times = linux::MS_NOATIME | linux::MS_NODIRATIME;
        let same_times = locked & TIMES_LOCKED == 0 || (old ^ new) & times == 0;
        locked & !TIMES_LOCKED & !new == 0 && same_times
    }

    /// Whether one of these flags is set.
    #[must_use]
    pub fn has(&self, flag: u32) -> bool {
        self.flags.get() & flag != 0
    }

    /// Whether anything may be changed in it.
    ///
    /// # Errors
    /// `EROFS`.
    pub fn check_writable(&self) -> Result<(), Errno> {
        if self.has(linux::MS_RDONLY) { Err(Errno::EROFS) } else { Ok(()) }
    }

    /// Whether it was copied into a namespace of somebody who may not see what it covers.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.locked.get()
    }

    /// Its root as it is reached.
    #[must_use]
    pub fn root_spot(self: &Rc<Self>) -> Spot {
        Spot { mount: self.clone(), inode: self.root.clone() }
    }

    /// Whether it is `other` or mounted somewhere below it.
    #[must_use]
    pub fn is_below(self: &Rc<Self>, other: &Rc<Self>) -> bool {
        let mut at = self.clone();
        loop {
            if Rc::ptr_eq(&at, other) {
                return true;
            }
            let Some(point) = at.point() else { return false };
            at = point.spot.mount;
        }
    }
}

/// What is to be seen in a new mount.
pub(super) struct Seen<'a> {
    /// Its file system.
    pub tree: Rc<Tree>,
    /// Its root there.
    pub root: Rc<Inode>,
    /// What to call it.
    pub source: &'a Name,
    /// `MS_*`.
    pub flags: u32,
    /// Where its root was found, if that is not a directory.
    pub origin: Option<(Rc<Inode>, Name)>,
}

/// Which mount covers an inode of a mount.
#[derive(Default)]
pub struct Table {
    covers: RefCell<HashMap<(u64, usize), Rc<Mount>>>,
    next_id: Cell<u64>,
    next_group: Cell<u64>,
    /// Mounts of groups, for those who tell them something.
    shared: RefCell<Vec<Weak<Mount>>>,
}

fn key(spot: &Spot) -> (u64, usize) {
    (spot.mount.id, spot.inode.place())
}

impl Inode {
    /// What it is covered by: its address, or its number where the same is made again and again.
    fn place(&self) -> usize {
        match self.fs.kind {
            Kind::Proc | Kind::Sysfs => self.number as usize | 1 << (usize::BITS - 1),
            _ => core::ptr::from_ref(self) as usize,
        }
    }

    /// Whether both are the same file or directory.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.place() == other.place() && Rc::ptr_eq(&self.fs, &other.fs)
    }

    /// One mount more covers it.
    fn cover(&self) {
        self.covered.set(self.covered.get() + 1);
        if matches!(self.fs.kind, Kind::Proc | Kind::Sysfs) {
            *self.fs.covered.borrow_mut().entry(self.number).or_default() += 1;
        }
    }

    /// One mount less covers it.
    fn uncover(&self) {
        self.covered.set(self.covered.get().saturating_sub(1));
        if let Entry::Occupied(mut times) = self.fs.covered.borrow_mut().entry(self.number) {
            *times.get_mut() -= 1;
            if *times.get() == 0 {
                times.remove();
            }
        }
    }
}

impl Table {
    fn next(cell: &Cell<u64>) -> u64 {
        cell.set(cell.get() + 1);
        cell.get()
    }

    /// Numbers for so many new groups of peers, one after the other; the first.
    pub(super) fn new_groups(&self, count: usize) -> u64 {
        let last = self.next_group.get();
        self.next_group.set(last + count as u64);
        last + 1
    }

    /// What covers a spot.
    #[must_use]
    pub fn over(&self, spot: &Spot) -> Option<Rc<Mount>> {
        self.over_inode(&spot.mount, &spot.inode)
    }

    /// What covers an inode in a mount.
    #[inline]
    #[must_use]
    pub fn over_inode(&self, mount: &Rc<Mount>, inode: &Rc<Inode>) -> Option<Rc<Mount>> {
        if inode.covered.get() == 0 {
            return None;
        }
        let found = self.covers.borrow().get(&(mount.id, inode.place())).cloned();
        found.or_else(|| mount.kept(inode))
    }

    /// All mounts that cover this inode in some mount.
    pub(super) fn all_over(&self, inode: &Rc<Inode>) -> Vec<Rc<Mount>> {
        let place = inode.place();
        let covers = self.covers.borrow();
        covers.iter().filter(|(key, _)| key.1 == place).map(|(_, one)| one.clone()).collect()
    }

    /// A mount hears of nobody and tells nobody any more. Who heard of the last of its peers, hears of
    /// whom that heard of.
    pub(super) fn leave(&self, mount: &Mount) {
        let Sharing { peers, master, .. } = mount.sharing.take();
        if peers | master == 0 {
            return;
        }
        self.shared.borrow_mut().retain(|one| !core::ptr::eq(one.as_ptr(), mount));
        let left = self.sharing(|one| one.peers == peers || one.master == peers);
        if peers != 0 && left.iter().all(|one| one.sharing.get().peers != peers) {
            for slave in left {
                slave.sharing.set(Sharing { master, ..slave.sharing.get() });
            }
        }
    }

    /// A mount shares from now on as this says.
    pub(super) fn share(&self, mount: &Rc<Mount>, sharing: Sharing) {
        self.leave(mount);
        mount.sharing.set(sharing);
        if sharing.peers | sharing.master != 0 {
            self.shared.borrow_mut().push(Rc::downgrade(mount));
        }
    }

    /// All mounts that share so.
    pub(super) fn sharing(&self, is: impl Fn(Sharing) -> bool) -> Vec<Rc<Mount>> {
        let shared = self.shared.borrow();
        shared.iter().filter_map(Weak::upgrade).filter(|one| is(one.sharing.get())).collect()
    }

    /// A mount that belongs to nobody and is nowhere yet.
    pub(super) fn mount(self: &Rc<Self>, seen: Seen, charge: Option<Charge>) -> Rc<Mount> {
        Rc::new(Mount {
            id: Self::next(&self.next_id),
            source: seen.source.clone(),
            flags: Cell::new(seen.flags & OF_MOUNT),
            sharing: Cell::default(),
            tree: seen.tree,
            root: seen.root,
            point: RefCell::default(),
            origin: seen.origin,
            space: RefCell::default(),
            locked: Cell::new(false),
            locked_flags: Cell::new(0),
            kept: RefCell::default(),
            reserved: RefCell::default(),
            table: Rc::downgrade(self),
            _charge: charge,
        })
    }

    pub(super) fn cover(&self, mount: &Rc<Mount>, point: Point) {
        let inode = point.spot.inode.clone();
        inode.cover();
        let old = self.covers.borrow_mut().insert(key(&point.spot), mount.clone());
        debug_assert!(old.is_none());
        drop(mount.point.replace(Some(point)));
    }

    /// A mount is taken away. What a locked one covers stays covered for who is still there.
    pub(super) fn take_away(&self, mount: &Rc<Mount>) {
        let point = mount.point().filter(|_| mount.is_locked());
        if let Some(Point { spot, .. }) = point {
            spot.inode.cover();
            let kept = Kept { inode: spot.inode, by: mount.clone() };
            spot.mount.kept.borrow_mut().push(kept);
        }
        self.uncover(mount);
        mount.space.take();
        self.leave(mount);
    }

    pub(super) fn uncover(&self, mount: &Rc<Mount>) {
        if let Some(point) = mount.point.take() {
            let inode = &point.spot.inode;
            inode.uncover();
            let removed = self.covers.borrow_mut().remove(&key(&point.spot));
            drop(removed);
        }
    }
}
