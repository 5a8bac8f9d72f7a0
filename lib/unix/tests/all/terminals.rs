//! Terminals: typing at the console, job control, pseudo-terminals.

use std::rc::Rc;

use crate::common::World;
use crate::common::caller::Program;
use linux_raw_sys::general::*;
use linux_raw_sys::ioctl::*;
use unix::errno::Errno;
use unix::thread::Thread;

/// The console, opened by process 1, whose controlling terminal it becomes.
fn console(world: &World) -> u64 {
    let name = world.text(&world.first, "/dev/console");
    let fd = world.ok(&world.first, __NR_open, &[name, O_RDWR.into(), 0]);
    world.console();
    fd
}

fn read(world: &World, thread: &Rc<Thread>, fd: u64) -> String {
    let to = world.scratch(&world.first, 256);
    let len = world.ok(thread, __NR_read, &[fd, to, 256]);
    String::from_utf8(world.read(thread, to, len as usize)).unwrap()
}

/// Changes the flags and control characters of a terminal.
fn change(world: &World, fd: u64, change: impl FnOnce(&mut [u32; 4], &mut [u8])) {
    let at = world.scratch(&world.first, 48);
    world.ok(&world.first, __NR_ioctl, &[fd, TCGETS.into(), at]);
    let mut bytes = world.read(&world.first, at, 36);
    let mut flags = [0, 4, 8, 12].map(|i| u32::from_le_bytes(bytes[i..i + 4].try_into().unwrap()));
    change(&mut flags, &mut bytes[17..36]);
    for (index, flag) in flags.iter().enumerate() {
        bytes[4 * index..4 * index + 4].copy_from_slice(&flag.to_le_bytes());
    }
    world.write(&world.first, at, &bytes);
    world.ok(&world.first, __NR_ioctl, &[fd, TCSETS.into(), at]);
}

#[test]
fn ancient_settings_are_half_of_the_others() {
    let world = World::new();
    let first = &world.first;
    let fd = console(&world);
    change(&world, fd, |flags, _| flags[2] |= 0x7_0000);
    let at = world.scratch(first, 48);
    world.ok(first, __NR_ioctl, &[fd, TCGETA.into(), at]);
    let mut old = world.read(first, at, 18);
    assert_eq!(old[9 + VEOF as usize], 4);
    old[9 + VEOF as usize] = 5;
    world.write(first, at, &old);
    for set in [TCSETA, TCSETAW, TCSETAF] {
        world.ok(first, __NR_ioctl, &[fd, set.into(), at]);
    }
    change(&world, fd, |flags, characters| {
        assert_eq!((flags[2] & 0x7_0000, characters[VEOF as usize]), (0x7_0000, 5));
        assert_eq!(characters[VWERASE as usize], 23);
    });
}

#[test]
fn settings_can_be_locked() {
    let world = World::new();
    let first = &world.first;
    let fd = console(&world);
    let at = world.scratch(first, 48);
    world.ok(first, __NR_ioctl, &[fd, TIOCGLCKTRMIOS.into(), at]);
    let mut locked = world.read(first, at, 36);
    assert_eq!(locked, [0; 36]);
    locked[12..16].copy_from_slice(&ECHO.to_le_bytes());
    locked[17 + VINTR as usize] = 1;
    world.write(first, at, &locked);
    world.ok(first, __NR_ioctl, &[fd, TIOCSLCKTRMIOS.into(), at]);
    change(&world, fd, |flags, characters| {
        flags[3] &= !(ECHO | ICANON);
        characters[VINTR as usize] = 9;
        characters[VEOF as usize] = 9;
    });
    change(&world, fd, |flags, characters| {
        assert_eq!(flags[3] & (ECHO | ICANON), ECHO);
        assert_eq!((characters[VINTR as usize], characters[VEOF as usize]), (3, 9));
    });
    world.ok(first, __NR_setresuid, &[1000; 3]);
    world.refused(first, __NR_ioctl, &[fd, TIOCSLCKTRMIOS.into(), at], Errno::EPERM);
}

