//! Files, directories and paths, as programs see them.

use crate::common::World;
use crate::common::caller::{CREAT, Program, RDONLY, RDWR, error};
use linux_raw_sys::errno;
use linux_raw_sys::general as linux;
use unix::errno::Errno;

#[test]
fn what_is_written_is_read_again() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let fd = program.opened("/tmp/file", RDWR | CREAT | linux::O_EXCL);
    let text: Vec<u8> = (0..10_000_u32).map(|byte| (byte * 7) as u8).collect();
    assert_eq!(program.write(fd, &text), 10_000);
    assert_eq!(program.call(linux::__NR_lseek, &[fd, 0, 0]), 0);
    assert_eq!(program.read(fd, 20_000), text);
    assert_eq!(program.read(fd, 1), b"");
    assert_eq!(program.call(linux::__NR_pread64, &[fd, program.buffer, 5000, 4000]), 5000);
    assert_eq!(world.read(&world.first, program.buffer, 5000), text[4000..9000]);
    let stat = program.stat("/tmp/file").unwrap();
    assert_eq!((stat.size(), stat.blocks(), stat.links()), (10_000, 24, 1));
    assert_eq!(stat.mode(), linux::S_IFREG | 0o644);
    assert_eq!(program.open("/tmp/file", CREAT | linux::O_EXCL, 0), error(errno::EEXIST));
    let append = program.opened("/tmp/file", linux::O_WRONLY | linux::O_APPEND);
    assert_eq!(program.write(append, b"end"), 3);
    assert_eq!(program.stat("/tmp/file").unwrap().size(), 10_003);
    program.close(program.opened("/tmp/file", linux::O_WRONLY | linux::O_TRUNC));
    assert_eq!(program.stat("/tmp/file").unwrap().size(), 0);
}

#[test]
fn holes_take_no_memory_and_frames_come_back() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    program.make("/tmp/warm", b"up");
    let free = world.unix.memory.available();
    let fd = program.opened("/tmp/file", RDWR | CREAT);
    let end = 1_u64 << 40;
    assert_eq!(program.call(linux::__NR_ftruncate, &[fd, end]), 0);
    assert_eq!(program.call(linux::__NR_pwrite64, &[fd, program.buffer, 10, 1 << 30]), 10);
    let stat = program.stat("/tmp/file").unwrap();
    assert_eq!((stat.size(), stat.blocks()), (end, 8));
    let seek =
        |offset: u64, whence: u32| program.call(linux::__NR_lseek, &[fd, offset, whence.into()]);
    assert_eq!(seek(0, linux::SEEK_DATA), 1 << 30);
    assert_eq!(seek(1 << 30, linux::SEEK_HOLE), (1 << 30) + 4096);
    assert_eq!(seek((1 << 30) + 4096, linux::SEEK_DATA), error(errno::ENXIO));
    assert_eq!(seek(5, linux::SEEK_HOLE), 5);
    assert_eq!(seek(end, linux::SEEK_HOLE), error(errno::ENXIO));
    assert_eq!(program.call(linux::__NR_pread64, &[fd, program.buffer, 100, 7]), 100);
    assert_eq!(world.read(&world.first, program.buffer, 100), [0; 100]);
    assert_eq!(program.on(linux::__NR_unlink, "/tmp/file", &[]), 0);
    assert_eq!(world.unix.memory.available(), free - 1);
    program.close(fd);
    assert_eq!(world.unix.memory.available(), free);
}

#[test]
fn what_lay_behind_the_end_does_not_come_back() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    program.make("/tmp/file", &[7; 6000]);
    let fd = program.opened("/tmp/file", RDWR);
    assert_eq!(program.call(linux::__NR_ftruncate, &[fd, 100]), 0);
    assert_eq!(program.call(linux::__NR_ftruncate, &[fd, 300]), 0);
    let contents = program.contents("/tmp/file");
    assert_eq!(contents, [vec![7; 100], vec![0; 200]].concat());
    // Through a mapping, bytes behind the end can be written; they are not the file's.
    let map = program.call(linux::__NR_mmap, &[0, 4096, 3, 1, fd, 0]) as u64;
    world.write(&world.first, map + 400, b"secret");
    assert_eq!(program.call(linux::__NR_pwrite64, &[fd, map, 1, 1000]), 1);
    let contents = program.contents("/tmp/file");
    assert_eq!(contents[300..1000], [0; 700]);
    assert_eq!(contents.len(), 1001);
}

