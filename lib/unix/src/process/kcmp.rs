//! `kcmp`: whether two processes have the same thing.

use alloc::rc::Rc;

use linux_raw_sys::general as l;

use super::Process;
use crate::call::{Answer, Cx, Entry, partial};
use crate::errno::Errno;
use crate::fs::proc::check_close_look;

/// The call this file carries out.
pub const CALLS: &[Entry] = &[partial(l::__NR_kcmp, "kcmp", kcmp, "KCMP_EPOLL_TFD")];

/// `KCMP_*`.
const FILE: u32 = 0;
const MEMORY: u32 = 1;
const FILES: u32 = 2;
const PLACE: u32 = 3;
const ACTIONS: u32 = 4;
const IO: u32 = 5;
const UNDO: u32 = 6;

/// Results: the same; the first is less, or more, in an order that means nothing.
const SAME: u64 = 0;
const LESS: u64 = 1;
const MORE: u64 = 2;

/// `kcmp(pid, pid, kind, index, index)`.
fn kcmp(cx: &Cx) -> Answer {
    let find = |index: usize| -> Result<Rc<Process>, Errno> {
        let thread = cx.find_thread(cx.uint(index)).ok_or(Errno::ESRCH)?;
        Ok(thread.process().clone())
    };
    let (one, other) = (find(0)?, find(1)?);
    for process in [&one, &other] {
        check_close_look(cx, process).map_err(|_| Errno::EPERM)?;
    }
    Ok(match cx.uint(2) {
        FILE => {
            let open = |process: &Process, index: usize| {
                let fd = u32::try_from(cx.arg(index)).map_err(|_| Errno::EBADF)?;
                process.files.borrow().get(fd).ok_or(Errno::EBADF)
            };
            compare(&open(&one, 3)?, &open(&other, 4)?)
        }
        MEMORY => compare(&one.space(), &other.space()),
        FILES => compare(&one.files.borrow(), &other.files.borrow()),
        PLACE => compare(&one.place.borrow(), &other.place.borrow()),
        ACTIONS => compare(&one.actions.borrow(), &other.actions.borrow()),
        // Nobody has any, as on Linux before the first use.
        IO | UNDO => SAME,
        _ => return Err(Errno::EINVAL.into()),
    })
}

fn compare<T>(one: &Rc<T>, other: &Rc<T>) -> u64 {
    match Rc::as_ptr(one).cmp(&Rc::as_ptr(other)) {
        core::cmp::Ordering::Equal => SAME,
        core::cmp::Ordering::Less => LESS,
        core::cmp::Ordering::Greater => MORE,
    }
}
