//! Random tasks that give each other numbers and ceilings, make threads and tasks, schedule
//! and delete each other: nobody gets what no chief gave him, and the kernel's own
//! checker finds nothing. The rules are written down here a second time, in terms of who is
//! above whom.

use kernel::space::spaces;
use std::collections::BTreeMap;

use crate::common::tasks::{initialise, make};
use crate::common::{Machine, Random};
use abi::{Ceilings, Numbers, ThreadId, Time};
use kernel::check;
use kernel::control::ceiling;
use kernel::control::schedule::{self, schedule};
use kernel::control::thread_control::{After, Form, Request, in_form};
use kernel::destruction;
use kernel::mem::RootWord;
use kernel::space::SpaceRef;
use kernel::space::task_control::{Gift as Limits, task_control};
use kernel::thread::{TcbRef, for_each, lookup, lookup_number, own, set_current};

const ROUNDS: usize = 20_000;
/// Between two runs of the whole checker.
const CHECKED: usize = 50;
/// Where the numbers lie that all play with.
const FIRST: u64 = 1000;
const SPAN: u64 = 48;
const UNCHANGED: u64 = !0;

struct Play {
    _machine: Machine,
    root: TcbRef,
    random: Random,
    /// The highest version that an ordinary task may not go below, by number.
    versions: BTreeMap<u32, u32>,
    /// Successes by kind.
    done: [usize; 5],
}

fn space(thread: TcbRef) -> SpaceRef {
    thread.space().expect("a user's thread")
}

/// Whether `upper` is `lower` or one of its chiefs.
fn is_above(upper: SpaceRef, lower: SpaceRef) -> bool {
    let mut chiefs = std::iter::successors(Some(lower), |space| space.task.chief.get());
    chiefs.any(|space| space == upper)
}

impl Play {
    fn new() -> Self {
        let machine = Machine::new(1, 4000, false);
        set_current(own::make_idle(RootWord::default()));
        machine.spaces.iter().for_each(|space| spaces().insert(*space));
        machine.spaces.iter().for_each(|space| space.task.privileged.set(true));
        initialise(machine.spaces[1]);
        let root = make(ThreadId::global(900, 1), machine.spaces[1], 0, ThreadId::NIL);
        root.scheduler.set(root.id.get());
        let versions = BTreeMap::new();
        Self { _machine: machine, root, random: Random::seeded(61), versions, done: [0; 5] }
    }

    /// Somebody of those that exist.
    fn anybody(&mut self) -> TcbRef {
        let mut all = Vec::new();
        for_each(|thread| all.push(thread));
        let users: Vec<TcbRef> = all.into_iter().filter(|one| one.space().is_some()).collect();
        users[self.random.below(users.len() as u64) as usize]
    }

    fn number(&mut self) -> u32 {
        (FIRST + self.random.below(SPAN)) as u32
    }

    /// A number that `caller` owns, more often than not.
    fn number_of(&mut self, caller: TcbRef) -> u32 {
        let own = space(caller).numbers();
        if own.is_empty() || space(caller).is_privileged() || self.random.one_in(4) {
            return self.number();
        }
        own.first + self.random.below(own.count.into()) as u32
    }

    fn step(&mut self) {
        // Half of all that happens is the root task's doing: it gives others something to do.
        let caller = if self.random.one_in(2) { self.root } else { self.anybody() };
        set_current(caller);
        match self.random.below(8) {
            0..=2 => self.creates(caller),
            3 => self.deletes(caller),
            4 | 5 => self.limits(caller),
            _ => self.schedules(caller),
        }
    }

    fn creates(&mut self, caller: TcbRef) {
        let number = self.number_of(caller);
        let last = self.versions.get(&number).copied().unwrap_or(0);
        let version = match self.random.below(4) {
            0 => last.max(1),
            1 => 1 + self.random.below(200) as u32,
            _ => last + 1 + u32::from((last + 1).is_multiple_of(64)),
        };
        let dest = ThreadId::global(number, version);
        let target = self.anybody();
        let home = if self.random.one_in(2) { dest } else { target.id.get() };
        let target = if self.random.one_in(2) { caller } else { target };
        let home = if home == dest { dest } else { target.id.get() };
        let (pager, scheduler) = (ThreadId::NIL, caller.scheduler.get());
        let request = Request { dest, pager, scheduler, space: home, utcb_location: !0 };
        let free = lookup_number(number).is_none();
        if !dest.is_global() || in_form(caller, &request, Form::Create).is_err() {
            return;
        }
        self.done[0] += 1;
        let own = space(caller);
        assert!(free, "{dest} was created where somebody was");
        let made = lookup(dest).expect("it was created");
        assert!(is_above(own, space(made)) || own.is_privileged());
        if !own.is_privileged() {
            assert!(own.numbers().contains(number), "{dest} is not its creator's");
            assert!(version > last, "{dest} came after version {last}");
            assert!(made.priority.get() <= caller.priority.get());
        }
        self.versions.insert(number, last.max(version));
    }

