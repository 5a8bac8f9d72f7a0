//! What the child of a `clone` has of its parent, and the namespaces that it gets of its own.

use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;

use super::birth::Wish;
use super::user_space::Users;
use super::{Clocks, Numbers, State, clocks, namespace, numbers};
use crate::call::Cx;
use crate::errno::Errno;
use crate::fs::Place;

/// A namespace of clocks in which somebody is.
type InClocks = RefCell<Option<Rc<Clocks>>>;

/// The namespace of numbers into which the child is born.
pub(super) fn numbers_of_child(
    cx: &Cx,
    wish: &Wish,
    users: &Users,
) -> Result<Option<Rc<Numbers>>, Errno> {
    let may_choose = [l::CAP_SYS_ADMIN, l::CAP_CHECKPOINT_RESTORE];
    let mut space = cx.process.state.numbers_of_children.borrow().clone();
    let elsewhere = !numbers::same(space.as_ref(), cx.numbers());
    if elsewhere && wish.has(l::CLONE_THREAD) {
        return Err(Errno::EINVAL);
    }
    if wish.has(l::CLONE_NEWPID) {
        namespace::check_in(cx, users)?;
        space = Some(numbers::new(cx, users.clone())?);
    }
    let who = cx.process.credentials.borrow();
    let mut levels = numbers::levels(space.as_ref());
    for _ in &wish.numbers {
        let users = numbers::owner(levels.next());
        if !may_choose.iter().any(|one| who.may_in(&users, *one)) {
            return Err(Errno::EPERM);
        }
    }
    drop(levels);
    Ok(space)
}

/// The child's namespace of clocks, and that of its children.
fn clocks_of_child(cx: &Cx, wish: &Wish, users: &Users) -> Result<(InClocks, InClocks), Errno> {
    let from = &cx.process.state;
    let of_children = match wish.has(l::CLONE_NEWTIME) {
        true => RefCell::new(Some(clocks::new(cx, users.clone())?)),
        false => from.clocks_of_children.clone(),
    };
    // Who has its parent's memory reads the time from the same page.
    let own = if wish.has(l::CLONE_VM) { &from.clocks } else { &of_children };
    Ok((own.clone(), of_children))
}

/// What the child's process inherits of its parent's state, and the namespaces of its own that are wanted.
pub(super) fn state_of_child(
    cx: &Cx,
    wish: &Wish,
    (numbers, users): (Option<Rc<Numbers>>, &Users),
    place: &Place,
) -> Result<State, Errno> {
    let from = &cx.process.state;
    let own_names = wish.has(l::CLONE_NEWUTS);
    let names = if own_names {
        Some(namespace::new_names(cx, users.clone())?)
    } else {
        from.names.borrow().clone()
    };
    let ipc = match wish.has(l::CLONE_NEWIPC) {
        true => Some(namespace::new_ipc(cx, users.clone())?),
        false => from.ipc.borrow().clone(),
    };
    let (clocks, clocks_of_children) = clocks_of_child(cx, wish, users)?;
    let mounts = match wish.has(l::CLONE_NEWNS) {
        true => Some(namespace::new_mounts(cx, users.clone(), place)?),
        false => from.mounts.borrow().clone(),
    };
    Ok(State {
        exit_signal: Cell::new(wish.exit_signal),
        not_dumpable: from.not_dumpable.clone(),
        seen_from: from.seen_from.clone(),
        no_new_privileges: from.no_new_privileges.clone(),
        out_of_memory: from.out_of_memory.clone(),
        timer_slack: from.timer_slack.clone(),
        first_slack: from.timer_slack.clone(),
        personality: from.personality.clone(),
        io_priority: from.io_priority.clone(),
        numbers_of_children: RefCell::new(numbers.clone()),
        numbers,
        clocks,
        clocks_of_children,
        names: RefCell::new(names),
        mounts: RefCell::new(mounts),
        ipc: RefCell::new(ipc),
        keys: from.keys.inherited(),
        ..State::default()
    })
}