#[test]
fn punching_and_reserving() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    program.make("/tmp/file", &[7; 16384]);
    let fd = program.opened("/tmp/file", RDWR);
    let fallocate = |mode: u64, offset: u64, len: u64| {
        program.call(linux::__NR_fallocate, &[fd, mode, offset, len])
    };
    assert_eq!(fallocate(3, 100, 9000), 0);
    let contents = program.contents("/tmp/file");
    assert_eq!(contents, [vec![7; 100], vec![0; 9000], vec![7; 16384 - 9100]].concat());
    assert_eq!(program.stat("/tmp/file").unwrap().blocks(), 24);
    assert_eq!(fallocate(0, 16384, 8192), 0);
    let stat = program.stat("/tmp/file").unwrap();
    assert_eq!((stat.size(), stat.blocks()), (24576, 40));
    assert_eq!(fallocate(1, 24576, 4096), 0);
    assert_eq!(program.stat("/tmp/file").unwrap().size(), 24576);
    assert_eq!(fallocate(2, 0, 4096), error(errno::EOPNOTSUPP));
    assert_eq!(fallocate(0, 0, 0), error(errno::EINVAL));
    assert_eq!(fallocate(0, 0, 1 << 50), error(errno::ENOSPC));
}

#[test]
fn where_a_process_is() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    for directory in ["/tmp/a", "/tmp/a/b", "/tmp/a/b/c"] {
        program.mkdir(directory);
    }
    let chdir = |path: &str| program.on(linux::__NR_chdir, path, &[]);
    assert_eq!(chdir("/tmp/a/b/c"), 0);
    assert_eq!(program.cwd(), "/tmp/a/b/c");
    assert_eq!(program.call(linux::__NR_getcwd, &[program.buffer, 5]), error(errno::ERANGE));
    assert_eq!(chdir(".."), 0);
    assert_eq!(program.cwd(), "/tmp/a/b");
    assert_eq!(chdir("/proc/self/fd"), 0);
    assert_eq!(program.cwd(), "/proc/1/fd");
    assert_eq!(chdir("../../.."), 0);
    assert_eq!(program.cwd(), "/");
    let fd = program.opened("/tmp/a", RDONLY);
    assert_eq!(program.call(linux::__NR_fchdir, &[fd]), 0);
    assert_eq!(program.cwd(), "/tmp/a");
    assert_eq!(chdir("b/c"), 0);
    assert_eq!(program.on(linux::__NR_rmdir, "/tmp/a/b/c", &[]), 0);
    assert_eq!(program.call(linux::__NR_getcwd, &[program.buffer, 100]), error(errno::ENOENT));
    assert_eq!(program.open("new", RDWR | CREAT, 0o600), error(errno::ENOENT));
    assert_eq!(program.readlink("/proc/self/cwd"), "/tmp/a/b/c (deleted)");
    assert_eq!(chdir(".."), 0);
    assert_eq!(program.cwd(), "/tmp/a/b");
    program.make("/tmp/a/outside", b"");
    assert_eq!(chdir("/tmp/a"), 0);
    assert_eq!(program.on(linux::__NR_chroot, "/tmp/a/b", &[]), 0);
    // CVE-2018-1000001: what is outside must not look like a path inside.
    assert_eq!(program.cwd(), "(unreachable)/tmp/a");
    assert_eq!(chdir("/"), 0);
    assert_eq!(program.open("../outside", RDONLY, 0), error(errno::ENOENT));
    assert_eq!(program.cwd(), "/");
    assert_eq!(program.call(linux::__NR_umask, &[0o077]), 0o022);
    assert_eq!(program.call(linux::__NR_umask, &[0o1022]), 0o077);
}

