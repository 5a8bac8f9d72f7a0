//! The tasks of one that ends get its chief as theirs, in steps: they may be many.

use abi::ThreadId;
use abi::syscall::Call;
use kernel::arch::{cpu, entry};
use kernel::check;
use kernel::space::SpaceRef;
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, set_current};

use crate::common::tasks::{QUIET_LINE, machine, system_call, thread};

const MANY: usize = 60;
/// As many may get another chief in a step.
const MOST: usize = 12;

/// `boss` goes on with the end of a task, and is interrupted.
fn goes_on(boss: TcbRef) {
    cpu().pending_lines.set(1 << QUIET_LINE);
    cpu().scheduler.ready.remove(boss);
    set_current(boss);
    let _ = entry::resume(boss);
}

#[test]
fn many_tasks_of_one_that_ends_get_another_chief_in_steps() {
    let (_machine, spaces) = machine(2 + MANY as u32);
    let [first, parent, tasks @ ..] = &spaces[..] else { panic!("there are more") };
    let (boss, last) = (thread(*first, 0, ThreadId::NIL), thread(*parent, 1, ThreadId::NIL));
    first.task.privileged.set(true);
    parent.set_chief(Some(*first));
    tasks.iter().for_each(|task| task.set_chief(Some(*parent)));
    let chiefs = || tasks.iter().filter_map(|space| space.task.chief.get());
    let of = |chief: SpaceRef| chiefs().filter(|its| *its == chief).count();
    cpu().pending_lines.set(1 << QUIET_LINE);
    let _ = system_call(boss, Call::ThreadControl, [last.id.get().0, 0, 0, 0, !0]);
    let mut before = of(*parent);
    assert!(before + MOST >= MANY, "{before} are left after the first step");
    while boss.resume.get() == Resume::Destroy {
        assert_eq!(check::violations(), 0, "with {before} tasks");
        goes_on(boss);
        let now = of(*parent);
        assert!(now + MOST >= before, "from {before} to {now} in a step");
        before = now;
    }
    cpu().pending_lines.set(0);
    assert_eq!((before, of(*first)), (0, MANY));
    assert_eq!(check::violations(), 0);
}