#[test]
fn a_line_is_read_when_it_is_complete() {
    let world = World::new();
    let fd = console(&world);
    let to = world.scratch(&world.first, 64);
    world.waits(&world.first, __NR_read, &[fd, to, 64]);
    world.type_in(b"ech");
    assert_eq!(world.next_reply(&world.first), None);
    assert_eq!(world.console(), "ech");
    world.type_in(b"x\x7fo hi\r");
    assert_eq!(world.next_reply(&world.first), Some(8));
    assert_eq!(world.read(&world.first, to, 8), b"echo hi\n");
    assert_eq!(world.console(), "x\x08 \x08o hi\r\n");
    // Two lines at once are two reads; part of a line is left.
    world.type_in(b"one\ntwo\n");
    assert_eq!(world.ok(&world.first, __NR_read, &[fd, to, 2]), 2);
    assert_eq!(read(&world, &world.first, fd), "e\n");
    assert_eq!(read(&world, &world.first, fd), "two\n");
    // End of file, with and without a line before it.
    world.type_in(b"\x04");
    assert_eq!(read(&world, &world.first, fd), "");
    world.type_in(b"abc\x04");
    assert_eq!(read(&world, &world.first, fd), "abc");
    let nothing = world.scratch(&world.first, 4);
    world.ok(&world.first, __NR_ioctl, &[fd, FIONREAD.into(), nothing]);
    assert_eq!(world.read(&world.first, nothing, 4), [0; 4]);
}

#[test]
fn lines_are_edited() {
    let world = World::new();
    let fd = console(&world);
    world.type_in(b"foo bar  \x17baz\n");
    assert_eq!(read(&world, &world.first, fd), "foo baz\n");
    world.type_in(b"gone\x15here\n");
    assert_eq!(read(&world, &world.first, fd), "here\n");
    world.type_in(b"a\x16\x03b\n");
    assert_eq!(read(&world, &world.first, fd), "a\x03b\n");
    world.console();
    world.type_in(b"\x01\x12");
    assert_eq!(world.console(), "^A^R\r\n^A");
    world.type_in(b"\x7f");
    assert_eq!(world.console(), "\x08 \x08\x08 \x08");
    change(&world, fd, |flags, _| flags[0] |= IUTF8);
    world.type_in("ä\x7fü\n".as_bytes());
    assert_eq!(read(&world, &world.first, fd), "ü\n");
}

#[test]
fn raw_input_comes_by_number_and_time() {
    let world = World::new();
    let fd = console(&world);
    let to = world.scratch(&world.first, 64);
    let raw = |min, time| {
        change(&world, fd, |flags, characters| {
            flags[3] &= !(ICANON | ECHO | ISIG);
            characters[VMIN as usize] = min;
            characters[VTIME as usize] = time;
        });
    };
    raw(3, 0);
    world.waits(&world.first, __NR_read, &[fd, to, 64]);
    world.type_in(b"\x03a");
    assert_eq!(world.next_reply(&world.first), None);
    world.type_in(b"bc");
    assert_eq!(world.next_reply(&world.first), Some(4));
    raw(0, 0);
    assert_eq!(world.ok(&world.first, __NR_read, &[fd, to, 64]), 0);
    raw(0, 5);
    world.waits(&world.first, __NR_read, &[fd, to, 64]);
    world.advance(500_000_000);
    assert_eq!(world.next_reply(&world.first), Some(0));
    raw(10, 2);
    world.waits(&world.first, __NR_read, &[fd, to, 64]);
    world.advance(5_000_000_000);
    assert_eq!(world.next_reply(&world.first), None);
    world.type_in(b"x");
    world.advance(150_000_000);
    world.type_in(b"y");
    world.advance(150_000_000);
    assert_eq!(world.next_reply(&world.first), None);
    world.advance(50_000_000);
    assert_eq!(world.next_reply(&world.first), Some(2));
    assert_eq!(world.console(), "");
}

#[test]
fn output_is_processed_and_stopped() {
    let world = World::new();
    let fd = console(&world);
    let text = world.put(&world.first, b"one\n\ttwo\n");
    assert_eq!(world.ok(&world.first, __NR_write, &[fd, text, 9]), 9);
    assert_eq!(world.console(), "one\r\n\ttwo\r\n");
    world.type_in(b"\x13");
    world.waits(&world.first, __NR_write, &[fd, text, 4]);
    world.type_in(b"q");
    assert_eq!(world.console(), "");
    world.type_in(b"\x11");
    assert_eq!(world.next_reply(&world.first), Some(4));
    assert_eq!(world.console(), "qone\r\n");
    change(&world, fd, |flags, _| flags[1] = 0);
    assert_eq!(world.ok(&world.first, __NR_write, &[fd, text, 9]), 9);
    assert_eq!(world.console(), "one\n\ttwo\n");
}

/// A shell in a session of its own with the console for its terminal, and a job of it in
/// a group of its own. (Groups whose parent is process 1 count as orphaned.)
fn shell(world: &World) -> (Rc<Thread>, Rc<Thread>, u64) {
    let name = world.text(&world.first, "/dev/console");
    world.scratch(&world.first, 16);
    let shell = world.fork(&world.first);
    world.ok(&shell, __NR_setsid, &[]);
    let fd = world.ok(&shell, __NR_open, &[name, O_RDWR.into(), 0]);
    let job = world.fork(&shell);
    let pid = u64::from(job.process().number);
    world.ok(&shell, __NR_setpgid, &[pid, pid]);
    (shell, job, fd)
}

