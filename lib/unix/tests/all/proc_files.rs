//! `/proc` as programs see it.

use crate::common::World;
use crate::common::caller::Program;
use linux_raw_sys::errno;
use linux_raw_sys::general as linux;

fn text(program: &Program, path: &str) -> String {
    String::from_utf8(program.contents(path)).unwrap()
}

#[test]
fn every_file_can_be_read() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let child = program.fork();
    let mut left = vec![String::from("/proc")];
    let mut files = 0;
    while let Some(path) = left.pop() {
        for name in program.names(&path) {
            let path = format!("{path}/{name}");
            let mode = match program.stat(&path) {
                Ok(stat) => stat.mode(),
                // The descriptor with which the directory was read.
                Err(-2) if path.contains("/fd") => continue,
                Err(error) => panic!("{path}: {error}"),
            };
            match mode & linux::S_IFMT {
                linux::S_IFDIR => left.push(path),
                linux::S_IFLNK if name != "exe" => drop(program.readlink(&path)),
                linux::S_IFLNK => {}
                // Nothing is at its beginning.
                _ if name == "mem" => {}
                // Nothing but zeroes for a long way.
                _ if name == "pagemap" => {}
                _ => {
                    program.contents(&path);
                    files += 1;
                }
            }
        }
    }
    assert!(files > 80, "only {files} files");
    assert!(child.names("/proc").contains(&child.thread.own_tid.get().to_string()));
}

#[test]
fn status_tells_who_and_what() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let child = program.fork();
    let pid = child.thread.own_tid.get();
    let stat = text(&program, &format!("/proc/{pid}/stat"));
    let (head, rest) = stat.rsplit_once(") ").unwrap();
    assert!(head.starts_with(&format!("{pid} (")), "{stat}");
    let fields: Vec<_> = rest.split_whitespace().collect();
    assert_eq!(fields.len(), 50, "{stat}");
    assert_eq!(fields[1], "1", "the parent");
    let status = text(&program, &format!("/proc/{pid}/status"));
    for line in [format!("Pid:\t{pid}\n"), "PPid:\t1\n".into(), "Uid:\t0\t0\t0\t0\n".into()] {
        assert!(status.contains(&line), "{status}");
    }
    let maps = text(&program, "/proc/self/maps");
    let scratch = format!("{:08x}-", program.buffer & !0xfff);
    assert!(maps.lines().any(|line| line.contains("rw-p 00000000 00:00 0")), "{maps} {scratch}");
    assert_eq!(program.readlink("/proc/self"), "1");
    assert_eq!(child.readlink("/proc/self"), pid.to_string());
    assert_eq!(child.readlink("/proc/thread-self"), format!("{pid}/task/{pid}"));
    let comm = program.opened("/proc/self/comm", linux::O_RDWR);
    assert_eq!(program.write(comm, b"a-name-that-is-too-long\n"), 24);
    assert_eq!(text(&program, "/proc/self/comm"), "a-name-that-is-\n");
    assert_eq!(program.open("/proc/999", 0, 0), -i64::from(errno::ENOENT));
    assert_eq!(program.open("/proc/01", 0, 0), -i64::from(errno::ENOENT));
    assert_eq!(program.open("/proc/new", linux::O_CREAT, 0), -i64::from(errno::ENOENT));
}

#[test]
fn descriptors_are_links_to_what_is_open() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    program.make("/tmp/file", b"text");
    let fd = program.opened("/tmp/file", linux::O_RDWR);
    let link = format!("/proc/self/fd/{fd}");
    assert_eq!(program.readlink(&link), "/tmp/file");
    assert_eq!(program.on_two(linux::__NR_rename, "/tmp/file", "/tmp/other"), 0);
    assert_eq!(program.readlink(&link), "/tmp/other");
    assert_eq!(program.on(linux::__NR_unlink, "/tmp/other", &[]), 0);
    assert!(program.readlink(&link).ends_with(" (deleted)"));
    // What has no name can still be opened here, with a position of its own.
    assert_eq!(program.read(fd, 2), b"te");
    let again = program.opened(&link, linux::O_RDONLY);
    assert_eq!(program.read(again, 10), b"text");
    let info = text(&program, &format!("/proc/self/fdinfo/{fd}"));
    assert!(info.starts_with("pos:\t2\nflags:\t0100002\n"), "{info}");
    assert_eq!(program.call(linux::__NR_pipe2, &[program.buffer, 0]), 0);
    let pipe = world.read_u32(&world.first, program.buffer);
    let name = program.readlink(&format!("/proc/self/fd/{pipe}"));
    assert!(name.starts_with("pipe:["), "{name}");
    let directory = program.opened("/tmp", linux::O_RDONLY);
    assert_eq!(program.readlink(&format!("/proc/self/fd/{directory}")), "/tmp");
    let other = program.fork();
    other.lose_privileges();
    assert_eq!(
        other.on(linux::__NR_readlink, &format!("/proc/1/fd/{fd}"), &[other.buffer, 100]),
        -i64::from(errno::EACCES)
    );
}

