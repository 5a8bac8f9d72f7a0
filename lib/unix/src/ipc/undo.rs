//! `SEM_UNDO`: what a process's end takes back.

use super::semaphores::{Set, VALUE_MAX};
use crate::errno::Errno;
use crate::process::Pid;

/// What an entry costs.
pub(super) const BYTES: u64 = 64;

/// What `pid` takes back from semaphore `number` at its end.
pub(super) fn of(set: &Set, pid: Pid, number: u16) -> i32 {
    set.undo.borrow().get(&(pid, number)).copied().unwrap_or(0)
}

/// Whether so much can be taken back: as much as a semaphore can hold, and one more.
pub(super) fn check(back: i32) -> Result<(), Errno> {
    if (-VALUE_MAX - 1..=VALUE_MAX).contains(&back) { Ok(()) } else { Err(Errno::ERANGE) }
}

/// Notes what `pid` takes back from semaphore `number` from now on.
pub(super) fn note(set: &Set, pid: Pid, number: u16, back: i32) {
    let mut undo = set.undo.borrow_mut();
    match back {
        0 => drop(undo.remove(&(pid, number))),
        back => drop(undo.insert((pid, number), back)),
    }
    drop(undo);
    set.count();
}

/// The process has ended.
pub(super) fn process_ended(set: &Set, pid: Pid) {
    let mut any = false;
    loop {
        let next = {
            let undo = set.undo.borrow();
            undo.range((pid, 0)..=(pid, u16::MAX)).next().map(|(key, back)| (*key, *back))
        };
        let Some((key, back)) = next else { break };
        set.undo.borrow_mut().remove(&key);
        if let Some(one) = set.all.borrow_mut().get_mut(usize::from(key.1)) {
            one.value = (one.value + back).clamp(0, VALUE_MAX);
            one.pid = pid;
        }
        any = true;
    }
    if any {
        set.count();
        set.changed.wake_all();
    }
}
