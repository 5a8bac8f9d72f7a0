//! Who hears of mounts: groups of peers, which tell each other, and those that only hear (slaves).

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general as linux;

use super::bind::{Copied, copies, is_inside};
use super::mount_space::MountSpace;
use super::mounts::{Mount, Point, Sharing, Table};
use super::spot::Spot;
use crate::call::Cx;
use crate::errno::Errno;

/// A mount becomes shared, private, a slave or unbindable.
pub(super) fn set_kind(table: &Table, mount: &Rc<Mount>, kind: u32) {
    let old = mount.sharing.get();
    let new = match kind {
        linux::MS_SHARED if old.peers != 0 => Sharing { unbindable: false, ..old },
        linux::MS_SHARED => {
            Sharing { peers: table.new_groups(1), master: old.master, ..Sharing::default() }
        }
        linux::MS_SLAVE if old.peers != 0 => {
            let alone = table.sharing(|one| one.peers == old.peers).len() <= 1;
            let master = if alone { old.master } else { old.peers };
            Sharing { master, ..Sharing::default() }
        }
        linux::MS_SLAVE => Sharing { unbindable: false, ..old },
        linux::MS_UNBINDABLE => Sharing { unbindable: true, ..Sharing::default() },
        _ => Sharing::default(),
    };
    if new != old {
        table.share(mount, new);
    }
}

/// Copies are peers or slaves as their originals are.
pub(super) fn inherit(table: &Table, copies: &[Copied]) {
    for Copied { old, new, .. } in copies {
        table.share(new, old.sharing.get());
    }
}

/// Mounts a tree, whose first mount gets this point, and has those that hear of it mount a copy. Once nothing can fail
/// any more, `take_out` takes it from where it was.
///
/// # Errors
/// `ENOMEM`, `ENOSPC`; then nothing was mounted, nor taken out.
pub(super) fn graft(
    cx: &Cx,
    space: &Rc<MountSpace>,
    tree: Tree,
    point: Point,
    take_out: impl FnOnce(),
) -> Result<(), Errno> {
    let table = &cx.unix.fs.table;
    let on = point.spot.mount.clone();
    let mut told = Vec::new();
    if on.sharing.get().peers != 0 {
        let before: Vec<Sharing> = tree.iter().map(|(mount, _)| mount.sharing.get()).collect();
        for (mount, _) in &tree {
            set_kind(table, mount, linux::MS_SHARED);
        }
        told = prepare(table, &on, &tree, &point).inspect_err(|_| {
            tree.iter().zip(before).for_each(|((mount, _), old)| table.share(mount, old));
        })?;
    }
    take_out();
    place(space, tree, point);
    for (space, tree, point) in told {
        place(&space, tree, point);
    }
    Ok(())
}

fn place(space: &Rc<MountSpace>, tree: Tree, point: Point) {
    let mut first = Some(point);
    for (mount, point) in tree {
        space.add(&mount, point.or_else(|| first.take()));
    }
}

/// A tree of mounts that are nowhere yet, but for how they lie to each other.
type Tree = Vec<(Rc<Mount>, Option<Point>)>;
/// What is to be mounted for one that hears of it.
type ToldOne = (Rc<MountSpace>, Tree, Point);
type Told = Vec<ToldOne>;

/// The groups of a tree's mounts, or of copies of them. However many groups hear of it, each is only a number.
#[derive(Clone, Copy)]
enum Groups<'a> {
    /// They are in none.
    None,
    /// Those of this tree.
    Own(&'a [(Rc<Mount>, Option<Point>)]),
    /// New ones, in the tree's order, of which this is the first.
    New(u64),
}

impl Groups<'_> {
    /// That of the mount at this place in the tree.
    fn of(self, place: usize) -> u64 {
        match self {
            Self::None => 0,
            Self::Own(tree) => tree.get(place).map_or(0, |(mount, _)| mount.sharing.get().peers),
            Self::New(first) => first + place as u64,
        }
    }
}