/// Puts a group into the foreground.
fn put_forward(world: &World, shell: &Rc<Thread>, fd: u64, group: &Rc<Thread>) {
    let at = world.put(shell, &group.process().number.to_le_bytes());
    world.ok(shell, __NR_ioctl, &[fd, TIOCSPGRP.into(), at]);
}

#[test]
fn keys_signal_the_foreground() {
    let world = World::new();
    let (shell, job, fd) = shell(&world);
    put_forward(&world, &shell, fd, &job);
    let to = world.scratch(&job, 16);
    world.waits(&job, __NR_read, &[fd, to, 16]);
    world.type_in(b"half a line\x03");
    assert_eq!(job.process().ended.get(), Some(SIGINT));
    assert_eq!(world.console(), "half a line^C");
    assert_eq!(shell.process().ended.get(), None);
}

#[test]
fn a_job_is_stopped_and_goes_on() {
    let world = World::new();
    let (shell, job, fd) = shell(&world);
    put_forward(&world, &shell, fd, &job);
    let to = world.scratch(&job, 16);
    world.waits(&job, __NR_read, &[fd, to, 16]);
    world.type_in(b"\x1a");
    assert_eq!(world.next_event(&job), None);
    assert_eq!(job.process().signals.stopped.get(), Some(SIGTSTP));
    assert_eq!(world.console(), "^Z");
    let status = world.scratch(&shell, 4);
    let pid = world.ok(&shell, __NR_wait4, &[u64::MAX, status, WUNTRACED.into(), 0]);
    assert_eq!(pid, u64::from(job.process().number));
    world.ok(&shell, __NR_kill, &[pid, SIGCONT.into()]);
    world.type_in(b"line\n");
    assert_eq!(world.next_reply(&job), Some(5));
}

#[test]
fn the_background_is_stopped() {
    let world = World::new();
    let (shell, job, fd) = shell(&world);
    let to = world.scratch(&job, 64);
    assert_eq!(world.call(&job, __NR_read, &[fd, to, 64]), None);
    assert_eq!(job.process().signals.stopped.get(), Some(SIGTTIN));
    // It gets the terminal and goes on: the read starts again.
    put_forward(&world, &shell, fd, &job);
    let pid = u64::from(job.process().number);
    world.ok(&shell, __NR_kill, &[pid, SIGCONT.into()]);
    world.type_in(b"line\n");
    assert_eq!(world.next_reply(&job), Some(5));
    assert_eq!(job.process().signals.stopped.get(), None);
    // The shell is in the background now: it may not change the terminal without being stopped.
    let at = world.put(&shell, &shell.process().number.to_le_bytes());
    assert_eq!(
        world.call(&shell, __NR_ioctl, &[fd, TIOCSPGRP.into(), at]),
        Some(Errno::ENOTTY.result())
    );
}

#[test]
fn a_session_ends_with_its_leader() {
    let world = World::new();
    let (shell, job, fd) = shell(&world);
    put_forward(&world, &shell, fd, &job);
    let to = world.scratch(&job, 16);
    world.waits(&job, __NR_read, &[fd, to, 16]);
    assert_eq!(world.call(&shell, __NR_exit_group, &[0]), None);
    assert_eq!(job.process().ended.get(), Some(SIGHUP));
}

#[test]
fn a_window_has_a_size() {
    let world = World::new();
    let fd = console(&world);
    let at = world.scratch(&world.first, 8);
    world.ok(&world.first, __NR_ioctl, &[fd, TIOCGWINSZ.into(), at]);
    assert_eq!(world.read(&world.first, at, 8), [24, 0, 80, 0, 0, 0, 0, 0]);
    world.write(&world.first, at, &[50, 0, 132, 0]);
    world.ok(&world.first, __NR_ioctl, &[fd, TIOCSWINSZ.into(), at]);
    world.write(&world.first, at, &[0; 8]);
    world.ok(&world.first, __NR_ioctl, &[fd, TIOCGWINSZ.into(), at]);
    assert_eq!(world.read(&world.first, at, 4), [50, 0, 132, 0]);
    world.refused(&world.first, __NR_ioctl, &[fd, 0x1234, at], Errno::ENOTTY);
    world.refused(&world.first, __NR_ioctl, &[fd, TIOCGWINSZ.into(), 0], Errno::EFAULT);
    let own = world.text(&world.first, "/dev/tty");
    let own = world.ok(&world.first, __NR_open, &[own, O_RDWR.into(), 0]);
    world.ok(&world.first, __NR_ioctl, &[own, TIOCGSID.into(), at]);
    assert_eq!(world.read(&world.first, at, 4), [1, 0, 0, 0]);
}

