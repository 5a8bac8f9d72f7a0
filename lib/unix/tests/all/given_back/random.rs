//! Random calls of many processes, which are then killed.

use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use linux_raw_sys::general as l;
use unix::account::{User, What};
use unix::call::{Entry, TABLE};
use unix::thread::Thread;

use super::LIVE;
use crate::any_calls::{Random, drain, turn};
use crate::common::World;
use crate::common::caller::Program;

/// Bytes that are still paid for when everything has gone, but for POSIX queues, whose names nobody remembers.
const RANDOM_PAID: isize = 1 << 20;
/// Calls of one round of random ones.
const RANDOM_CALLS: u64 = 20_000;
/// Rounds of them, the first half of which may grow tables.
const RANDOM_ROUNDS: usize = 24;
/// Bytes by which tables may still grow in the second half.
const RANDOM_SLACK: isize = 16 * 1024;
/// Bytes that nobody pays for while all of them are there: what the test's machine has for each thread is the most.
const RANDOM_UNPAID: isize = 1 << 20;

/// Kills and buries everybody but process 1, and removes all files that programs made.
fn clean(program: &Program<'_>) {
    let world = program.world;
    while world.unix.processes.by_pid.borrow().len() > 1 {
        let all: Vec<u32> =
            world.unix.processes.by_pid.borrow().keys().map(|pid| pid.first()).collect();
        for pid in all.iter().filter(|pid| **pid != 1) {
            program.call(l::__NR_kill, &[u64::from(*pid), l::SIGKILL.into()]);
        }
        // Who gave its turn away hears of it when it has one.
        world.give_turns();
        drain(world);
        let options = u64::from(l::WNOHANG | l::__WALL);
        while program.call(l::__NR_wait4, &[u64::MAX, 0, options, 0]) > 0 {}
    }
    let _ = world.console();
    for path in [&b"/dev/"[..], b"/tmp/", b"/"] {
        remove_all(program, path);
    }
}

/// Removes what is in a directory; what cannot be removed stays.
fn remove_all(program: &Program<'_>, path: &[u8]) {
    let flags = u64::from(l::O_RDONLY | l::O_DIRECTORY | l::O_NOFOLLOW);
    let fd = program.call(l::__NR_open, &[program.path(0, path), flags, 0]);
    let Ok(fd) = u64::try_from(fd) else { return };
    let mut names = Vec::new();
    loop {
        let len = program.call(l::__NR_getdents64, &[fd, program.buffer, 4096]);
        if len <= 0 {
            break;
        }
        let bytes = program.world.read(&program.thread, program.buffer, len as usize);
        names.extend(raw_entries(&bytes));
    }
    program.close(fd);
    for (name, is_directory) in names {
        let kept: [&[u8]; 5] = [b".", b"..", b"dev", b"proc", b"tmp"];
        if kept.contains(&name.as_slice()) {
            continue;
        }
        let mut path = [path, &name].concat();
        if is_directory {
            path.push(b'/');
            remove_all(program, &path);
        }
        let number = if is_directory { l::__NR_rmdir } else { l::__NR_unlink };
        program.call(number, &[program.path(0, &path)]);
    }
}

/// Names in `getdents64`'s records, whatever bytes they have, and whether they are directories'.
fn raw_entries(mut bytes: &[u8]) -> Vec<(Vec<u8>, bool)> {
    let mut names = Vec::new();
    while bytes.len() >= 19 {
        let len = usize::from(u16::from_le_bytes([bytes[16], bytes[17]]));
        let name = bytes[19..len].iter().copied().take_while(|byte| *byte != 0).collect();
        names.push((name, bytes[18] == 4));
        bytes = &bytes[len..];
    }
    names
}

/// Who has been there: threads, and users with what they pay.
#[derive(Default)]
struct Seen {
    threads: BTreeMap<*const Thread, Weak<Thread>>,
    users: BTreeMap<u32, Rc<User>>,
}

impl Seen {
    fn look(&mut self, world: &World) {
        let threads = world.unix.processes.by_tid.borrow();
        self.threads.extend(threads.values().map(|it| (Rc::as_ptr(it), Rc::downgrade(it))));
        self.users.extend(threads.values().map(|it| it.process.user()).map(|it| (it.uid, it)));
    }

    /// Bytes that they pay for.
    fn paid(&mut self) -> isize {
        self.users.retain(|_, user| user.used(What::Heap) > 0);
        self.users.values().map(|user| user.used(What::Heap) as isize).sum()
    }

    /// Nobody who has ended is kept.
    fn check(&mut self, round: usize) {
        self.threads.retain(|_, thread| thread.strong_count() > 0);
        let mut kept = self.threads.values().filter_map(Weak::upgrade);
        if let Some(thread) = kept.find(|it| it.own_tid.get() != 1) {
            let (tid, call) = (thread.own_tid.get(), thread.number.get());
            panic!("round {round}: thread {tid}, which has ended in call {call}, is kept");
        }
    }
}

#[test]
fn random_calls() {
    let entries: Vec<Entry> = TABLE.iter().flatten().copied().collect();
    let seed = std::env::var("UNIX_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(0x1234_5678_9ABC_DEF1);
    println!("UNIX_SEED={seed}");
    let mut random = Random(seed);
    let world = World::with_frames(4096);
    let program = Program::new(&world, &world.first);
    let area = world.scratch(&world.first, 0x8_0000);
    let mut seen = Seen::default();
    let (mut live, start) = (0, LIVE.get());
    for round in 0..RANDOM_ROUNDS {
        let mut calls = 0;
        while calls < RANDOM_CALLS {
            calls += u64::from(turn(&world, area, &entries, &mut random));
            world.machine.halted.take();
            if calls % 8 == 0 {
                seen.look(&world);
            }
        }
        let unpaid = LIVE.get() - seen.paid() - start;
        assert!(unpaid < RANDOM_UNPAID, "round {round}: nobody pays for {unpaid} bytes");
        clean(&program);
        // Nobody's, and there until somebody removes them.
        let ipc = &world.unix.ipc;
        ipc.messages.all().for_each(|one| ipc.messages.remove(&one));
        ipc.segments.all().for_each(|one| ipc.segments.remove(&one));
        ipc.semaphores.all().for_each(|one| ipc.semaphores.remove(&one));
        world.collect();
        seen.check(round);
        let paid = seen.paid();
        assert!(paid < RANDOM_PAID, "round {round}: {paid} bytes are still paid for");
        if round + 1 == RANDOM_ROUNDS / 2 {
            live = LIVE.get();
        }
    }
    let grown = LIVE.get() - live;
    assert!(grown < RANDOM_SLACK, "{grown} bytes are not given back");
    // A page of scratch memory or two may be touched for the first time.
    assert!(world.unix.memory.available() > 4096 - 64, "frames are not given back");
}
