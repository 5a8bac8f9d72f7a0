//! Who a process is: ids, credentials.

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general as l;

use crate::call::{Answer, Cx, Entry, full};

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_getpid, "getpid", getpid),
    full(l::__NR_getppid, "getppid", getppid),
    full(l::__NR_gettid, "gettid", gettid),
];

/// User and group identities.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Credentials {
    pub uid: u32,
    pub euid: u32,
    pub suid: u32,
    pub fsuid: u32,
    pub gid: u32,
    pub egid: u32,
    pub sgid: u32,
    pub fsgid: u32,
    pub groups: Rc<Vec<u32>>,
}

fn getpid(cx: &Cx) -> Answer {
    Ok(u64::from(cx.process.pid))
}

fn getppid(cx: &Cx) -> Answer {
    Ok(u64::from(cx.process.parent_pid.get()))
}

fn gettid(cx: &Cx) -> Answer {
    Ok(u64::from(cx.thread.tid.get()))
}
