//! Namespaces of clocks: what time it is there, by call and by the vDSO's page, and who may say so.

use crate::common::World;
use crate::common::caller::Program;
use crate::common::machine::BOOT_NS;
use crate::common::program::{Extra, Load, Member, archive, elf};
use linux_raw_sys::general as l;
use unix::account::What;
use unix::machine::Reply;

const EPERM: i64 = -1;
const ENOMEM: i64 = -12;
const EACCES: i64 = -13;
const EINVAL: i64 = -22;
const ERANGE: i64 = -34;
const EUSERS: i64 = -87;
const NEW: u64 = l::CLONE_NEWTIME as u64;
const SECOND: u64 = 1_000_000_000;
const OFFSETS: &str = "/proc/self/timens_offsets";
const FIRST: &str = "time:[4026531834]";

/// Its first process has run a program, and so has a vDSO; 11 seconds after boot.
fn world() -> World {
    prepared(World::new())
}

fn prepared(world: World) -> World {
    let program = elf(0x40_1000, &[Load(0x40_1000, &[0xEB, 0xFE], 2, 5)], &Extra::default());
    let members = [Member("bin", 0o40_755, b""), Member("bin/program", 0o100_755, &program)];
    unix::fs::unpack(&world.unix, &archive(&members)).unwrap();
    run(&world, &world.first);
    world.advance(10 * SECOND);
    world
}

fn run(world: &World, thread: &std::rc::Rc<unix::thread::Thread>) {
    let path = world.text(thread, "/bin/program");
    assert_eq!(world.call(thread, l::__NR_execve, &[path, 0, 0]), None);
    assert_eq!(world.next_event(thread), Some(Reply::Resume));
    world.forget_scratch(thread);
}

fn unshare(program: &Program<'_>) -> i64 {
    program.call(l::__NR_unshare, &[NEW])
}

fn set(program: &Program<'_>, text: &str) -> i64 {
    let fd = program.opened(OFFSETS, l::O_WRONLY);
    let wrote = program.write(fd, text.as_bytes());
    program.close(fd);
    wrote
}

fn offsets(program: &Program<'_>) -> String {
    String::from_utf8(program.contents(OFFSETS)).unwrap()
}

/// A process whose clocks are put forward by 100 and 200 seconds, and a child of it.
fn ahead<'a>(first: &Program<'a>) -> [Program<'a>; 2] {
    let maker = first.fork();
    assert_eq!(unshare(&maker), 0);
    assert_eq!(set(&maker, "monotonic 100 0\nboottime 200 0\n"), 31);
    let child = maker.fork();
    [maker, child]
}

/// What a clock shows, in nanoseconds, by call.
fn by_call(program: &Program<'_>, clock: u32) -> u64 {
    assert_eq!(program.call(l::__NR_clock_gettime, &[clock.into(), program.buffer]), 0);
    let word = |at| program.world.read_u64(&program.thread, program.buffer + at);
    word(0) * SECOND + word(8)
}

/// The same by the page of the vDSO: the machine's time and what the page says of the clock.
fn by_page(program: &Program<'_>, clock: u32) -> u64 {
    let maps = String::from_utf8(program.contents("/proc/self/maps")).unwrap();
    let line = maps.lines().find(|line| line.ends_with("[vvar]")).unwrap();
    let page = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
    let at_boot = program.world.read_u64(&program.thread, page + 24 + 8 * u64::from(clock));
    program.world.machine.now_ns.get().wrapping_add(at_boot)
}

/// Both, which agree, of `CLOCK_MONOTONIC` and `CLOCK_BOOTTIME` and those that go with them, in seconds.
#[track_caller]
fn shown(program: &Program<'_>) -> [u64; 2] {
    let told = |clock: u32| {
        let ns = by_call(program, clock);
        assert_eq!(ns, by_page(program, clock), "clock {clock}");
        ns / SECOND
    };
    let monotonic = [l::CLOCK_MONOTONIC, l::CLOCK_MONOTONIC_RAW, l::CLOCK_MONOTONIC_COARSE];
    let [monotonic, raw, coarse] = monotonic.map(told);
    assert_eq!([monotonic; 2], [raw, coarse]);
    let boot = told(l::CLOCK_BOOTTIME);
    assert_eq!(by_call(program, l::CLOCK_BOOTTIME_ALARM) / SECOND, boot);
    assert!([l::CLOCK_REALTIME, l::CLOCK_REALTIME_COARSE, l::CLOCK_TAI].map(told).is_sorted());
    [monotonic, boot]
}