#[test]
fn others_may_only_what_the_mode_says() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    program.mkdir("/tmp/private");
    program.make("/tmp/private/file", b"secret");
    program.make("/tmp/mine", b"mine");
    program.make("/tmp/open", b"all");
    for (path, mode) in [("/tmp/private", 0o700), ("/tmp/open", 0o666), ("/tmp/mine", 0o600)] {
        assert_eq!(program.on(linux::__NR_chmod, path, &[mode]), 0);
    }
    let other = program.fork();
    other.lose_privileges();
    for (path, flags) in [("/tmp/private/file", RDONLY), ("/tmp/mine", RDONLY), ("/new", CREAT)] {
        assert_eq!(other.open(path, flags, 0o600), error(errno::EACCES), "{path}");
    }
    assert_eq!(other.contents("/tmp/open"), b"all");
    // /tmp is sticky.
    assert_eq!(other.on(linux::__NR_unlink, "/tmp/open", &[]), error(errno::EPERM));
    assert_eq!(other.on(linux::__NR_chmod, "/tmp/open", &[0o777]), error(errno::EPERM));
    assert_eq!(other.on(linux::__NR_chown, "/tmp/open", &[1000, 1000]), error(errno::EPERM));
    other.make("/tmp/own", b"");
    assert_eq!(other.on(linux::__NR_chmod, "/tmp/own", &[0o6755]), 0);
    assert_eq!(other.stat("/tmp/own").unwrap().mode() & 0o7777, 0o6755);
    let fd = other.opened("/tmp/own", RDWR);
    assert_eq!(other.write(fd, b"x"), 1);
    assert_eq!(other.stat("/tmp/own").unwrap().mode() & 0o7777, 0o755);
    assert_eq!(other.on(linux::__NR_access, "/tmp/mine", &[4]), error(errno::EACCES));
    assert_eq!(other.on(linux::__NR_access, "/tmp/mine", &[0]), 0);
    assert_eq!(program.on(linux::__NR_access, "/tmp/mine", &[1]), error(errno::EACCES));
    assert_eq!(program.on(linux::__NR_access, "/tmp/mine", &[8]), error(errno::EINVAL));
    let now = [0, (1 << 30) - 1, 0, (1 << 30) - 1];
    let times = world.words(&other.thread, &now);
    let here = linux::AT_FDCWD as u64;
    let path = other.path(0, b"/tmp/open");
    assert_eq!(other.call(linux::__NR_utimensat, &[here, path, times, 0]), 0);
    let past = world.words(&other.thread, &[5, 6, 7, 8]);
    let path = other.path(0, b"/tmp/open");
    let refused = other.call(linux::__NR_utimensat, &[here, path, past, 0]);
    assert_eq!(refused, error(errno::EPERM));
    let path = other.path(0, b"/tmp/own");
    assert_eq!(other.call(linux::__NR_utimensat, &[here, path, past, 0]), 0);
    let stat = other.stat("/tmp/own").unwrap();
    assert_eq!(stat.0[72..104], [5_u64, 6, 7, 8].map(u64::to_le_bytes).concat());
}

#[test]
fn devices_behave() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let null = program.opened("/dev/null", RDWR);
    assert_eq!((program.write(null, b"gone"), program.read(null, 10)), (4, vec![]));
    let zero = program.opened("/dev/zero", RDWR);
    assert_eq!(program.read(zero, 5000), [0; 5000]);
    let full = program.opened("/dev/full", RDWR);
    assert_eq!(program.write(full, b"no"), error(errno::ENOSPC));
    let random = program.opened("/dev/urandom", RDONLY);
    assert_ne!(program.read(random, 32), program.read(random, 32));
    assert_eq!(program.stat("/dev/null").unwrap().mode(), linux::S_IFCHR | 0o666);
    assert_eq!(program.readlink("/dev/stdin"), "/proc/self/fd/0");
    let again = program.opened(&format!("/dev/fd/{zero}"), RDONLY);
    assert_eq!(program.read(again, 3), [0; 3]);
}

