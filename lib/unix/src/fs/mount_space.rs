//! Mount namespaces as processes have them: their own copy of one, entering one, and `pivot_root`.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as linux;

use super::bind::copies;
use super::mounts::{Mount, Point, Seen, Table};
use super::share::inherit;
use super::spot::Spot;
use super::{Place, walk};
use crate::account::{Charge, User, What};
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::process::namespace;
use crate::process::user_space::Users;
use crate::wait::WaitQueue;

/// Most mounts in a namespace.
const MOUNTS_MAX: usize = 1024;
/// What a mount costs its namespace's maker, and what a namespace costs.
const MOUNT_BYTES: u64 = 1024;
const SPACE_BYTES: u64 = 1024;
/// The number of the first namespace, as Linux gives it.
const FIRST_SPACE: u64 = 0xF000_0000;

/// A place among a namespace's mounts that is kept for one that is being made.
pub(super) struct Reserved(Rc<Cell<usize>>);

impl Reserved {
    /// One more of those that `count` counts.
    pub(super) fn new(count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(count.clone())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// A mount namespace: what its processes see mounted.
pub struct MountSpace {
    /// Its number.
    pub number: u64,
    /// The namespace of users that it belongs to.
    pub users: Users,
    table: Rc<Table>,
    mounts: RefCell<Vec<Rc<Mount>>>,
    /// Mounts that are being made for it.
    making: Rc<Cell<usize>>,
    /// How often they have changed, and who waits for that.
    changes: Cell<u64>,
    pub(super) changed: WaitQueue,
    /// Who pays for its mounts.
    payer: Option<Rc<User>>,
    _charge: Option<Charge>,
}

impl MountSpace {
    /// That of process 1, for which nobody pays.
    pub(super) fn first(table: &Rc<Table>) -> Self {
        Self::with(table, (FIRST_SPACE, None), None, None)
    }

    /// A namespace of this number for which `payer` pays.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub(super) fn new(
        table: &Rc<Table>,
        number: u64,
        users: Users,
        payer: Rc<User>,
    ) -> Result<Self, Errno> {
        let charge = Some(Charge::new(&payer, What::Heap, SPACE_BYTES)?);
        Ok(Self::with(table, (number, users), Some(payer), charge))
    }

    fn with(
        table: &Rc<Table>,
        (number, users): (u64, Users),
        payer: Option<Rc<User>>,
        charge: Option<Charge>,
    ) -> Self {
        let (table, mounts, making) = (table.clone(), RefCell::default(), Rc::default());
        let (changes, changed) = (Cell::new(0), WaitQueue::default());
        Self { number, users, table, mounts, making, changes, changed, payer, _charge: charge }
    }

    /// How often its mounts have changed.
    pub(super) fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Its mounts have changed.
    pub(super) fn change(&self) {
        self.changes.set(self.changes.get() + 1);
        self.changed.wake_all();
    }

    /// Everything that is mounted, in order.
    #[must_use]
    pub fn mounts(&self) -> Vec<Rc<Mount>> {
        self.mounts.borrow().clone()
    }

    /// The mount of `/`.
    #[must_use]
    pub fn root(&self) -> Option<Rc<Mount>> {
        self.mounts.borrow().iter().find(|mount| mount.point.borrow().is_none()).cloned()
    }

    /// Whether it has this mount.
    #[must_use]
    pub fn has(&self, mount: &Mount) -> bool {
        core::ptr::eq(mount.space.borrow().as_ptr(), self)
    }

    /// A mount that this namespace pays for, nowhere yet.
    ///
    /// # Errors
    /// `ENOMEM`, `ENOSPC` if it has too many.
    pub(super) fn new_mount(&self, seen: Seen) -> Result<Rc<Mount>, Errno> {
        if self.mounts.borrow().len() + self.making.get() >= MOUNTS_MAX {
            return Err(Errno::ENOSPC);
        }
        let bytes = MOUNT_BYTES + seen.source.len() as u64;
        let charge = self.payer.as_ref().map(|user| Charge::new(user, What::Heap, bytes));
        let mount = self.table.mount(seen, charge.transpose()?);
        mount.reserved.replace(Some(Reserved::new(&self.making)));
        Ok(mount)
    }

    /// Adds a mount at a point that nothing covers; without one it is the root.
    pub(super) fn add(self: &Rc<Self>, mount: &Rc<Mount>, point: Option<Point>) {
        drop(mount.reserved.take());
        mount.space.replace(Rc::downgrade(self));
        if let Some(point) = point {
            self.table.cover(mount, point);
        }
        self.mounts.borrow_mut().push(mount.clone());
        self.change();
    }

    /// Takes a mount away, but not those below it.
    pub(super) fn remove(&self, mount: &Rc<Mount>) {
        self.table.take_away(mount);
        self.mounts.borrow_mut().retain(|one| !Rc::ptr_eq(one, mount));
        self.change();
    }

    /// Takes a mount out that is to be added again.
    pub(super) fn take_out(&self, mount: &Rc<Mount>) {
        self.table.uncover(mount);
        self.mounts.borrow_mut().retain(|one| !Rc::ptr_eq(one, mount));
    }

    /// A mount is somewhere else now; without a point it is the root.
    pub(super) fn move_mount(&self, mount: &Rc<Mount>, point: Option<Point>) {
        self.table.uncover(mount);
        if let Some(point) = point {
            self.table.cover(mount, point);
        }
        self.change();
    }

    /// `mount` and all that is mounted below it, those above first.
    #[must_use]
    pub fn below(&self, mount: &Rc<Mount>) -> Vec<Rc<Mount>> {
        let mut found = alloc::vec![mount.clone()];
        let mut at = 0;
        while let Some(above) = found.get(at).cloned() {
            at += 1;
            let is_child = |one: &&Rc<Mount>| {
                let point = one.point.borrow();
                point.as_ref().is_some_and(|point| Rc::ptr_eq(&point.spot.mount, &above))
            };
            found.extend(self.mounts.borrow().iter().filter(is_child).cloned());
        }
        found
    }
}

impl Drop for MountSpace {
    /// What its mounts cover, others can mount on again; files that are open there keep theirs.
    fn drop(&mut self) {
        for mount in self.mounts.take().into_iter().rev() {
            self.table.take_away(&mount);
        }
    }
}

/// A copy of the caller's namespace, with this number; `place` is there from now on.
///
/// # Errors
/// `ENOMEM`, `ENOSPC`.
pub fn copy_space(
    cx: &Cx,
    number: u64,
    users: Users,
    place: &Place,
) -> Result<Rc<MountSpace>, Errno> {
    let old = namespace::mounts(cx.unix, cx.process);
    let new = Rc::new(MountSpace::new(&cx.unix.fs.table, number, users, cx.process.user())?);
    let root = old.root().ok_or(Errno::EINVAL)?;
    let made = copies(&new, &old.below(&root), &Point { spot: root.root_spot(), location: None })?;
    inherit(&cx.unix.fs.table, &made);
    if new.users != old.users {
        lock(&cx.unix.fs.table, &made);
    }
    let moved = |spot: Spot| match made.iter().find(|one| Rc::ptr_eq(&one.old, &spot.mount)) {
        Some(copy) => Spot { mount: copy.new.clone(), inode: spot.inode },
        None => spot,
    };
    place.set_root(moved(place.root()));
    place.set_directory(moved(place.directory()));
    for copy in &made {
        new.add(&copy.new, copy.point.clone());
    }
    Ok(new)
}

/// Copies for other users: they reveal nothing that was covered, allow no more than they did, and tell nobody.
fn lock(table: &Table, made: &[super::bind::Copied]) {
    for copy in made {
        copy.new.lock(copy.point.is_some());
        if copy.new.sharing.get().peers != 0 {
            super::share::set_kind(table, &copy.new, linux::MS_SLAVE);
        }
    }
}

/// Whether the caller's root directory is another than its namespace's.
#[must_use]
pub fn is_elsewhere(cx: &Cx) -> bool {
    let place = Place::first(cx.unix);
    let space = namespace::mounts(cx.unix, cx.process);
    let root = enter_space(cx, &space, &place).map(|()| place.root());
    !root.is_ok_and(|root| root.is(&cx.process.place.borrow().root()))
}

/// `place` is at the root of a namespace from now on: what covers its first mount.
///
/// # Errors
/// `EINVAL` if it has none.
pub fn enter_space(cx: &Cx, space: &MountSpace, place: &Place) -> Result<(), Errno> {
    let mut spot = space.root().ok_or(Errno::EINVAL)?.root_spot();
    while let Some(over) = cx.unix.fs.table.over(&spot) {
        spot = over.root_spot();
    }
    place.set_root(spot.clone());
    place.set_directory(spot);
    Ok(())
}

/// Whether `spot` is in what `above` shows.
fn is_reachable(spot: &Spot, above: &Spot) -> bool {
    let mut at = spot.clone();
    while !Rc::ptr_eq(&at.mount, &above.mount) {
        let Some(point) = at.mount.point() else { return false };
        at = point.spot;
    }
    super::bind::is_inside(&at.inode, None, &above.inode)
}

fn is_shared(point: &Point) -> bool {
    point.spot.mount.sharing.get().peers != 0
}

/// `pivot_root(new, old)`: the mount `new` becomes the root, and the root is mounted on `old`.
pub(super) fn pivot_root(cx: &Cx) -> Answer {
    let space = namespace::check_mounts(cx)?;
    let new = walk::inode(cx, cx.arg(0))?;
    let old = walk::inode(cx, cx.arg(1))?;
    if !new.is_directory() || !old.is_directory() {
        return Err(Errno::ENOTDIR.into());
    }
    let root = cx.process.place.borrow().root();
    if !space.has(&root.mount) || !space.has(&new.mount) || !space.has(&old.mount) {
        return Err(Errno::EINVAL.into());
    }
    let (same_new, same_old) =
        (Rc::ptr_eq(&new.mount, &root.mount), Rc::ptr_eq(&old.mount, &root.mount));
    if same_new || same_old {
        return Err(Errno::EBUSY.into());
    }
    let (Some(at), Some(new_at)) = (root.mount.point(), new.mount.point()) else {
        return Err(Errno::EINVAL.into());
    };
    let wrong = !root.is_mount_root()
        || !new.is_mount_root()
        || !is_reachable(&old, &new)
        || !is_reachable(&new, &root)
        || is_shared(&at)
        || is_shared(&new_at)
        || new.mount.is_locked();
    if wrong {
        return Err(Errno::EINVAL.into());
    }
    let locked = new.mount.locked.replace(root.mount.locked.get());
    root.mount.locked.set(locked);
    exchange(&space, &root.mount, &new.mount, (at, old));
    follow(cx, &root, &new);
    Ok(0)
}

fn exchange(space: &MountSpace, root: &Rc<Mount>, new: &Rc<Mount>, (at, old): (Point, Spot)) {
    space.move_mount(new, None);
    space.move_mount(root, Some(Point { spot: old, location: None }));
    space.move_mount(new, Some(at));
}

/// Everybody who was at the old root is at the new one.
fn follow(cx: &Cx, root: &Spot, new: &Spot) {
    let processes = cx.unix.processes.by_pid.borrow();
    for process in processes.values() {
        let place = process.place.borrow();
        if place.root().is(root) {
            place.set_root(new.clone());
        }
        if place.directory().is(root) {
            place.set_directory(new.clone());
        }
    }
}

/// `MS_MOVE`: the mount at `from` is at `point` from now on.
///
/// # Errors
/// `EINVAL` for what cannot be moved, `ELOOP` into itself.
pub(super) fn move_mount(cx: &Cx, from: &Spot, point: Point) -> Result<(), Errno> {
    let space = namespace::mounts(cx.unix, cx.process);
    let at = from.mount.point().ok_or(Errno::EINVAL)?;
    let wrong = !from.is_mount_root()
        || !space.has(&from.mount)
        || !space.has(&point.spot.mount)
        || from.mount.is_locked()
        || is_shared(&at);
    if wrong || from.is_directory() != point.spot.is_directory() {
        return Err(Errno::EINVAL);
    }
    if point.spot.mount.is_below(&from.mount) {
        return Err(Errno::ELOOP);
    }
    if point.spot.mount.sharing.get().peers == 0 {
        space.move_mount(&from.mount, Some(point));
        return Ok(());
    }
    // Those who hear of it get copies.
    let below = space.below(&from.mount);
    let tree = below.iter().enumerate().map(|(index, mount)| {
        let point = if index == 0 { None } else { mount.point() };
        (mount.clone(), point)
    });
    super::share::graft(cx, &space, tree.collect(), point, || {
        below.iter().rev().for_each(|mount| space.take_out(mount));
    })
}

/// Flags that a mount changes to.
pub(super) const SETTABLE: u32 = super::mounts::OF_MOUNT & !linux::MS_RELATIME;