#[test]
fn children_have_other_clocks() {
    let world = world();
    let first = Program::new(&world, &world.first);
    assert_eq!(shown(&first), [11, 11]);
    let [maker, child] = ahead(&first);
    let heir = child.fork();
    assert_eq!(
        [&first, &maker, &child, &heir].map(shown),
        [[11, 11], [11, 11], [111, 211], [111, 211]]
    );
    // A namespace of the child's begins with the child's offsets.
    assert_eq!(unshare(&child), 0);
    assert_eq!(set(&child, "1 -11 500000000"), 15);
    assert_eq!(
        offsets(&child),
        "monotonic         -11 500000000\nboottime          200         0\n"
    );
    assert_eq!(by_call(&child.fork(), l::CLOCK_MONOTONIC), SECOND / 2);
    assert_eq!(shown(&child), [111, 211]);
    // The time is set for all, those who come later, too.
    let time = world.words(&first.thread, &[5000, 0]);
    assert_eq!(first.call(l::__NR_clock_settime, &[0, time]), 0);
    assert_eq!(
        [&first, &child, &heir.fork(), &child.fork()].map(|one| by_page(one, 0)),
        [5000 * SECOND; 4]
    );
}

#[test]
fn a_program_begins_in_the_namespace_of_children() {
    let world = world();
    let first = Program::new(&world, &world.first);
    let [maker, _] = ahead(&first);
    // A vfork's child reads its parent's page, until it has a program of its own.
    let flags = u64::from(l::CLONE_VM | l::CLONE_VFORK | l::SIGCHLD);
    assert_eq!(world.call(&maker.thread, l::__NR_clone, &[flags]), None);
    let child = world.unix.processes.by_tid.borrow().values().last().unwrap().clone();
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    let before = maker.with(&child);
    assert_eq!(shown(&before), [11, 11]);
    assert_eq!(setns_self(&before), EUSERS);
    run(&world, &child);
    assert_eq!(shown(&Program::new(&world, &child)), [111, 211]);
    // Who runs another program itself is there, too.
    world.next_event(&maker.thread);
    run(&world, &maker.thread);
    let maker = Program::new(&world, &maker.thread);
    assert_eq!(shown(&maker), [111, 211]);
    assert_eq!(set(&maker, "1 0 0"), EACCES);
}

fn setns_self(program: &Program<'_>) -> i64 {
    let fd = program.opened("/proc/self/ns/time", 0);
    program.call(l::__NR_setns, &[fd, 0])
}

#[test]
fn who_alone_has_its_memory_can_enter() {
    let world = world();
    let first = Program::new(&world, &world.first);
    let before = first.opened("/proc/self/ns/time_for_children", 0);
    let [maker, child] = ahead(&first);
    let names = ["time", "time_for_children"].map(|name| format!("/proc/self/ns/{name}"));
    let links = |program: &Program<'_>| names.each_ref().map(|name| program.readlink(name));
    let [own, of_children] = links(&maker);
    assert_eq!(own, FIRST);
    assert_eq!(links(&child), [of_children.clone(), of_children.clone()]);
    assert_ne!(of_children, own);
    assert_eq!(child.call(l::__NR_setns, &[before, l::CLONE_NEWUTS.into()]), EINVAL);
    assert_eq!(child.call(l::__NR_setns, &[before, NEW]), 0);
    assert_eq!((links(&child), shown(&child)), ([own.clone(), own], [11, 11]));
    let pidfd = child.call(l::__NR_pidfd_open, &[maker.fork().thread.tid.get().first().into(), 0]);
    assert_eq!(child.call(l::__NR_setns, &[pidfd as u64, NEW]), 0);
    assert_eq!(shown(&child), [111, 211]);
    // Whoever shares its memory cannot, though it may, nor who may not, though alone.
    let stack = child.scratch();
    let flags = u64::from(l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD);
    assert!(child.call(l::__NR_clone, &[flags, stack]) > 0);
    assert_eq!(child.call(l::__NR_setns, &[before, 0]), EUSERS);
    let user = first.fork();
    user.lose_privileges();
    assert_eq!([unshare(&user), user.call(l::__NR_setns, &[before, 0])], [EPERM; 2]);
    let requests = [0xB701, 0xB702, 0xB703, 0xB704];
    let answers = requests.map(|one| first.call(l::__NR_ioctl, &[before, one, first.buffer]));
    assert!(answers[0] > 0);
    assert_eq!(answers[1..], [EINVAL, NEW as i64, EINVAL]);
}