    fn deletes(&mut self, caller: TcbRef) {
        let dest = ThreadId::global(self.number_of(caller), 1);
        let Some(victim) = lookup_number(dest.number()) else { return };
        let (own, home) = (space(caller), space(victim));
        let nil = ThreadId::NIL;
        let request = Request { dest, pager: nil, scheduler: nil, space: nil, utcb_location: !0 };
        let allowed =
            own.is_privileged() || own.numbers().contains(dest.number()) && is_above(own, home);
        match in_form(caller, &request, Form::Any) {
            Ok(After::Destroy(space)) => {
                // Most callers here are inactive: somebody else would run next.
                let _ = destruction::start(caller, space);
            }
            Ok(After::Nothing) => {}
            Err(_) => return,
        }
        assert!(allowed, "{dest} was deleted by a stranger");
        self.done[1] += 1;
    }

    fn limits(&mut self, caller: TcbRef) {
        let target = self.anybody();
        let (own, of) = (space(caller), space(target));
        let first = FIRST as u32 - 2 + self.random.below(SPAN) as u32;
        let numbers = Numbers { first, count: self.random.below(SPAN / 2) as u32 };
        let ceilings = Ceilings {
            priority: 50 + self.random.below(206) as u8,
            slice: Time::micros(self.random.below(20_000)),
            quantum: if self.random.one_in(2) {
                Time::NEVER
            } else {
                Time::micros(self.random.below(1 << 20))
            },
            delay_us: self.random.below(1 << 16) as u16,
        };
        let gives = |on: bool, word: u64| if on { word } else { UNCHANGED };
        let (with_numbers, with_ceilings) = (self.random.one_in(2), self.random.one_in(3));
        let request = Limits {
            specifier: target.id.get(),
            numbers: gives(with_numbers, numbers.word()),
            ceilings: gives(with_ceilings, ceilings.word()),
        };
        let before = (of.numbers(), of.ceilings());
        if task_control(caller, &request, ceiling::lower).is_err() {
            assert_eq!((of.numbers(), of.ceilings()), before, "a refusal has changed something");
            return;
        }
        assert!(own.is_privileged() || is_above(own, of));
        if !with_numbers && !with_ceilings {
            return;
        }
        self.done[2] += 1;
        assert!(own != of && !of.is_privileged());
        assert!(of.ceilings().within(before.1));
        if with_numbers {
            assert!(before.0.is_empty());
            let chief = of.task.chief.get().expect("an ordinary task has a chief");
            assert!(chief.numbers().includes(of.numbers()));
        }
    }

    fn schedules(&mut self, caller: TcbRef) {
        let thread = self.anybody();
        let word = |random: &mut Random, bits: u32| match random.below(3) {
            0 => UNCHANGED,
            _ => random.below(1 << bits),
        };
        let request = schedule::Change {
            dest: thread.id.get(),
            priority: word(&mut self.random, 8),
            time: word(&mut self.random, 31) & !0x8000_8000 | self.unchanged_one_in(3),
            processor: UNCHANGED,
            preemption: word(&mut self.random, 24),
        };
        let quantum = thread.quantum_left_us.get();
        let scheduler_of = thread.scheduler.get();
        let accepted = schedule(caller, &request).is_ok();
        let own = space(caller);
        if !own.is_privileged() && own.ceilings().quantum_us() != u64::MAX {
            assert!(thread.quantum_left_us.get() <= quantum, "a quantum was refilled from inside");
            self.done[4] += 1;
        }
        if accepted {
            let scheduler =
                lookup(scheduler_of).is_some_and(|scheduler| scheduler.same_space(caller));
            assert!(own.is_privileged() || scheduler || is_above(own, space(thread)));
            self.done[3] += 1;
        }
    }

    fn unchanged_one_in(&mut self, n: u64) -> u64 {
        if self.random.one_in(n) { UNCHANGED } else { 0 }
    }
}

#[test]
fn nobody_gets_what_no_chief_gave_him() {
    let mut play = Play::new();
    for round in 0..ROUNDS {
        play.step();
        if round % CHECKED == 0 {
            assert_eq!(check::violations(), 0, "round {round}");
        }
    }
    assert!(play.done.iter().all(|count| *count > 20), "hardly anything happened: {:?}", play.done);
    assert!(lookup(play.root.id.get()).is_some());
}
