//! Records of ended processes.

use linux_raw_sys::general as l;
use unix::errno::Errno;

use crate::common::World;
use crate::common::caller::Program;

const RECORD: usize = 64;

fn number(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(record[at..at + 4].try_into().unwrap())
}

#[test]
fn each_process_that_ends_is_recorded() {
    let world = World::new();
    let first = &world.first;
    let program = Program::new(&world, first);
    let path = world.put(first, b"/tmp/records\0");
    world.ok(first, l::__NR_creat, &[path, 0o600]);
    world.ok(first, l::__NR_acct, &[path]);
    let exits = world.fork(first);
    let (exit, killed) = (exits.process.number, world.fork(first));
    world.call(&exits, l::__NR_exit_group, &[7]);
    world.call(&killed, l::__NR_kill, &[killed.process.number.into(), l::SIGKILL.into()]);
    world.ok(first, l::__NR_acct, &[0]);
    let unseen = world.fork(first);
    world.call(&unseen, l::__NR_exit_group, &[0]);
    let text = program.contents("/tmp/records");
    let records: Vec<&[u8]> = text.chunks(RECORD).collect();
    assert_eq!(text.len(), 2 * RECORD);
    // Forked only, with all rights; the second one by a signal.
    assert_eq!((records[0][..2].to_vec(), records[1][..2].to_vec()), (vec![3, 3], vec![0x13, 3]));
    assert_eq!([records[0], records[1]].map(|of| number(of, 4)), [7 << 8, l::SIGKILL]);
    assert_eq!(number(records[0], 16), exit);
    assert_eq!(number(records[1], 20), first.process.number);
    assert_eq!(records[0][48..], first.process.name());
}

/// Neither a limit of its own nor a signal that comes of it keeps a process from being recorded.
#[test]
fn nobody_escapes_a_record_by_a_limit() {
    let world = World::new();
    let first = &world.first;
    let program = Program::new(&world, first);
    let path = world.put(first, b"/tmp/records\0");
    world.ok(first, l::__NR_creat, &[path, 0o600]);
    world.ok(first, l::__NR_acct, &[path]);
    let child = world.fork(first);
    let limit = world.words(&child, &[0, 0]);
    world.ok(&child, l::__NR_prlimit64, &[0, l::RLIMIT_FSIZE.into(), limit, 0]);
    world.call(&child, l::__NR_exit_group, &[7]);
    let text = program.contents("/tmp/records");
    assert_eq!((text.len(), number(&text, 4)), (RECORD, 7 << 8));
}

#[test]
fn records_go_into_files_of_whom_that_is_allowed() {
    let world = World::new();
    let first = &world.first;
    let at = |text: &[u8]| world.put(first, text);
    world.refused(first, l::__NR_acct, &[at(b"/tmp\0")], Errno::EISDIR);
    world.refused(first, l::__NR_acct, &[at(b"/dev/null\0")], Errno::EACCES);
    world.refused(first, l::__NR_acct, &[at(b"/tmp/none\0")], Errno::ENOENT);
    world.refused(first, l::__NR_acct, &[1], Errno::EFAULT);
    let (module, long) = (at(b"dummy\0"), at(&[b'm'; 60]));
    world.refused(first, l::__NR_delete_module, &[module, 0], Errno::ENOENT);
    world.refused(first, l::__NR_delete_module, &[long, 0], Errno::ENOENT);
    world.refused(first, l::__NR_delete_module, &[0, 0], Errno::EFAULT);
    world.ok(first, l::__NR_setuid, &[1000]);
    world.refused(first, l::__NR_acct, &[0], Errno::EPERM);
    world.refused(first, l::__NR_delete_module, &[module, 0], Errno::EPERM);
}