/// Copies of a tree for all who hear of what is mounted on `on`, at `point` there.
fn prepare(
    table: &Table,
    on: &Rc<Mount>,
    tree: &[(Rc<Mount>, Option<Point>)],
    point: &Point,
) -> Result<Told, Errno> {
    let mut told = Vec::new();
    // Groups that hear of it, the groups that the copies belong to there, and whom those hear of.
    let mut left = alloc::vec![(on.sharing.get().peers, Groups::Own(tree), Groups::None)];
    let mut at = 0;
    while let Some((group, peers, masters)) = left.get(at).copied() {
        at += 1;
        for mount in table.sharing(|one| one.peers == group) {
            if !Rc::ptr_eq(&mount, on) {
                let copy = copy_for(table, &mount, tree, point, (peers, masters));
                told.extend(unless_foreign(on, &mount, copy)?);
            }
        }
        for slave in table.sharing(|one| one.master == group) {
            let own = slave.sharing.get().peers;
            if own == 0 {
                let copy = copy_for(table, &slave, tree, point, (Groups::None, peers));
                told.extend(unless_foreign(on, &slave, copy)?);
            } else if left.iter().all(|one| one.0 != own) {
                left.push((own, Groups::New(table.new_groups(tree.len())), peers));
            }
        }
    }
    Ok(told)
}

/// What was made for `hears`; for who belongs to other users, nothing if it cannot be: they have too many mounts, or
/// cannot pay, and nobody else's mount is refused for that.
fn unless_foreign(
    on: &Rc<Mount>,
    hears: &Rc<Mount>,
    copy: Result<Option<ToldOne>, Errno>,
) -> Result<Option<ToldOne>, Errno> {
    let foreign = hears.space().is_some_and(|space| mount_users(&on.space(), &space));
    if foreign { Ok(copy.unwrap_or_default()) } else { copy }
}

/// A copy of one mount.
fn copy_of(space: &MountSpace, mount: &Rc<Mount>) -> Result<Rc<Mount>, Errno> {
    let from = Point { spot: mount.root_spot(), location: None };
    let mut made = copies(space, core::slice::from_ref(mount), &from)?;
    Ok(made.pop().ok_or(Errno::EINVAL)?.new)
}

/// Whether a copy is for other users.
fn mount_users(one: &Option<Rc<MountSpace>>, other: &MountSpace) -> bool {
    one.as_ref().is_none_or(|one| one.users != other.users)
}

/// A copy for one that hears of it, if it shows the place.
fn copy_for(
    table: &Table,
    hears: &Rc<Mount>,
    tree: &[(Rc<Mount>, Option<Point>)],
    point: &Point,
    (peers, masters): (Groups, Groups),
) -> Result<Option<ToldOne>, Errno> {
    let parent = point.location.as_ref().map(|at| &at.0);
    let Some(space) = hears.space() else { return Ok(None) };
    let on_space = point.spot.mount.space();
    let Some((first, _)) = tree.first() else { return Ok(None) };
    if !is_inside(&point.spot.inode, parent, hears.root()) {
        return Ok(None);
    }
    let mut spot = Spot { mount: hears.clone(), inode: point.spot.inode.clone() };
    while let Some(over) = table.over(&spot) {
        spot = over.root_spot();
    }
    let mut made: Tree = Vec::new();
    for (index, (mount, point)) in tree.iter().enumerate() {
        let copy = copy_of(&space, mount)?;
        if mount_users(&on_space, &space) {
            copy.lock(index != 0);
        }
        table.share(
            &copy,
            Sharing { peers: peers.of(index), master: masters.of(index), unbindable: false },
        );
        let point = point.as_ref().filter(|_| !Rc::ptr_eq(mount, first)).and_then(|point| {
            let above = tree.iter().position(|(one, _)| Rc::ptr_eq(one, &point.spot.mount))?;
            let spot = Spot { mount: made.get(above)?.0.clone(), inode: point.spot.inode.clone() };
            Some(Point { spot, location: point.location.clone() })
        });
        made.push((copy, point));
    }
    let location = point.location.clone();
    Ok(Some((space, made, Point { spot, location })))
}

/// What was mounted on `point` is not any more: those that hear of it lose their copies, unless somebody is
/// in them.
pub(super) fn tell_unmounted(table: &Table, gone: &Rc<Mount>, point: &Point) {
    let mut groups = alloc::vec![point.spot.mount.sharing.get().peers];
    let mut at = 0;
    while let Some(group) = groups.get(at).copied().filter(|group| *group != 0) {
        at += 1;
        for mount in table.sharing(|one| one.peers == group || one.master == group) {
            let own = mount.sharing.get().peers;
            if !groups.contains(&own) && own != 0 {
                groups.push(own);
            }
            let spot = Spot { mount, inode: point.spot.inode.clone() };
            if let Some(copy) = table.over(&spot)
                && Rc::ptr_eq(copy.root(), gone.root())
                && !copy.is_locked()
                && let Some(space) = copy.space()
                && !super::mount::is_busy(&copy, 1)
            {
                space.remove(&copy);
            }
        }
    }
}
