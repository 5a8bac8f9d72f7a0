//! When an id is free.

use linux_raw_sys::general as l;

use crate::common::World;
use crate::common::caller::Program;

/// Nobody gets the id of a group or session that has members, whoever led it.
#[test]
fn an_id_is_free_with_its_last_member() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let setting = root.opened("/proc/sys/kernel/ns_last_pid", l::O_RDWR);
    let next = |id: u64| {
        root.write(setting, format!("{}", id - 1).as_bytes());
        let child = root.fork();
        let number = u64::from(child.thread.process().number);
        end(&root, &child);
        number
    };
    for number in [l::__NR_setpgid, l::__NR_setsid] {
        let leader = root.fork();
        let id = u64::from(leader.thread.process().number);
        assert!(leader.call(number, &[0, 0]) >= 0);
        let member = leader.fork();
        end(&root, &leader);
        assert_ne!(next(id), id);
        assert_eq!(member.call(l::__NR_setpgid, &[0, 0]), 0);
        let moved = u64::from(member.thread.process().number);
        assert_eq!(next(id) == id, number == l::__NR_setpgid, "a session stays");
        assert_ne!(next(moved), moved);
        end(&root, &member);
        assert_eq!((next(id), next(moved)), (id, moved));
    }
}

/// `program` ends, and is waited for by `root`, if it is not by somebody else.
fn end(root: &Program<'_>, program: &Program<'_>) {
    root.world.call(&program.thread, l::__NR_exit_group, &[0]);
    root.call(l::__NR_wait4, &[u64::MAX, 0, l::WNOHANG.into(), 0]);
}
