//! Random calls with random arguments by many processes and threads: the server answers
//! or lets them wait, and never fails.

use std::rc::Rc;

use crate::common::World;
use linux_raw_sys::general as l;
use unix::call::{Entry, TABLE};
use unix::machine::Access;
use unix::thread::{Doing, Thread};

/// A generator of pseudo-random numbers (xorshift).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// An argument as programs (good and bad ones) give them.
    fn argument(&mut self, area: u64) -> u64 {
        match self.below(10) {
            0..3 => area + self.below(0x8000) / 8 * 8,
            3 => area + self.below(0x20000),
            4..6 => self.below(32),
            6 => self.pick(&[
                0,
                1,
                u64::MAX,
                i32::MIN as u64,
                1 << 31,
                1 << 47,
                1 << 63,
                u64::MAX - 99,
            ]),
            7 => self.below(512) << 8,
            8 => 1 << self.below(64),
            _ => self.next() >> self.below(64),
        }
    }
}

/// Calls that end the thread or the process: they are made less often.
const ENDS: [u32; 6] = [
    l::__NR_exit,
    l::__NR_exit_group,
    l::__NR_reboot,
    l::__NR_rt_sigreturn,
    l::__NR_kill,
    l::__NR_vfork,
];

/// The threads that run their program, and the first.
fn runners(world: &World) -> Vec<Rc<Thread>> {
    let threads = world.unix.processes.by_tid.borrow();
    let runs = |thread: &&Rc<Thread>| {
        let stopped = thread.process.signals.stopped.get().is_some();
        thread.doing.get() == Doing::Running && thread.reply.borrow().is_none() && !stopped
    };
    threads.values().filter(runs).cloned().collect()
}

/// Looks at all answers; what they are does not matter here.
pub fn drain(world: &World) {
    let threads: Vec<_> = world.unix.processes.by_tid.borrow().values().cloned().collect();
    for thread in threads {
        while world.next_event(&thread).is_some() {}
    }
}

/// Fills an area with numbers that look like arguments, pointers and names.
fn fill(world: &World, thread: &Rc<Thread>, area: u64, random: &mut Random) {
    let mut bytes = Vec::new();
    for _ in 0..512 {
        match random.below(8) {
            0 => bytes.extend_from_slice(b"/tmp\0x/."),
            1 => bytes.extend_from_slice(b"/proc/1\0"),
            _ => bytes.extend_from_slice(&random.argument(area).to_le_bytes()),
        }
    }
    let space = thread.process.space();
    let memory = unix::user::UserMemory::new(&world.unix, space);
    let _ = memory.write_bytes(area + random.below(8) * 4096, &bytes);
}

#[test]
fn no_call_does_harm() {
    let entries: Vec<Entry> = TABLE.iter().flatten().copied().collect();
    let turns = std::env::var("UNIX_CALLS").ok().and_then(|count| count.parse().ok());
    let seed = std::env::var("UNIX_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = Random(seed.unwrap_or(0x1234_5678_9ABC_DEF1));
    let mut left: u64 = turns.unwrap_or(1_000_000);
    while left > 0 {
        let world = World::with_frames(4096);
        let area = world.scratch(&world.first, 0x8_0000);
        for _ in 0..20_000 {
            left = left.saturating_sub(u64::from(turn(&world, area, &entries, &mut random)));
            if world.machine.halted.take().is_some() {
                break;
            }
        }
        let first = &world.first.process();
        assert!(first.ended.get().is_none(), "process 1 has ended");
    }
}

/// The first process keeps the others going: it forks, buries and kills.
fn tend(world: &World, random: &mut Random) {
    let first = &world.first;
    let (wait, any) = (l::__NR_wait4, u64::MAX);
    while world.now(first, wait, &[any, 0, u64::from(l::WNOHANG | l::__WALL), 0]) as i64 > 0 {}
    let count = world.unix.processes.by_pid.borrow().len() as u64;
    if count < 40 && runners(world).len() < 12 {
        world.now(first, l::__NR_fork, &[]);
    } else {
        let all: Vec<u32> =
            world.unix.processes.by_pid.borrow().keys().map(|pid| pid.first()).collect();
        let signal = random.pick(&[l::SIGKILL, l::SIGCONT, l::SIGUSR1, l::SIGALRM]);
        for pid in all.iter().filter(|pid| **pid != 1) {
            if random.below(2) == 0 {
                world.call(first, l::__NR_kill, &[u64::from(*pid), u64::from(signal)]);
            }
        }
    }
    drain(world);
}

/// One event: a call, a fault, a tick, some typing. Whether it was a call.
pub fn turn(world: &World, area: u64, entries: &[Entry], random: &mut Random) -> bool {
    world.give_turns();
    drain(world);
    let all = runners(world);
    if all.len() < 4 || random.below(64) == 0 {
        tend(world, random);
    }
    let Some(thread) = all.get(random.below(all.len() as u64 + 1) as usize) else { return false };
    if Rc::ptr_eq(thread, &world.first) || thread.doing.get() != Doing::Running {
        return false;
    }
    let mut is_call = false;
    match random.below(128) {
        0 => world.advance(random.below(1 << 32)),
        1 => world.type_in(&random.next().to_le_bytes()),
        2 => {
            let access = random.pick(&[Access::READ, Access::WRITE, Access::EXECUTE]);
            world.unix.page_fault(thread, random.argument(area), access);
            world.collect();
        }
        3 => {
            world.unix.exception(thread, random.below(20) as u8, 0);
            world.collect();
        }
        4..8 => fill(world, thread, area, random),
        _ => {
            let entry = random.pick(entries);
            if ENDS.contains(&entry.number) && random.below(8) != 0 {
                return false;
            }
            let mut arguments: [u64; 6] = std::array::from_fn(|_| random.argument(area));
            // Nobody stops process 1, which keeps the others going, by tracing it.
            if entry.number == l::__NR_ptrace && arguments[1] as u32 == 1 {
                arguments[1] = 2;
            }
            if std::env::var("UNIX_TRACE").is_ok() {
                eprintln!("{}: {}{arguments:x?}", thread.own_tid.get(), entry.name);
            }
            world.call(thread, entry.number, &arguments);
            is_call = true;
        }
    }
    drain(world);
    is_call
}