#[test]
fn settings_say_what_calls_say() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    assert_eq!(text(&program, "/proc/sys/kernel/ostype"), "Linux\n");
    let host = program.opened("/proc/sys/kernel/hostname", linux::O_WRONLY);
    assert_eq!(program.write(host, b"renamed\n"), 8);
    assert_eq!(program.call(linux::__NR_uname, &[program.buffer]), 0);
    assert_eq!(world.read(&world.first, program.buffer + 65, 8), b"renamed\0");
    let boot = text(&program, "/proc/sys/kernel/random/boot_id");
    assert_eq!(boot, text(&program, "/proc/sys/kernel/random/boot_id"));
    let uuid = text(&program, "/proc/sys/kernel/random/uuid");
    assert_ne!(uuid, text(&program, "/proc/sys/kernel/random/uuid"));
    assert_eq!((uuid.len(), &uuid[14..15]), (37, "4"));
    world.advance(12_345_000_000);
    assert!(text(&program, "/proc/uptime").starts_with("13.34 "));
    let memory = text(&program, "/proc/meminfo");
    assert!(memory.starts_with("MemTotal:          65536 kB\n"), "{memory}");
    // A text that was read once stays what it was, until it is read from its beginning.
    let fd = program.opened("/proc/uptime", linux::O_RDONLY);
    let first = program.read(fd, 3);
    world.advance(100_000_000_000);
    assert_eq!([first, program.read(fd, 100)].concat(), b"13.34 13.34\n");
}

#[test]
fn modes_of_settings_are_for_everybody() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let open = |path: &str| program.open(path, linux::O_WRONLY, 0);
    assert_eq!(open("/proc/sys/kernel/osrelease"), -i64::from(errno::EACCES as i32));
    assert_eq!(program.on(linux::__NR_access, "/proc/sys", &[2]), -i64::from(errno::EACCES as i32));
    assert!(open("/proc/sys/kernel/hostname") >= 0);
}

#[test]
fn what_of_a_mapping_is_there_is_told() {
    let world = World::new();
    let first = &world.first;
    let program = Program::new(&world, first);
    let at = world.ok(first, linux::__NR_mmap, &[0, 8 * 4096, 7, 0x22, u64::MAX, 0]);
    world.write(first, at, &[1; 3 * 4096]);
    let child = world.fork(first);
    world.write(&child, at, &[2]);
    world.ok(first, linux::__NR_mlock, &[at, 4096]);
    let told = String::from_utf8(program.contents("/proc/self/smaps")).unwrap();
    let figures = |start: u64| {
        let head = format!("{start:08x}-");
        let lines = told.lines().skip_while(move |line| !line.starts_with(&head)).skip(1);
        let value = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
        ["Size:", "Rss:", "Pss:", "Shared_Dirty:", "Private_Dirty:", "Locked:"]
            .map(|name| lines.clone().find(|line| line.starts_with(name)).and_then(value).unwrap())
    };
    // What is locked has become an area of its own; the child has a copy of that page.
    assert_eq!(figures(at), [4, 4, 4, 0, 4, 4]);
    assert_eq!(figures(at + 4096), [28, 8, 4, 8, 0, 0]);
    assert!(told.contains("\nVmFlags: rd wr ex mr mw me lo \n"), "{told}");
    assert_eq!(told.matches("THPeligible").count(), told.matches("VmFlags").count());
}

