//! Small calls that programs seldom make, and settings.

use linux_raw_sys::{errno, general as l};
use unix::errno::Errno;

use crate::common::World;
use crate::common::caller::{Program, error};

#[test]
fn kinds_of_file_systems_have_numbers() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let count = root.call(l::__NR_sysfs, &[3]);
    let name = world.text(&root.thread, "proc");
    let number = root.call(l::__NR_sysfs, &[1, name]);
    assert!((0..count).contains(&number));
    assert_eq!(root.call(l::__NR_sysfs, &[2, number as u64, root.buffer]), 0);
    assert_eq!(world.read(&root.thread, root.buffer, 5), b"proc\0");
    assert_eq!(root.call(l::__NR_sysfs, &[2, count as u64, root.buffer]), error(errno::EINVAL));
    assert_eq!(root.call(l::__NR_sysfs, &[4]), error(errno::EINVAL));
    assert_eq!(root.call(l::__NR_ustat, &[23, root.buffer]), 0);
    assert!(world.read_u64(&root.thread, root.buffer) > 0, "free blocks of /tmp");
    assert_eq!(root.call(l::__NR_ustat, &[999, root.buffer]), error(errno::EINVAL));
}

/// A `futex_waitv` record.
fn wanted(address: u64, value: u64, flags: u64) -> [u64; 3] {
    [value, address, flags]
}

#[test]
fn one_of_several_futexes_is_enough() {
    let world = World::new();
    let first = &world.first;
    let words = world.words(first, &[7, 9]);
    let both = [wanted(words, 7, 130), wanted(words + 8, 9, 130)].concat();
    let waiters = world.words(first, &both);
    let flags = u64::from(l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD);
    let thread = world.thread(world.ok(first, l::__NR_clone, &[flags, words, 0, 0, 0]));
    world.next_event(&thread);
    world.waits(&thread, l::__NR_futex_waitv, &[waiters, 2, 0, 0, 0]);
    // FUTEX_WAKE, private, of the second.
    assert_eq!(world.ok(first, l::__NR_futex, &[words + 8, 129, 1, 0, 0, 0]), 1);
    assert_eq!(world.next_reply(&thread), Some(1));
    assert_eq!(world.ok(first, l::__NR_futex, &[words, 129, 1, 0, 0, 0]), 0, "waits no more");
    let call = l::__NR_futex_waitv;
    world.refused(first, call, &[waiters, 129, 0, 0, 0], Errno::EINVAL);
    let other = world.words(first, &wanted(words, 8, 130));
    world.refused(first, call, &[other, 1, 0, 0, 0], Errno::EAGAIN);
    let wrong = world.words(first, &wanted(words, 7, 128));
    world.refused(first, call, &[wrong, 1, 0, 0, 0], Errno::EINVAL);
    let nowhere = world.words(first, &wanted(0, 7, 130));
    world.refused(first, call, &[nowhere, 1, 0, 0, 0], Errno::EFAULT);
    let past = world.words(first, &[0, 1]);
    world.refused(first, call, &[waiters, 2, 0, past, 1], Errno::ETIMEDOUT);
    world.refused(first, call, &[waiters, 2, 0, past, 11], Errno::EINVAL);
}

#[test]
fn a_child_comes_with_a_descriptor() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let arguments =
        world.words(&root.thread, &[l::CLONE_PIDFD.into(), root.buffer, 0, 0, 17, 0, 0, 0]);
    let pid = root.call(l::__NR_clone3, &[arguments, 64]) as u64;
    let child = world.thread(pid);
    world.next_event(&child);
    let fd = u64::from(world.read_u32(&root.thread, root.buffer));
    // Its files can be had, and signals sent, by descriptor and by its directory in /proc.
    let theirs = root.with(&child).opened("/tmp", l::O_RDONLY);
    let taken = root.call(l::__NR_pidfd_getfd, &[fd, theirs, 0]);
    assert!(taken > 0, "{taken}");
    assert_eq!(root.call(l::__NR_pidfd_getfd, &[fd, 99, 0]), error(errno::EBADF));
    let directory = root.opened(&format!("/proc/{pid}"), l::O_RDONLY);
    assert_eq!(root.call(l::__NR_pidfd_send_signal, &[directory, 0, 0, 0]), 0);
    let stranger = root.fork();
    stranger.lose_privileges();
    assert_eq!(stranger.call(l::__NR_pidfd_getfd, &[fd, theirs, 0]), error(errno::EPERM));
    world.call(&child, l::__NR_exit_group, &[0]);
    root.call(l::__NR_wait4, &[pid, 0, 0, 0]);
    // Another process with the number is not the one that was opened.
    let setting = root.opened("/proc/sys/kernel/ns_last_pid", l::O_RDWR);
    root.write(setting, format!("{}", pid - 1).as_bytes());
    assert_eq!(u64::from(root.fork().thread.process.number), pid);
    for dead in [fd, directory] {
        let sent = root.call(l::__NR_pidfd_send_signal, &[dead, 10, 0, 0]);
        assert_eq!(sent, error(errno::ESRCH));
    }
    // Nothing is born, and nothing opened, where the number cannot be told.
    let arguments = world.words(&root.thread, &[l::CLONE_PIDFD.into(), 8, 0, 0, 17, 0, 0, 0]);
    assert_eq!(root.call(l::__NR_clone3, &[arguments, 64]), error(errno::EFAULT));
}