#[test]
fn sending_from_file_to_file() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let text: Vec<u8> = (0..100_000_u32).map(|byte| (byte / 3) as u8).collect();
    program.make("/tmp/from", &text);
    let from = program.opened("/tmp/from", RDONLY);
    let to = program.opened("/tmp/to", RDWR | CREAT);
    assert_eq!(program.call(linux::__NR_sendfile, &[to, from, 0, 1 << 20]), 100_000);
    assert_eq!(program.contents("/tmp/to"), text);
    assert_eq!(program.call(linux::__NR_sendfile, &[to, from, 0, 1 << 20]), 0);
    let offset = world.words(&world.first, &[99_990]);
    assert_eq!(program.call(linux::__NR_sendfile, &[to, from, offset, 100]), 10);
    assert_eq!(world.read_u64(&world.first, offset), 100_000);
    assert_eq!(program.stat("/tmp/to").unwrap().size(), 100_010);
    let start = world.words(&world.first, &[10]);
    let place = world.words(&world.first, &[0]);
    let arguments = [from, start, to, place, 50, 0];
    assert_eq!(program.call(linux::__NR_copy_file_range, &arguments), 50);
    assert_eq!(program.contents("/tmp/to")[..50], text[10..60]);
    let arguments = [to, start, to, place, 50, 0];
    assert_eq!(program.call(linux::__NR_copy_file_range, &arguments), error(errno::EINVAL));
}

#[test]
fn a_chain_of_removed_directories_ends_without_recursion() {
    let world = World::with_frames(65536);
    let program = Program::new(&world, &world.first);
    program.mkdir("/tmp/deep");
    assert_eq!(program.on(linux::__NR_chdir, "/tmp/deep", &[]), 0);
    const DEPTH: usize = 30_000;
    for _ in 0..DEPTH {
        program.mkdir("d");
        assert_eq!(program.on(linux::__NR_chdir, "d", &[]), 0);
    }
    assert_eq!(
        program.call(linux::__NR_getcwd, &[program.buffer, 8192]),
        error(errno::ENAMETOOLONG)
    );
    // Removed from the bottom, each directory is kept by the one below it.
    for _ in 0..DEPTH {
        let bottom = program.opened(".", RDONLY);
        assert_eq!(program.on(linux::__NR_chdir, "..", &[]), 0);
        assert_eq!(program.on(linux::__NR_rmdir, "d", &[]), 0);
        assert_eq!(
            program.call(linux::__NR_dup2, &[bottom, 100 + (bottom & 1)]),
            100 + (bottom & 1) as i64
        );
        program.close(bottom);
    }
}

#[test]
fn file_systems_are_mounted_and_unmounted() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    program.mkdir("/mnt");
    program.make("/mnt/below", b"");
    let mount = |kind: &str, target: &str, flags: u64, data: &str| {
        let kind = world.text(&program.thread, kind);
        let data = world.text(&program.thread, data);
        let target = program.path(0, target.as_bytes());
        program.call(linux::__NR_mount, &[kind, target, kind, flags, data])
    };
    assert_eq!(mount("ext4", "/mnt", 0, ""), error(errno::ENODEV));
    assert_eq!(mount("tmpfs", "/mnt/below", 0, ""), error(errno::ENOTDIR));
    assert_eq!(mount("tmpfs", "/mnt", 0, "size=8k,mode=700"), 0);
    assert!(program.names("/mnt").is_empty());
    let fd = program.opened("/mnt/file", RDWR | CREAT);
    assert_eq!(program.write(fd, &[1; 20_000]), 8192);
    assert_eq!(program.write(fd, b"x"), error(errno::ENOSPC));
    assert_eq!(program.on(linux::__NR_chdir, "/mnt", &[]), 0);
    assert_eq!(program.cwd(), "/mnt");
    let umount = || program.on(linux::__NR_umount2, "/mnt", &[0]);
    assert_eq!(umount(), error(errno::EBUSY));
    assert_eq!(program.on(linux::__NR_chdir, "..", &[]), 0);
    assert_eq!(program.cwd(), "/");
    assert_eq!(umount(), error(errno::EBUSY));
    program.close(fd);
    assert_eq!(mount("tmpfs", "/mnt", (linux::MS_REMOUNT | linux::MS_RDONLY).into(), ""), 0);
    assert_eq!(program.open("/mnt/new", CREAT, 0), error(errno::EROFS));
    assert_eq!(program.on(linux::__NR_unlink, "/mnt/file", &[]), error(errno::EROFS));
    let mounts = String::from_utf8(program.contents("/proc/mounts")).unwrap();
    assert!(mounts.contains("tmpfs /mnt tmpfs ro,relatime 0 0\n"), "{mounts}");
    assert_eq!(umount(), 0);
    assert_eq!(program.names("/mnt"), ["below"]);
    assert_eq!(umount(), error(errno::EINVAL));
}