#[test]
fn pagemap_tells_what_is_there() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let child = program.fork();
    let map = |program: &Program<'_>, flags: u64| {
        program.call(linux::__NR_mmap, &[0, 4 * 4096, 3, flags, u64::MAX, 0]) as u64
    };
    let (own, shared) = (map(&child, 0x22), map(&child, 0x21));
    for page in [own + 4096, own + 3 * 4096, shared] {
        world.write(&child.thread, page, b"x");
    }
    let path = format!("/proc/{}/pagemap", child.thread.own_tid.get());
    let (root, heir) = (program.opened(&path, 0), child.opened("/proc/self/pagemap", 0));
    child.lose_privileges();
    let words = |program: &Program<'_>, fd: u64, page: u64| -> Vec<u64> {
        let arguments = [fd, program.buffer, 32, page / 512];
        assert_eq!(program.call(linux::__NR_pread64, &arguments), 32);
        let bytes = world.read(&program.thread, program.buffer, 32);
        bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    };
    let (there, alone, common) = (1 << 63, 1 << 56, 1 << 61);
    assert_eq!(words(&child, heir, own), [0, there | alone, 0, there | alone]);
    assert_eq!(words(&child, heir, shared)[0] & (there | common), there | common);
    // Who may do anything sees which frames they are.
    let seen = words(&program, root, own);
    assert!(seen[1] & 0xffff_ffff != seen[3] & 0xffff_ffff && seen[0] == 0, "{seen:x?}");
    // Whole words, up to the end of what programs can have.
    let read = |len: u64, at: u64| child.call(linux::__NR_pread64, &[heir, child.buffer, len, at]);
    assert_eq!(
        [read(7, 0), read(8, 4), read(8, 1 << 40), read(64, (0x7fff_f000_0000 >> 9) - 16)],
        [-22, -22, 0, 16]
    );
}

#[test]
fn nr_open_limits_descriptors() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let path = "/proc/sys/fs/nr_open";
    assert_eq!(text(&program, path), "65536\n");
    let setting = program.opened(path, linux::O_RDWR);
    for bad in [&b"63"[..], b"65537", b"x", b"-1"] {
        assert_eq!(program.write(setting, bad), -22);
    }
    let child = program.fork();
    let high = child.call(linux::__NR_dup2, &[setting, 70]);
    assert_eq!(high, 70);
    assert_eq!(program.write(setting, b"64"), 2);
    // What is there stays, but no process gets as much.
    assert_eq!(child.call(linux::__NR_fork, &[]), -24);
    assert_eq!(child.call(linux::__NR_dup2, &[setting, 64]), -9);
    let shares = child.call(linux::__NR_clone, &[(linux::CLONE_FILES | linux::SIGCHLD).into()]);
    let other = child.with(&world.thread(shares as u64));
    world.next_event(&other.thread);
    assert_eq!(other.call(linux::__NR_unshare, &[linux::CLONE_FILES.into()]), -24);
    child.close(70);
    assert_eq!(other.call(linux::__NR_unshare, &[linux::CLONE_FILES.into()]), 0);
    assert!(child.call(linux::__NR_fork, &[]) > 0);
    let limits = world.words(&world.first, &[60, 65]);
    assert_eq!(program.call(linux::__NR_setrlimit, &[7, limits]), -1);
    assert_eq!(program.write(setting, b"65536"), 5);
    while program.call(linux::__NR_dup, &[0]) >= 0 {}
}

/// Whoever looks for a process to sleep again after a signal (LTP's shmctl01) must not find it asleep
/// before it has had its turn.
#[test]
fn who_was_woken_is_not_asleep() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let child = program.fork();
    let pid = child.thread.own_tid.get();
    world.waits(&child.thread, linux::__NR_pause, &[]);
    let status = program.opened(&format!("/proc/{pid}/status"), linux::O_RDONLY);
    // Calls after which nobody else has a turn.
    let call = |number, [one, two, three]: [u64; 3]| {
        world.unix.system_call(&world.first, number, [one, two, three, 0, 0, 0]).unwrap()
    };
    let state = || {
        let len = call(linux::__NR_pread64, [status, program.buffer, 4096]);
        let text = String::from_utf8(world.read(&world.first, program.buffer, len as usize));
        text.unwrap().lines().find(|line| line.starts_with("State:")).unwrap().to_owned()
    };
    assert_eq!(state(), "State:\tS (sleeping)");
    assert_eq!(call(linux::__NR_kill, [pid.into(), linux::SIGTERM.into(), 0]), 0);
    assert_eq!(state(), "State:\tR (running)");
}