#[test]
fn offsets_are_set_once_and_by_whom_may() {
    let world = world();
    let first = Program::new(&world, &world.first);
    let none = "monotonic           0         0\nboottime            0         0\n";
    assert_eq!(offsets(&first), none);
    assert_eq!(set(&first, "1 5 0"), EACCES);
    assert!(!first.names("/proc/self/task/1").contains(&"timens_offsets".to_owned()));
    let maker = first.fork();
    assert_eq!(unshare(&maker), 0);
    for wrong in [
        "",
        "1",
        "1 5",
        "1 5 -1",
        "1 5 1000000000",
        "2 5 0",
        "monotonics 5 0",
        "1 x 0",
        "1 5 0\n\n",
    ] {
        assert_eq!(set(&maker, wrong), EINVAL, "{wrong:?}");
    }
    assert_eq!(set(&maker, &format!("1 5 0{}", " ".repeat(4091))), EINVAL);
    for far in
        ["1 -12 999999999", "7 4611686019 0", "1 9223372037 0", "1 5 0\n7 -99999999999999999999 0"]
    {
        assert_eq!(set(&maker, far), ERANGE, "{far}");
    }
    assert_eq!(offsets(&maker), none);
    for (text, wrote) in
        [(" monotonic5\t6 and so on", 23), ("1 7 8\nboottime -9 1\n1 1 1\n", 20), ("1 7 8\n\0", 7)]
    {
        assert_eq!(set(&maker, text), wrote, "{text:?}");
    }
    assert_eq!(
        offsets(&maker),
        "monotonic           7         8\nboottime           -9         1\n"
    );
}

/// It is who opens the file that must be privileged over the namespace's users.
#[test]
fn who_has_opened_the_file_sets_offsets() {
    let world = world();
    let first = Program::new(&world, &world.first);
    let maker = first.fork();
    assert_eq!(unshare(&maker), 0);
    let user = maker.fork();
    user.lose_privileges();
    assert_eq!(set(&maker, "1 5 0"), EACCES, "somebody was there");
    assert_eq!(user.call(l::__NR_unshare, &[NEW | u64::from(l::CLONE_NEWUSER)]), 0);
    let fd = user.opened(OFFSETS, l::O_WRONLY);
    assert_eq!(user.write(fd, b"1 5 0"), 5);
    assert_eq!(user.write(fd, b"1 6 0"), 5, "again");
    let other = first.fork();
    assert_eq!(unshare(&other), 0);
    let fd = other.opened(OFFSETS, l::O_WRONLY);
    other.lose_privileges();
    assert_eq!(other.write(fd, b"7 5 0"), 5);
}

#[test]
fn clone3_makes_one_that_its_child_is_in() {
    let world = world();
    let first = Program::new(&world, &world.first);
    let clone3 = |flags: u64, signal: u32| {
        let arguments =
            world.words(&first.thread, &[flags, 0, 0, 0, signal.into(), 0, 0, 0, 0, 0, 0]);
        first.call(l::__NR_clone3, &[arguments, 88])
    };
    let tid = clone3(NEW, l::SIGCHLD);
    let child = first.with(&world.thread(tid as u64));
    assert_eq!(world.next_event(&child.thread), Some(Reply::Resume));
    let links =
        ["time", "time_for_children"].map(|name| child.readlink(&format!("/proc/self/ns/{name}")));
    assert_eq!(links[0], links[1]);
    assert_ne!(links[0], FIRST);
    assert_eq!(set(&child, "1 5 0"), EACCES);
    let thread = u64::from(l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD);
    assert_eq!(clone3(NEW | thread, 0), EINVAL);
    // With its parent's memory it is where its parent is.
    let tid = clone3(NEW | u64::from(l::CLONE_VM), l::SIGCHLD);
    let sharer = first.with(&world.thread(tid as u64));
    assert_eq!(world.next_event(&sharer.thread), Some(Reply::Resume));
    assert_eq!(sharer.readlink("/proc/self/ns/time"), FIRST);
    assert_ne!(sharer.readlink("/proc/self/ns/time_for_children"), FIRST);
}

