//! `SEM_UNDO`: what a process's end takes back.

use super::semaphores::{Set, VALUE_MAX};
use crate::process::Pid;

/// What an entry costs.
pub(super) const BYTES: u64 = 64;

/// Notes that `pid` has changed semaphore `number` by `by`, to be taken back.
pub(super) fn note(set: &Set, pid: Pid, number: u16, by: i32) {
    let mut undo = set.undo.borrow_mut();
    let old = undo.get(&(pid, number)).copied().unwrap_or(0);
    match old - by {
        0 => drop(undo.remove(&(pid, number))),
        back => drop(undo.insert((pid, number), back)),
    }
    set.charge.set(undo.len() as u64 * BYTES + set.own_bytes());
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
        set.changed.wake_all();
    }
}
