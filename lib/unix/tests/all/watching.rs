//! Watching what happens to files: inotify.

use linux_raw_sys::{errno, general as l};

use crate::common::World;
use crate::common::caller::{CREAT, Program, RDWR, error};

/// Everything that waits in an inotify: watch, mask, whether there is a cookie, name.
fn events(program: &Program<'_>, fd: u64) -> Vec<(i32, u32, bool, String)> {
    let len = program.call(l::__NR_read, &[fd, program.buffer, 65_536]);
    if len == error(errno::EAGAIN) {
        return Vec::new();
    }
    let bytes = program.world.read(&program.thread, program.buffer, len as usize);
    let mut rest = &bytes[..];
    let mut events = Vec::new();
    while !rest.is_empty() {
        let word = |at: usize| u32::from_ne_bytes(rest[4 * at..4 * at + 4].try_into().unwrap());
        let end = 16 + word(3) as usize;
        let name = String::from_utf8_lossy(&rest[16..end]).trim_end_matches('\0').into();
        events.push((word(0) as i32, word(1), word(2) != 0, name));
        rest = &rest[end..];
    }
    events
}

fn watch(program: &Program<'_>, fd: u64, path: &str, mask: u32) -> i64 {
    let path = program.path(0, path.as_bytes());
    program.call(l::__NR_inotify_add_watch, &[fd, path, mask.into()])
}

fn new(program: &Program<'_>) -> u64 {
    program.call(l::__NR_inotify_init1, &[l::IN_NONBLOCK.into()]) as u64
}

fn masks(program: &Program<'_>, fd: u64) -> Vec<(u32, String)> {
    events(program, fd).into_iter().map(|(_, mask, _, name)| (mask, name)).collect()
}

#[test]
fn a_file_and_its_directory_hear_of_what_happens() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    root.mkdir("/tmp/d");
    let fd = new(&root);
    let of_directory = watch(&root, fd, "/tmp/d", l::IN_ALL_EVENTS) as i32;
    let file = root.opened("/tmp/d/f", RDWR | CREAT);
    root.write(file, b"text");
    root.close(file);
    let name = |mask| (mask, String::from("f"));
    let all = [l::IN_CREATE, l::IN_OPEN, l::IN_MODIFY, l::IN_CLOSE_WRITE].map(name);
    assert_eq!(masks(&root, fd), all);
    let of_file = watch(&root, fd, "/tmp/d/f", l::IN_ALL_EVENTS) as i32;
    assert_eq!(root.on(l::__NR_chmod, "/tmp/d/f", &[0o600]), 0);
    let both = [(of_directory, l::IN_ATTRIB, false, "f"), (of_file, l::IN_ATTRIB, false, "")];
    let both = both.map(|(watch, mask, cookie, name)| (watch, mask, cookie, name.to_string()));
    assert_eq!(events(&root, fd), both);
    assert_eq!(root.on_two(l::__NR_rename, "/tmp/d/f", "/tmp/d/g"), 0);
    let moved = events(&root, fd);
    assert_eq!(moved[0], (of_directory, l::IN_MOVED_FROM, true, "f".into()));
    assert_eq!(moved[1], (of_directory, l::IN_MOVED_TO, true, "g".into()));
    assert_eq!(moved[2], (of_file, l::IN_MOVE_SELF, false, String::new()));
    assert_eq!(root.on(l::__NR_unlink, "/tmp/d/g", &[]), 0);
    let gone = [
        (of_file, l::IN_ATTRIB, ""),
        (of_directory, l::IN_DELETE, "g"),
        (of_file, l::IN_DELETE_SELF, ""),
        (of_file, l::IN_IGNORED, ""),
    ];
    let gone = gone.map(|(watch, mask, name)| (watch, mask, false, name.to_string()));
    assert_eq!(events(&root, fd), gone);
    assert_eq!(root.on(l::__NR_rmdir, "/tmp/d", &[]), 0);
    let nameless = |mask| (mask, String::new());
    assert_eq!(masks(&root, fd), [l::IN_DELETE_SELF, l::IN_IGNORED].map(nameless));
    let wrong = root.call(l::__NR_inotify_rm_watch, &[fd, of_directory as u64]);
    assert_eq!(wrong, error(errno::EINVAL));
}

#[test]
fn options_of_watches() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let fd = new(&root);
    root.make("/tmp/f", b"text");
    assert_eq!(watch(&root, fd, "/tmp/f", l::IN_ONLYDIR | l::IN_OPEN), error(errno::ENOTDIR));
    assert_eq!(watch(&root, fd, "/tmp/f", 0), error(errno::EINVAL));
    assert_eq!(watch(&root, fd, "/tmp/g", l::IN_OPEN), error(errno::ENOENT));
    let number = watch(&root, fd, "/tmp/f", l::IN_OPEN | l::IN_ONESHOT);
    let again = l::IN_OPEN | l::IN_MASK_CREATE;
    assert_eq!(watch(&root, fd, "/tmp/f", again), error(errno::EEXIST));
    root.close(root.opened("/tmp/f", RDWR));
    let nameless = |mask| (mask, String::new());
    assert_eq!(masks(&root, fd), [l::IN_OPEN, l::IN_IGNORED].map(nameless));
    assert!(watch(&root, fd, "/tmp/f", l::IN_MODIFY) > number);
    // The same twice is told once; a buffer that is too small gets nothing.
    let file = root.opened("/tmp/f", RDWR);
    root.write(file, b"a");
    root.write(file, b"b");
    assert_eq!(root.call(l::__NR_read, &[fd, root.buffer, 15]), error(errno::EINVAL));
    assert_eq!(masks(&root, fd), [(l::IN_MODIFY, String::new())]);
    // A file without a name is still watched by its directory, but for IN_EXCL_UNLINK.
    let other = new(&root);
    watch(&root, fd, "/tmp", l::IN_MODIFY);
    watch(&root, other, "/tmp", l::IN_MODIFY | l::IN_EXCL_UNLINK);
    assert_eq!(root.on(l::__NR_unlink, "/tmp/f", &[]), 0);
    root.write(file, b"c");
    let last = [(l::IN_MODIFY, "f".to_string()), (l::IN_MODIFY, String::new())];
    assert_eq!(masks(&root, fd), last);
    assert_eq!(masks(&root, other), []);
    root.close(file);
    assert_eq!(masks(&root, fd), [(l::IN_IGNORED, String::new())]);
    // Who has no right to read may not watch.
    root.make("/tmp/secret", b"");
    root.on(l::__NR_chmod, "/tmp/secret", &[0o600]);
    let user = root.fork();
    user.lose_privileges();
    assert_eq!(watch(&user, other, "/tmp/secret", l::IN_OPEN), error(errno::EACCES));
}

#[test]
fn a_full_queue_says_so() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let fd = new(&root);
    root.make("/tmp/f", b"text");
    watch(&root, fd, "/tmp/f", l::IN_OPEN | l::IN_CLOSE);
    for _ in 0..10_000 {
        root.close(root.opened("/tmp/f", RDWR));
    }
    let mut last = Vec::new();
    loop {
        let more = events(&root, fd);
        if more.is_empty() {
            break;
        }
        last = more;
    }
    assert_eq!(last.pop(), Some((-1, l::IN_Q_OVERFLOW, false, String::new())));
}