/// All times that are said are the caller's.
#[test]
fn waits_end_by_the_caller_s_clocks() {
    let world = world();
    let first = Program::new(&world, &world.first);
    let [_, child] = ahead(&first);
    let thread = &child.thread;
    let until = |seconds: u64| world.words(thread, &[seconds, 0]);
    let (monotonic, boot) = (l::CLOCK_MONOTONIC.into(), l::CLOCK_BOOTTIME.into());
    let (word, all) = (world.words(thread, &[0]), u64::from(u32::MAX));
    let vector = world.words(thread, &[0, word, 2]);
    let waits = |number: u32, arguments: &[u64]| {
        world.waits(thread, number, arguments);
        world.advance(SECOND - 1);
        assert_eq!(world.next_reply(thread), None, "call {number}");
        world.advance(1);
        assert!(world.next_reply(thread).is_some(), "call {number}");
    };
    waits(l::__NR_clock_nanosleep, &[monotonic, 1, until(112), 0]);
    waits(l::__NR_clock_nanosleep, &[boot, 1, until(213), 0]);
    waits(l::__NR_futex, &[word, l::FUTEX_WAIT_BITSET.into(), 0, until(114), 0, all]);
    waits(l::__NR_futex_waitv, &[vector, 1, 0, until(115), monotonic]);
    waits(l::__NR_futex, &[word, 0, 0, until(1), 0, 0]);
    waits(l::__NR_clock_nanosleep, &[monotonic, 0, until(1), 0]);
    assert_eq!(child.call(l::__NR_clock_nanosleep, &[monotonic, 1, until(20), 0]), 0, "long ago");
    let fd = child.call(l::__NR_timerfd_create, &[boot, 0]) as u64;
    let time = world.words(thread, &[0, 0, 218, 0]);
    assert_eq!(child.call(l::__NR_timerfd_settime, &[fd, 1, time, 0]), 0);
    assert_eq!(child.call(l::__NR_timerfd_gettime, &[fd, child.buffer]), 0);
    assert_eq!(world.read_u64(thread, child.buffer + 16), 1);
    waits(l::__NR_read, &[fd, child.buffer, 8]);
    let event = world.words(thread, &[0, u64::from(l::SIGEV_NONE) << 32, 0, 0, 0, 0, 0, 0]);
    assert_eq!(child.call(l::__NR_timer_create, &[monotonic, event, child.buffer]), 0);
    let timer = world.read_u32(thread, child.buffer).into();
    let time = world.words(thread, &[0, 0, 120, 0]);
    assert_eq!(child.call(l::__NR_timer_settime, &[timer, 1, time, 0]), 0);
    assert_eq!(child.call(l::__NR_timer_gettime, &[timer, child.buffer]), 0);
    assert_eq!(world.read_u64(thread, child.buffer + 16), 2);
}

#[test]
fn what_is_told_of_the_time_since_boot_is_the_reader_s() {
    let world = world();
    let first = Program::new(&world, &world.first);
    let [maker, child] = ahead(&first);
    world.advance(SECOND / 2);
    let pid = maker.thread.tid.get().first();
    let told = |program: &Program<'_>| {
        assert_eq!(program.call(l::__NR_sysinfo, &[program.buffer]), 0);
        let uptime = world.read_u64(&program.thread, program.buffer);
        let text = |path: &str| String::from_utf8(program.contents(path)).unwrap();
        let stat = text(&format!("/proc/{pid}/stat"));
        let start = stat.split(' ').nth(21).unwrap().to_owned();
        let btime = text("/proc/stat")
            .lines()
            .find_map(|line| Some(line.strip_prefix("btime ")?.parse().unwrap()));
        (uptime, text("/proc/uptime"), start, btime.unwrap())
    };
    let boot = BOOT_NS / SECOND;
    assert_eq!(told(&first), (12, "11.50 11.50\n".to_owned(), "1100".to_owned(), boot));
    assert_eq!(told(&child), (212, "211.50 11.50\n".to_owned(), "21100".to_owned(), boot - 200));
}

/// A namespace is paid as long as it can be entered, and its page goes with it.
#[test]
fn a_namespace_is_paid() {
    let world = prepared(World::with_frames(1024));
    let first = Program::new(&world, &world.first);
    let user = first.fork();
    user.lose_privileges();
    assert_eq!(user.call(l::__NR_unshare, &[l::CLONE_NEWUSER.into()]), 0);
    let used = || [What::Frames, What::Heap].map(|what| user.thread.process().user().used(what));
    let before = used();
    assert_eq!(unshare(&user), 0);
    assert_eq!(used(), [before[0] + 1, before[1] + 512]);
    let keep = || user.open("/proc/self/ns/time_for_children", 0, 0);
    let fd = keep();
    let left = world.unix.memory.available();
    assert_eq!(unshare(&user), 0);
    assert_eq!((used()[0], world.unix.memory.available()), (before[0] + 2, left - 1));
    user.close(fd as u64);
    assert_eq!((used()[0], world.unix.memory.available()), (before[0] + 1, left));
    // Nobody has more than half of the frames.
    let last = loop {
        match unshare(&user) {
            0 => assert!(keep() >= 0),
            errno => break errno,
        }
    };
    assert_eq!(last, ENOMEM);
    let total = world.unix.memory.total() as u64;
    assert!((total / 4..=total / 2).contains(&used()[0]), "{} of {total}", used()[0]);
    assert!(unshare(&first.fork()) == 0, "others can still");
}
