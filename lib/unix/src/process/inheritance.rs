//! What the child of a `clone` has of its parent, and the namespaces that it gets of its own.

use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;

use super::birth::Wish;
use super::{Numbers, State, namespace, numbers};
use crate::call::Cx;
use crate::errno::Errno;
use crate::fs::Place;

/// The namespace of numbers into which the child is born.
pub(super) fn numbers_of_child(cx: &Cx, wish: &Wish) -> Result<Option<Rc<Numbers>>, Errno> {
    let may_choose = [l::CAP_SYS_ADMIN, l::CAP_CHECKPOINT_RESTORE];
    let who = cx.process.credentials.borrow();
    if wish.has(l::CLONE_NEWPID) {
        namespace::check(cx)?;
        return Ok(Some(numbers::new(cx)?));
    }
    let space = cx.process.state.numbers_of_children.borrow().clone();
    let elsewhere = !numbers::same(space.as_ref(), cx.numbers());
    if elsewhere && wish.has(l::CLONE_THREAD) {
        return Err(Errno::EINVAL);
    }
    if !wish.numbers.is_empty() && !may_choose.iter().any(|one| who.may(*one)) {
        return Err(Errno::EPERM);
    }
    Ok(space)
}

/// What the child's process inherits of its parent's state, and the namespaces of its own that are wanted.
pub(super) fn state_of_child(
    cx: &Cx,
    wish: &Wish,
    numbers: Option<Rc<Numbers>>,
    place: &Place,
) -> Result<State, Errno> {
    let from = &cx.process.state;
    let own_names = wish.has(l::CLONE_NEWUTS);
    let names =
        if own_names { Some(namespace::new_names(cx)?) } else { from.names.borrow().clone() };
    let ipc = match wish.has(l::CLONE_NEWIPC) {
        true => Some(namespace::new_ipc(cx)?),
        false => from.ipc.borrow().clone(),
    };
    let mounts = match wish.has(l::CLONE_NEWNS) {
        true => Some(namespace::new_mounts(cx, place)?),
        false => from.mounts.borrow().clone(),
    };
    let resets = from.policy.get().0 & l::SCHED_RESET_ON_FORK != 0;
    Ok(State {
        exit_signal: Cell::new(wish.exit_signal),
        not_dumpable: from.not_dumpable.clone(),
        no_new_privileges: from.no_new_privileges.clone(),
        out_of_memory: from.out_of_memory.clone(),
        timer_slack: from.timer_slack.clone(),
        first_slack: from.timer_slack.clone(),
        personality: from.personality.clone(),
        nice: Cell::new(if resets { from.nice.get().max(0) } else { from.nice.get() }),
        io_priority: from.io_priority.clone(),
        numbers_of_children: RefCell::new(numbers.clone()),
        numbers,
        names: RefCell::new(names),
        mounts: RefCell::new(mounts),
        ipc: RefCell::new(ipc),
        keys: from.keys.inherited(),
        deadline: from.deadline.clone(),
        policy: Cell::new(if resets { (l::SCHED_NORMAL, 0) } else { from.policy.get() }),
        ..State::default()
    })
}
