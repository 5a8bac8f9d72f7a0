//! The system's log: `syslog` and `/dev/kmsg`.

use linux_raw_sys::errno;
use linux_raw_sys::general::{
    __NR_lseek, __NR_syslog, O_NONBLOCK, O_RDONLY, O_WRONLY, SEEK_DATA, SEEK_END, SEEK_SET,
};

use crate::common::World;
use crate::common::caller::{Program, error};

/// Bytes of the log, as `syslog` says.
const SIZE: u64 = 64 << 10;

/// What `syslog(action)` gives.
fn told(program: &Program, action: u64, len: u64) -> String {
    let len = program.call(__NR_syslog, &[action, program.buffer, len]);
    assert!(len >= 0, "{len}");
    let bytes = program.world.read(&program.thread, program.buffer, len as usize);
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_log_has_what_the_server_said() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    assert_eq!(root.call(__NR_syslog, &[10]), SIZE as i64);
    let all = told(&root, 3, SIZE);
    assert!(all.starts_with("<6>[    1.000000] Linux version "), "{all}");
    root.call(500, &[]);
    let all = told(&root, 3, SIZE);
    assert!(all.lines().last().unwrap().contains("made system call 500"), "{all}");
    // Whole lines, the last ones.
    let few = told(&root, 3, 200);
    assert!(
        few.starts_with('<') && few.lines().count() < all.lines().count() && all.ends_with(&few)
    );
    assert_eq!(told(&root, 4, SIZE), all, "read and cleared away");
    assert_eq!(told(&root, 3, SIZE), "");
}

#[test]
fn lines_are_taken_once_and_waited_for() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let unread = root.call(__NR_syslog, &[9]);
    let first = told(&root, 2, 10);
    assert_eq!(first.len(), 10, "a part of a line");
    let rest = told(&root, 2, SIZE);
    assert_eq!((first.len() + rest.len()) as i64, unread);
    assert!(rest.ends_with('\n'));
    assert_eq!(root.call(__NR_syslog, &[9]), 0);
    let child = root.fork();
    world.waits(&child.thread, __NR_syslog, &[2, child.buffer, 100]);
    let log = root.opened("/dev/kmsg", O_WRONLY);
    assert_eq!(root.write(log, b"hello\n"), 6);
    let len = world.next_reply(&child.thread).unwrap();
    let line = world.read(&child.thread, child.buffer, len as usize);
    assert_eq!(line, b"<12>[    1.000000] hello\n");
}

#[test]
fn records_are_read_one_by_one() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let log = root.opened("/dev/kmsg", O_RDONLY | O_NONBLOCK);
    assert!(root.read(log, 1000).starts_with(b"6,0,1000000,-;Linux version "));
    assert_eq!(root.call(__NR_lseek, &[log, 0, SEEK_END.into()]), 0);
    let nothing = root.call(linux_raw_sys::general::__NR_read, &[log, root.buffer, 1000]);
    assert_eq!(nothing, error(errno::EAGAIN));
    let writer = root.opened("/dev/kmsg", O_WRONLY);
    world.advance(1_500_000_000);
    root.write(writer, b"<3>\x1b[2Jwrong\n");
    let at_us = world.machine.now_ns.get() / 1000;
    let line = format!("11,3,{at_us},-;\\x1b[2Jwrong\n");
    let small = root.call(linux_raw_sys::general::__NR_read, &[log, root.buffer, 5]);
    assert_eq!(small, error(errno::EINVAL), "no room for it");
    assert_eq!(root.read(log, 1000), line.as_bytes());
    root.call(__NR_syslog, &[5]);
    assert_eq!(root.call(__NR_lseek, &[log, 0, SEEK_DATA.into()]), 0);
    root.write(writer, b"<30>a service\n");
    assert_eq!(root.read(log, 1000), format!("30,4,{at_us},-;a service\n").as_bytes());
    let user = root.fork();
    user.lose_privileges();
    assert_eq!(user.open("/dev/kmsg", O_RDONLY, 0), error(errno::EPERM));
}

/// Whoever writes all the time costs no more memory, and who reads too late is told so.
#[test]
fn the_oldest_records_make_room() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let log = root.opened("/dev/kmsg", O_RDONLY);
    let writer = root.opened("/dev/kmsg", O_WRONLY);
    for _ in 0..1000 {
        root.write(writer, &[b'x'; 500]);
    }
    let read = linux_raw_sys::general::__NR_read;
    assert_eq!(root.call(read, &[log, root.buffer, 1000]), error(errno::EPIPE));
    assert!(root.read(log, 1000).starts_with(b"12,8"), "the oldest that is there");
    let unread = root.call(__NR_syslog, &[9]);
    assert!((1..=SIZE as i64).contains(&unread), "{unread}");
    assert_eq!(told(&root, 2, 2 * SIZE).len() as i64, unread);
    assert_eq!(root.call(__NR_lseek, &[log, 0, SEEK_SET.into()]), 0);
    assert_eq!(root.call(__NR_lseek, &[log, 1, SEEK_SET.into()]), error(errno::ESPIPE));
}
