//! `/proc/PID/ns`: the namespaces of a process.

use super::process::{Entry, Named};
use super::{Subject, Target};
use crate::call::Cx;
use crate::errno::Errno;
use crate::process::namespace::{Namespace, mounts, names};

/// Its names.
pub(super) const ENTRIES: &[Named] = &[
    link("ipc", |cx, one| tell(cx, Namespace::Ipc(crate::ipc::of(cx.unix, &one.process)))),
    link("mnt", |cx, one| tell(cx, Namespace::Mounts(mounts(cx.unix, &one.process)))),
    link("pid", |cx, one| tell(cx, Namespace::Numbers(one.process.state.numbers.clone()))),
    link("pid_for_children", numbers_of_children),
    link("time", |cx, one| tell(cx, Namespace::Clocks(one.process.state.clocks.borrow().clone()))),
    link("time_for_children", |cx, one| {
        let clocks = one.process.state.clocks_of_children.borrow().clone();
        tell(cx, Namespace::Clocks(clocks))
    }),
    link("user", |cx, one| {
        let users = one.process.credentials.borrow().users.clone();
        tell(cx, Namespace::Users(users))
    }),
    link("uts", |cx, one| tell(cx, Namespace::Names(names(cx.unix, &one.process)))),
];

const fn link(name: &'static str, find: fn(&Cx, &Subject) -> Result<Target, Errno>) -> Named {
    (name, 0o777, Entry::Link(find))
}

fn tell(cx: &Cx, namespace: Namespace) -> Result<Target, Errno> {
    Ok(Target::Spot(crate::fs::namespace_spot(cx, namespace)))
}

/// There is none before somebody has been born there.
fn numbers_of_children(cx: &Cx, subject: &Subject) -> Result<Target, Errno> {
    let space = subject.process.state.numbers_of_children.borrow().clone();
    match &space {
        Some(begun) if !begun.is_begun() => Err(Errno::ENOENT),
        _ => tell(cx, Namespace::Numbers(space)),
    }
}