#[test]
fn children_are_told_by_the_threads_that_made_them() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let second = crate::futex::second(&world);
    let number = second.own_tid.get();
    let of = |thread: u32| text(&program, &format!("/proc/1/task/{thread}/children"));
    let [one, two] = [(); 2].map(|()| program.fork().thread.own_tid.get());
    let three = world.fork(&second).own_tid.get();
    assert_eq!((of(1), of(number)), (format!("{one} {two} "), format!("{three} ")));
    world.call(&second, linux::__NR_exit, &[0]);
    world.collect();
    assert_eq!(of(1), format!("{one} {two} {three} "));
    assert_eq!(program.stat("/proc/1/children").unwrap_err(), -2);
    assert_eq!(program.stat("/proc/1/task/1/task").unwrap_err(), -2);
}

/// The text about a thousand mappings is made as it is read, whole records of a page at most.
#[test]
fn a_long_text_of_mappings_is_made_as_it_is_read() {
    let world = World::new();
    let first = &world.first;
    let program = Program::new(&world, first);
    for index in 0..100_u64 {
        let access = if index % 2 == 0 { 3 } else { 1 };
        world.ok(first, linux::__NR_mmap, &[0, 4096, access, 0x22, u64::MAX, 0]);
    }
    for (path, end) in [("/proc/self/smaps", &b" \n"[..]), ("/proc/self/maps", &b"\n"[..])] {
        let (mut whole, fd) = (Vec::new(), program.opened(path, 0));
        loop {
            let piece = program.read(fd, 8192);
            if piece.is_empty() {
                break;
            }
            assert!(piece.len() < 4096 && piece.ends_with(end), "{path}: {} bytes", piece.len());
            whole.extend(piece);
        }
        assert!(whole.len() > 3500, "{path}");
        // By small reads, and by reads anywhere, it is the same text.
        let small = program.opened(path, 0);
        let pieces = (0..).map(|_| program.read(small, 700)).take_while(|piece| !piece.is_empty());
        assert_eq!(pieces.collect::<Vec<_>>().concat(), whole);
        for offset in [3000, 10, 2999, whole.len() - 1, whole.len(), whole.len() + 99] {
            let got = program.call(linux::__NR_pread64, &[fd, program.buffer, 64, offset as u64]);
            let expected = &whole[offset.min(whole.len())..(offset + 64).min(whole.len())];
            assert_eq!(world.read(first, program.buffer, got as usize), expected);
        }
        // From the beginning it says what is now.
        world.ok(first, linux::__NR_mmap, &[0x10_0000, 4096, 3, 0x32, u64::MAX, 0]);
        program.call(linux::__NR_lseek, &[fd, 0, 0]);
        assert!(program.read(fd, 8192).starts_with(b"00100000-00101000 rw-p"));
        world.ok(first, linux::__NR_munmap, &[0x10_0000, 4096]);
    }
}

/// So are those about objects of System V, and about the watches of an inotify.
#[test]
fn long_lists_are_made_as_they_are_read() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let queues: Vec<i64> =
        (0..100).map(|_| program.call(linux::__NR_msgget, &[0, 0o600])).collect();
    assert_eq!(program.call(linux::__NR_msgctl, &[queues[50] as u64, 0, 0]), 0);
    let inotify = program.call(linux::__NR_inotify_init, &[]) as u64;
    for number in 0..100 {
        let path = format!("/tmp/{number}");
        program.make(&path, b"");
        let path = program.path(0, path.as_bytes());
        let watch = [inotify, path, linux::IN_OPEN.into()];
        assert!(program.call(linux::__NR_inotify_add_watch, &watch) > 0);
    }
    let info = format!("/proc/self/fdinfo/{inotify}");
    for (path, lines) in [("/proc/sysvipc/msg", 100), (&info, 104)] {
        let (mut whole, fd) = (Vec::new(), program.opened(path, 0));
        loop {
            let piece = program.read(fd, 8192);
            if piece.is_empty() {
                break;
            }
            assert!(piece.len() <= 4096 && piece.ends_with(b"\n"), "{path}: {}", piece.len());
            whole.extend(piece);
        }
        assert_eq!(String::from_utf8(whole).unwrap().lines().count(), lines, "{path}");
    }
}
