//! A hostile task as the judge sees it: started, given its den, watched, ended.

use core::sync::atomic::Ordering;

use abi::{Fpage, MapItem, Rights, ThreadId, Time};
use fuzzing::PLAYGROUND_BITS;
use fuzzing::den::{Den, IDS, THREADS as DEN_THREADS};
use fuzzing::rng::mix;
use proto::{layout, root as op};
use runtime::{Msg, ipc, root};

use crate::hostile::{CHILDREN, DEN, THREADS};
use crate::order::{ORDER, about, find};

/// Hostile tasks.
pub const TASKS: usize = 3;
/// Their names.
pub const NAMES: [&str; TASKS] = ["hostile-0", "hostile-1", "hostile-2"];
/// Log2 size of a den's place.
pub const DEN_BITS: u32 = 17;
/// More calls than a thread can make between two looks.
const MOST_CALLS: u64 = 50_000;
/// Looks without a call after which a task is ended.
const PATIENCE: u32 = 150;
/// Time for a task to take its order, µs.
const ORDER_US: u64 = 100;
/// How often each action is taken: what ends a thread less often than in the kernel's
/// fuzzer, since a new task costs as much as hundreds of calls.
const WEIGHTS: [u64; fuzzing::hostile::ACTIONS] = [
    200, 120, 140, 200, 240, 160, 120, 120, 80, 80, 20, 60, 60, 120, 40, 30, 20, 40, 80, 40, 80,
    80, 500, 200, 1, 120,
];

/// One hostile task.
pub struct Life {
    slot: u64,
    number: usize,
    den: &'static Den,
    /// Where den and playground are in the judge's memory.
    base: u64,
    playground: u64,
    main: ThreadId,
    ordered: bool,
    seen: [u64; DEN_THREADS],
    calls: u64,
    idle: u32,
    /// How often it was started.
    pub lives: u64,
}

impl Life {
    /// The hostile task `number`, whose den is at `base`.
    pub fn new(number: usize, base: u64, playground: u64, seed: u64) -> Self {
        let slot = find(NAMES[number]).map_or(0, |about| about.slot);
        let den = Den::at(base);
        for (slot, weight) in den.weights.iter().zip(WEIGHTS) {
            slot.store(weight, Ordering::Relaxed);
        }
        for (index, thread) in den.threads.iter().enumerate() {
            let own = mix(seed, (number * DEN_THREADS + index) as u64 + 1);
            thread.rng.store(own, Ordering::Relaxed);
        }
        Self {
            slot,
            number,
            den,
            base,
            playground,
            main: ThreadId::NIL,
            ordered: false,
            seen: [0; DEN_THREADS],
            calls: 0,
            idle: 0,
            lives: 0,
        }
    }

    /// Its den.
    pub const fn den(&self) -> &'static Den {
        self.den
    }

    /// Calls that it has made.
    pub const fn calls(&self) -> u64 {
        self.calls
    }

    /// Its main thread; nilthread while it does not run.
    pub const fn main(&self) -> ThreadId {
        self.main
    }

    /// The counters are in the den, where anything may have overwritten them.
    fn count(&mut self) -> u64 {
        let mut made = 0;
        for (seen, thread) in self.seen.iter_mut().zip(&self.den.threads) {
            let calls = thread.calls.load(Ordering::Relaxed);
            let new = calls.wrapping_sub(core::mem::replace(seen, calls));
            made += if new <= MOST_CALLS { new } else { 0 };
        }
        self.calls += made;
        made
    }

    /// Sees to it that the task runs and gets on.
    pub fn look(&mut self, others: &[ThreadId]) {
        let made = self.count();
        let main = about(self.slot).map_or(ThreadId::NIL, |(_, about)| about.main);
        if main.is_nil() {
            let _ = root::start(NAMES[self.number]);
            self.main = ThreadId::NIL;
            return;
        }
        if main != self.main {
            (self.main, self.ordered, self.idle) = (main, false, 0);
            self.lives += 1;
            self.introduce(others);
        }
        if !self.ordered {
            self.ordered = self.order();
        }
        self.idle = if made == 0 { self.idle + 1 } else { 0 };
        if self.idle > PATIENCE {
            self.end();
        }
    }

    /// Ends it; it is started again at the next look.
    pub fn end(&mut self) {
        self.idle = 0;
        let _ = root::kill(NAMES[self.number]);
    }

    /// Answers the task's request for a page that it has lost.
    pub fn give(&self, from: ThreadId, address: u64) {
        let playground = fuzzing::hostile::PLAYGROUND;
        let answer = if (DEN..DEN + (1 << DEN_BITS)).contains(&address) {
            let den = Fpage::memory(self.base, DEN_BITS, Rights::RWX);
            MapItem::map(den, DEN - playground)
        } else {
            // Pages of all sizes.
            let bits = if address & 0x7000 == 0 { 21 } else { 12 };
            let offset =
                (address.wrapping_sub(playground) & ((1 << PLAYGROUND_BITS) - 1)) >> bits << bits;
            MapItem::map(Fpage::memory(self.playground + offset, bits, Rights::RWX), offset)
        };
        let _ = ipc::reply(from, &Msg::new(proto::OK).map(answer));
    }

    /// Gives it den and playground; whether it took them.
    fn order(&self) -> bool {
        let room = DEN - fuzzing::hostile::PLAYGROUND;
        let playground = Fpage::memory(self.playground, PLAYGROUND_BITS, Rights::RWX);
        let den = Fpage::memory(self.base, DEN_BITS, Rights::RWX);
        let msg = Msg::new(ORDER).map(MapItem::map(playground, 0)).map(MapItem::map(den, room));
        ipc::send_within(self.main, &msg, Time::micros(ORDER_US)).is_ok()
    }

    /// Tells it who there is: itself, everybody in `others`, and numbers around them.
    fn introduce(&self, others: &[ThreadId]) {
        let (number, generation) = (self.main.number(), op::generation_of(self.main.version()));
        let own = (0..THREADS).map(|index| {
            ThreadId::global(number + index as u32, op::version_of(generation, index as u16))
        });
        let next =
            others.iter().filter(|id| id.number() >= layout::FIRST_TASK_THREAD).flat_map(|id| {
                let generation = op::generation_of(id.version());
                [
                    ThreadId::global(id.number(), op::version_of(generation + 1, 0)),
                    ThreadId::global(id.number() + 1, op::version_of(generation, 1)),
                ]
            });
        let everybody = own.chain([self.main]).chain(others.iter().copied()).chain(next);
        for (slot, id) in self.den.ids.iter().zip(everybody.cycle().take(IDS)) {
            slot.store(id.0, Ordering::Relaxed);
        }
        let children = number + CHILDREN;
        self.den.children.store(children.into(), Ordering::Relaxed);
        self.den.number.store(self.number as u64, Ordering::Relaxed);
        for (slot, name) in self.den.servers.iter().zip(["root", "pager", "serial", "unix"]) {
            let id = if name == "root" { Some(ThreadId::ROOT) } else { find(name).map(|a| a.main) };
            slot.store(id.unwrap_or(ThreadId::ROOT).0, Ordering::Relaxed);
        }
    }
}
