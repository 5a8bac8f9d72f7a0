//! Memory is used up: whose process dies. Called by `fault` when a program's access finds no frame,
//! or its user cannot pay for what the server has to remember about the page.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;

use linux_raw_sys::general::SIGKILL;

use crate::machine::Reply;
use crate::process::{Pid, Process};
use crate::signal;
use crate::thread::Thread;
use crate::unix::Unix;

/// Not killed for memory, whatever it has (`oom_score_adj`).
const NEVER_KILLED: i32 = -1000;

/// Who dies when no frame is left: of the user whose processes have the most, the process
/// that has the most, as `oom_score_adj` (thousandths of all frames) sees it.
fn greediest(unix: &Unix) -> Option<Rc<Process>> {
    let processes = unix.processes.by_pid.borrow();
    let total = unix.memory.total() as i64;
    let candidates = processes.values().filter_map(|process| {
        let adjusted = process.state.out_of_memory.get();
        let spared = process.pid == Pid::FIRST || process.ended.get().is_some();
        let has = process.space().resident() as i64 + total * i64::from(adjusted) / 1000;
        (!spared && adjusted != NEVER_KILLED).then(|| (process, has.max(1)))
    });
    let mut users: BTreeMap<u32, (i64, (&Rc<Process>, i64))> = BTreeMap::new();
    for (process, has) in candidates {
        let user = users.entry(process.user().uid).or_insert((0, (process, 0)));
        user.0 += has;
        if has > user.1.1 {
            user.1 = (process, has);
        }
    }
    let most = users.into_values().max_by_key(|(sum, _)| *sum);
    most.map(|(_, (process, _))| process.clone())
}

/// No frame is left: the greediest process dies, and the access is tried again.
pub(super) fn out_of_memory(unix: &Unix, thread: &Rc<Thread>) {
    match greediest(unix) {
        Some(victim) if !Rc::ptr_eq(&victim, &thread.process) => {
            unix.say(&format!(
                "unix: memory is used up; process {} has the most of it and is killed",
                victim.pid.first()
            ));
            signal::send(unix, &victim, signal::Info::kernel(SIGKILL));
            unix.reply(thread, Reply::Mapped);
        }
        _ => killed_for_memory(unix, thread),
    }
}

/// The process wants more than it can have, and dies.
pub(super) fn killed_for_memory(unix: &Unix, thread: &Rc<Thread>) {
    unix.say(&format!(
        "unix: memory is used up; process {}, which wants more, is killed",
        thread.process.pid.first()
    ));
    signal::bad_access(unix, thread, SIGKILL, 0, 0);
}