#[test]
fn settings_are_kept() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    assert_eq!(root.call(l::__NR_prctl, &[29, 70_000]), 0);
    assert_eq!(root.contents("/proc/self/timerslack_ns"), b"70000\n");
    let child = root.fork();
    assert_eq!(child.call(l::__NR_prctl, &[29, 0]), 0);
    assert_eq!(child.call(l::__NR_prctl, &[30]), 70_000, "set back to what it was born with");
    assert_eq!(root.call(l::__NR_prctl, &[41, 1, 1]), error(errno::EINVAL));
    assert_eq!(root.call(l::__NR_prctl, &[41, 1]), 0);
    assert_eq!(root.call(l::__NR_prctl, &[42]), 1);
    let name = root.opened("/proc/sys/kernel/domainname", l::O_RDWR);
    root.write(name, b"here\n");
    assert_eq!(root.contents("/proc/sys/kernel/domainname"), b"here\n");
    // STICKY_TIMEOUTS: select leaves the timeout alone.
    let timeout = world.words(&root.thread, &[0, 10]);
    root.call(l::__NR_personality, &[0x400_0000]);
    world.waits(&root.thread, l::__NR_select, &[0, 0, 0, 0, timeout]);
    world.advance(20_000);
    assert_eq!(world.next_reply(&root.thread), Some(0));
    assert_eq!(world.read_u64(&root.thread, timeout + 8), 10);
    // /proc/self/exe is a link that openat2 can be told not to follow.
    let how = world.words(&root.thread, &[0, 0, l::RESOLVE_NO_MAGICLINKS.into()]);
    let path = world.text(&root.thread, "/proc/self/exe");
    let opened = root.call(l::__NR_openat2, &[l::AT_FDCWD as u64, path, how, 24]);
    assert_eq!(opened, error(errno::ELOOP));
    let user = root.fork();
    user.lose_privileges();
    assert_eq!(user.call(l::__NR_syslog, &[2, user.buffer, 0]), error(errno::EPERM));
    assert_eq!(root.call(l::__NR_syslog, &[8, 0, 9]), error(errno::EINVAL));
}

/// Programs set the limit that they need, and give up if they may not (LTP's munmap04).
#[test]
fn the_most_areas_can_be_set_to_what_they_are() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let setting = root.opened("/proc/sys/vm/max_map_count", l::O_RDWR);
    assert_eq!(root.read(setting, 100), b"65530\n");
    assert_eq!(root.write(setting, b"65530"), 5);
    assert_eq!(root.write(setting, b"65531"), error(errno::EINVAL));
}

#[test]
fn only_who_may_change_the_mode_ends_set_id_bits_by_chown() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let user = root.fork();
    user.lose_privileges();
    let (same, refused) = (u64::from(u32::MAX), -i64::from(Errno::EPERM.0));
    // What `chown` of nothing leaves of a mode: by its owner, and by root; a stranger is told.
    for (mode, of_owner, of_root, of_stranger) in [
        (0o644, 0o644, 0o644, 0),
        (0o4755, 0o755, 0o755, refused),
        (0o2755, 0o755, 0o755, refused),
        // Without the right to execute for the group it is no set-id bit: it goes if its owner is not in the group.
        (0o2644, 0o644, 0o2644, refused),
    ] {
        root.make("/tmp/file", b"text");
        let set = || assert_eq!(root.on(l::__NR_chmod, "/tmp/file", &[mode]), 0);
        let after = || u64::from(root.stat("/tmp/file").unwrap().mode()) & 0o7777;
        set();
        assert_eq!(user.on(l::__NR_chown, "/tmp/file", &[same, same]), of_stranger, "{mode:o}");
        assert_eq!(after(), mode);
        assert_eq!(root.on(l::__NR_chown, "/tmp/file", &[same, same]), 0);
        assert_eq!(after(), of_root);
        assert_eq!(root.on(l::__NR_chown, "/tmp/file", &[1000, same]), 0);
        set();
        assert_eq!(user.on(l::__NR_chown, "/tmp/file", &[same, same]), 0);
        assert_eq!(after(), of_owner);
        assert_eq!(root.on(l::__NR_unlink, "/tmp/file", &[]), 0);
    }
}