#[test]
fn what_is_sealed_against_writing_cannot_be_mapped_for_writing() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let fd = program.on(linux::__NR_memfd_create, "x", &[linux::MFD_ALLOW_SEALING.into()]) as u64;
    assert_eq!(program.call(linux::__NR_ftruncate, &[fd, 4096]), 0);
    let seal = [fd, linux::F_ADD_SEALS.into(), linux::F_SEAL_WRITE.into()];
    assert_eq!(program.call(linux::__NR_fcntl, &seal), 0);
    let map = |prot, flags| program.call(linux::__NR_mmap, &[0, 4096, prot, flags, fd, 0]);
    let (shared, private) = (linux::MAP_SHARED.into(), linux::MAP_PRIVATE.into());
    assert_eq!(map(3, shared), error(linux_raw_sys::errno::EPERM));
    let at = map(1, shared);
    assert!(at > 0 && map(3, private) > 0);
    let writable = program.call(linux::__NR_mprotect, &[at as u64, 4096, 3]);
    assert_eq!(writable, error(linux_raw_sys::errno::EACCES));
}

#[test]
fn owners_for_signals_are_told_with_their_kind() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let fd = program.opened("/tmp/x", RDWR | CREAT);
    let ex = |command: u32| program.call(linux::__NR_fcntl, &[fd, command.into(), program.buffer]);
    world.write(&program.thread, program.buffer, &[2, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(ex(linux::F_SETOWN_EX), 0);
    assert_eq!(program.call(linux::__NR_fcntl, &[fd, linux::F_GETOWN.into(), 0]), -1);
    world.write(&program.thread, program.buffer, &[0; 8]);
    assert_eq!(ex(linux::F_GETOWN_EX), 0);
    assert_eq!(world.read_u64(&program.thread, program.buffer), 1 << 32 | 2);
    world.write(&program.thread, program.buffer, &[9, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(ex(linux::F_SETOWN_EX), error(linux_raw_sys::errno::EINVAL));
}

#[test]
fn what_may_be_written_by_a_mapping_is_not_sealed() {
    let world = World::new();
    let first = &world.first;
    let name = world.text(first, "m");
    let allow = linux::MFD_ALLOW_SEALING.into();
    let file = world.ok(first, linux::__NR_memfd_create, &[name, allow]);
    world.ok(first, linux::__NR_ftruncate, &[file, 4096]);
    let seal = [file, linux::F_ADD_SEALS.into(), linux::F_SEAL_WRITE.into()];
    let map = |flags: u32| world.ok(first, linux::__NR_mmap, &[0, 4096, 1, flags.into(), file, 0]);
    map(linux::MAP_PRIVATE);
    let shared = map(linux::MAP_SHARED);
    world.refused(first, linux::__NR_fcntl, &seal, Errno::EBUSY);
    world.ok(first, linux::__NR_munmap, &[shared, 4096]);
    world.ok(first, linux::__NR_fcntl, &seal);
}