/// A pseudo-terminal: master and (opened) slave.
fn pty(world: &World) -> [u64; 2] {
    let name = world.text(&world.first, "/dev/ptmx");
    let flags = u64::from(O_RDWR | O_NOCTTY);
    let master = world.ok(&world.first, __NR_open, &[name, flags, 0]);
    let at = world.put(&world.first, &[9; 4]);
    world.ok(&world.first, __NR_ioctl, &[master, TIOCGPTN.into(), at]);
    let number = u32::from_le_bytes(world.read(&world.first, at, 4).try_into().unwrap());
    let slave = world.text(&world.first, &format!("/dev/pts/{number}"));
    world.refused(&world.first, __NR_open, &[slave, flags, 0], Errno::EIO);
    world.write(&world.first, at, &[0; 4]);
    world.ok(&world.first, __NR_ioctl, &[master, TIOCSPTLCK.into(), at]);
    [master, world.ok(&world.first, __NR_open, &[slave, flags, 0])]
}

#[test]
fn a_pseudo_terminal_has_two_sides() {
    let world = World::new();
    let first = &world.first;
    let [master, slave] = pty(&world);
    let text = world.put(first, b"typed\r");
    assert_eq!(world.ok(first, __NR_write, &[master, text, 6]), 6);
    assert_eq!(read(&world, first, slave), "typed\n");
    assert_eq!(read(&world, first, master), "typed\r\n");
    assert_eq!(world.ok(first, __NR_write, &[slave, text, 5]), 5);
    assert_eq!(read(&world, first, master), "typed");
    // The slave is closed: the master gets an error; it may be opened again.
    world.ok(first, __NR_close, &[slave]);
    world.refused(first, __NR_read, &[master, text, 5], Errno::EIO);
    let name = world.text(first, "/dev/pts/0");
    let slave = world.ok(first, __NR_open, &[name, u64::from(O_RDWR | O_NOCTTY), 0]);
    // The master is closed: the line is cut.
    world.ok(first, __NR_close, &[master]);
    assert_eq!(world.ok(first, __NR_read, &[slave, text, 5]), 0);
    world.refused(first, __NR_write, &[slave, text, 5], Errno::EIO);
    world.refused(first, __NR_open, &[name, u64::from(O_RDWR), 0], Errno::ENOENT);
}

#[test]
fn a_session_hears_of_its_terminal_s_end() {
    let world = World::new();
    let first = &world.first;
    let [master, slave] = pty(&world);
    let child = world.fork(first);
    world.ok(&child, __NR_close, &[master]);
    world.ok(&child, __NR_setsid, &[]);
    world.ok(&child, __NR_ioctl, &[slave, TIOCSCTTY.into(), 0]);
    let at = world.scratch(first, 16);
    world.waits(&child, __NR_read, &[slave, at, 16]);
    let keys = world.put(first, b"\x03");
    let grandchild = child.process().number;
    world.ok(first, __NR_close, &[slave]);
    world.ok(first, __NR_write, &[master, keys, 1]);
    assert_eq!(child.process().ended.get(), Some(SIGINT), "process {grandchild}");
}

/// However many an ordinary user takes, there are some for others.
#[test]
fn a_user_leaves_terminals_to_others() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let mut user = root.fork();
    user.lose_privileges();
    let mut made = 0;
    let open = |program: &Program<'_>| program.open("/dev/ptmx", O_RDWR | O_NOCTTY, 0);
    let refused = loop {
        match open(&user) {
            0.. => made += 1,
            // Its descriptors are used up.
            -24 => {
                user = user.fork();
                assert_eq!(user.call(__NR_close_range, &[0, 1_000_000, 0]), 0);
            }
            refused => break refused,
        }
    };
    assert!([-12, -28].contains(&refused) && made > 256, "{made}: {refused}");
    assert!(open(&root) >= 0);
    let at = root.buffer;
    let last = open(&root) as u64;
    assert_eq!(root.call(__NR_ioctl, &[last, TIOCGPTN.into(), at]), 0);
    let number = world.read_u32(&root.thread, at);
    assert!(number > 256, "{number}");
    // Its number has more than eight bits, and it is found by it.
    world.write(&root.thread, at, &[0; 4]);
    assert_eq!(root.call(__NR_ioctl, &[last, TIOCSPTLCK.into(), at]), 0);
    let name = format!("/dev/pts/{number}");
    let slave = root.opened(&name, O_RDWR | O_NOCTTY);
    assert_eq!(root.write(slave, b"seen"), 4);
    assert_eq!(root.read(last, 4), b"seen");
    assert_eq!(root.names("/dev/pts").len() as u32, number + 2);
}
