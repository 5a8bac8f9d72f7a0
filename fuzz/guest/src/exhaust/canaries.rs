//! The canaries, two on each processor: one spins at the priority of the hostile task and counts
//! its turns, one of higher priority sleeps and measures how late it wakes.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use abi::id::USER_BASE;
use abi::inspect::What;
use abi::{ThreadId, Time};
use runtime::{clock, ipc, kernel, kip, schedule};

use super::Length;
use super::hostile::{self, Stack};
use super::turns::{self, Turn};
use crate::machine;
use crate::rng::Rng;

/// Processors that get canaries.
pub const MOST: usize = 8;
/// Numbers of the canaries' ids, two for each processor, and of the thread that gives turns; no hostile thread
/// has these.
const FIRST: u32 = USER_BASE + 16;
const TURNER: ThreadId = ThreadId::global(FIRST + 2 * MOST as u32, 1);
/// Priority of the one that measures delays.
pub const HIGH_PRIORITY: u8 = 220;
/// A pause of so many ticks (instructions) means that somebody else had a turn.
const GAP: u64 = 200_000;
/// Words that are added up in a round, to be something to do.
const WORK: usize = 64;

static STACKS: [Stack; 2 * MOST + 1] = [const { hostile::stack() }; 2 * MOST + 1];
/// Begins a new measurement when it changes.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// Processors run at once.
static AT_ONCE: AtomicBool = AtomicBool::new(false);

/// What the two canaries of a processor work on and note.
struct Cage {
    /// What the spinning one works on; a sum that is not the expected one is harm.
    words: [AtomicU64; WORK],
    /// Its rounds since the epoch began.
    rounds: AtomicU64,
    /// Time stamp and rounds of the beginning of its first whole and its latest turn; turns.
    first: [AtomicU64; 2],
    latest: [AtomicU64; 2],
    turns: AtomicU64,
    harm: AtomicU64,
    /// Longest delay of the other one since the epoch began, µs, and wake-ups.
    late: AtomicU64,
    woken: AtomicU64,
    /// When it is to wake, µs, or 0; rounds since then of the spinning one here, and of the first processor's.
    due_us: AtomicU64,
    overdue: [AtomicU64; 2],
    /// Most rounds of which both have had as many while it was to wake; ticks of the quickest one.
    outrun: AtomicU64,
    quickest: AtomicU64,
}

static CAGES: [Cage; MOST] = [const {
    Cage {
        words: [const { AtomicU64::new(3) }; WORK],
        rounds: AtomicU64::new(0),
        first: [const { AtomicU64::new(0) }; 2],
        latest: [const { AtomicU64::new(0) }; 2],
        turns: AtomicU64::new(0),
        harm: AtomicU64::new(0),
        late: AtomicU64::new(0),
        woken: AtomicU64::new(0),
        due_us: AtomicU64::new(0),
        overdue: [const { AtomicU64::new(0) }; 2],
        outrun: AtomicU64::new(0),
        quickest: AtomicU64::new(u64::MAX),
    }
}; MOST];

/// All canaries, and what a round costs.
pub struct Canaries {
    round_ticks: f64,
    ticks_per_us: f64,
    since: Since,
}

/// When a measurement began.
#[derive(Default)]
struct Since {
    ticks: u64,
    us: u64,
    /// The processor time of each spinning canary, and of all that are more urgent, µs.
    used_us: [u64; MOST],
    urgent_us: u64,
}

/// What those of one processor saw in one scenario.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Share of the processor that the one of equal priority had, 0 to 1.
    pub share: f64,
    /// What it has computed, as a part of all that the machine could have, 0 to 1.
    pub work: f64,
    /// How long the processor was somebody's, µs.
    pub own_us: f64,
    /// Turns that it had.
    pub turns: u64,
    /// Longest delay of the one of higher priority, µs.
    pub late_us: u64,
    /// What less urgent ones computed at most while it was to wake, µs.
    pub outrun_us: u64,
    /// How often that one woke.
    pub woken: u64,
    /// Whether the memory of one changed.
    pub harm: bool,
}

/// The spinning canary of a processor.
pub const fn equal(processor: usize) -> ThreadId {
    ThreadId::global(FIRST + 2 * processor as u32, 1)
}

/// The one that measures delays.
const fn high(processor: usize) -> ThreadId {
    ThreadId::global(FIRST + 2 * processor as u32 + 1, 1)
}

/// Whether `id` is a canary.
pub fn is_one(id: ThreadId) -> bool {
    (0..MOST).any(|processor| id == equal(processor) || id == high(processor))
}

/// The priority of those that measure delays. Where somebody gives turns they are above it: they look at the
/// clock before the turn is another processor's.
fn high_priority() -> u8 {
    HIGH_PRIORITY + u8::from(count() > 1)
}

/// The words for a processor, where there are several.
pub struct Place(pub usize);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if count() > 1 { write!(f, " on processor {}", self.0) } else { Ok(()) }
    }
}

/// How many processors have canaries.
pub fn count() -> usize {
    (kip::get().processors() as usize).min(MOST)
}

impl Canaries {
    /// Creates and starts all. They run when the caller waits.
    pub fn start(length: Length) -> kernel::Result<Self> {
        turns::decide(length);
        AT_ONCE.store(length == Length::AtOnce, Relaxed);
        for processor in 0..count() {
            let pair =
                [(equal(processor), spin as extern "C" fn(u64) -> !), (high(processor), wake)];
            for (index, (id, body)) in pair.into_iter().enumerate() {
                hostile::make_space(id, hostile::UTCB_BITS)?;
                hostile::start(id, &STACKS[2 * processor + index], body, processor as u64);
            }
            schedule::set_priority(equal(processor), hostile::PRIORITY)?;
            schedule::set_priority(high(processor), high_priority())?;
            if count() > 1 {
                schedule::set_processor(equal(processor), processor as u32)?;
                schedule::set_processor(high(processor), processor as u32)?;
            }
        }
        if turns::are_taken() {
            hostile::make_space(TURNER, 12)?;
            hostile::start(TURNER, &STACKS[2 * MOST], give_turns, 0);
            schedule::set_priority(TURNER, HIGH_PRIORITY)?;
        }
        Ok(Self { round_ticks: 0.0, ticks_per_us: 1.0, since: Since::default() })
    }

    /// Begins a measurement with the spinning ones at `priority`.
    pub fn begin(&mut self, priority: u8) {
        for (processor, cage) in CAGES.iter().enumerate().take(count()) {
            let _ = schedule::set_priority(equal(processor), priority);
            for counter in [&cage.turns, &cage.rounds, &cage.late, &cage.woken, &cage.outrun] {
                counter.store(0, Relaxed);
            }
            self.since.used_us[processor] = used_us(equal(processor));
        }
        self.since.urgent_us = Self::urgent_us();
        self.since.ticks = clock::ticks();
        self.since.us = machine::now_us();
        EPOCH.fetch_add(1, Relaxed);
    }

    /// The processor time of those on the first processor who are more urgent than all that is measured, µs.
    fn urgent_us() -> u64 {
        used_us(high(0)) + used_us(TURNER) + used_us(ThreadId::ROOT)
    }

    /// Nobody disturbed them since `begin`: what a round costs.
    pub fn calibrate(&mut self) {
        let spent = clock::ticks() - self.since.ticks;
        let rounds: u64 = CAGES.iter().take(count()).map(|cage| cage.rounds.load(Relaxed)).sum();
        self.round_ticks = spent as f64 / rounds.max(1) as f64;
        self.ticks_per_us = spent as f64 / (machine::now_us() - self.since.us) as f64;
    }

    /// Ends a measurement; what those of `processor` saw.
    pub fn end(&self, processor: usize) -> Seen {
        let cage = &CAGES[processor];
        let now = clock::ticks();
        let turns = cage.turns.load(Relaxed);
        let load = |pair: &[AtomicU64; 2]| [pair[0].load(Relaxed), pair[1].load(Relaxed)];
        let (first, latest) = (load(&cage.first), load(&cage.latest));
        let all = cage.rounds.load(Relaxed);
        let whole = (now - self.since.ticks).max(1) as f64;
        let work = all as f64 * self.round_ticks / whole;
        // On the first one it is of what the more urgent leave.
        let urgent_us = if processor == 0 { Self::urgent_us() - self.since.urgent_us } else { 0 };
        let elapsed_us = machine::now_us() - self.since.us;
        let own_us = elapsed_us.saturating_sub(urgent_us).max(1) as f64;
        let share = if count() > 1 {
            let used_us = used_us(equal(processor)) - self.since.used_us[processor];
            (used_us as f64 / own_us).min(1.0)
        } else if turns > 2 {
            // Whole turns of everybody if there were some; otherwise all of the time.
            let ticks = (latest[0] - first[0]).max(1) as f64;
            (latest[1] - first[1]) as f64 * self.round_ticks / ticks
        } else {
            work
        };
        Seen {
            share,
            work,
            own_us,
            turns,
            late_us: cage.late.load(Relaxed),
            outrun_us: (cage.outrun.load(Relaxed) as f64 * cage.quickest.load(Relaxed) as f64
                / self.ticks_per_us) as u64,
            woken: cage.woken.load(Relaxed),
            harm: cage.harm.swap(0, Relaxed) != 0,
        }
    }
}

/// The processor time that the kernel has charged `id`, µs. With several processors the share is counted so: while the
/// emulator gives the turn to another one, a processor is still that thread's.
pub fn used_us(id: ThreadId) -> u64 {
    kernel::inspect(What::Time, id.0, 0).map_or(0, |record| record[1])
}

/// Where processors take turns, gives the others theirs now and then, whatever runs on this one.
extern "C" fn give_turns(_: u64) -> ! {
    loop {
        ipc::sleep(turns::PERIOD_US);
        turns::give();
    }
}

/// The body of the spinning canary.
extern "C" fn spin(processor: u64) -> ! {
    runtime::utcb::set_exception_handler(ThreadId::ROOT);
    let cage = &CAGES[processor as usize % MOST];
    let (mut epoch, mut rounds, mut last) = (0, 0, clock::ticks());
    let mut turn = Turn::begin();
    loop {
        let now = clock::ticks();
        if EPOCH.load(Relaxed) != epoch {
            epoch = EPOCH.load(Relaxed);
            rounds = 0;
        } else if now - last > GAP {
            note_turn(cage, now, rounds);
        }
        if AT_ONCE.load(Relaxed) {
            cage.quickest.fetch_min(now - last, Relaxed);
            note_overdue(processor as usize % MOST);
        }
        last = now;
        if cage.words.iter().map(|word| word.load(Relaxed)).sum::<u64>() != 3 * WORK as u64 {
            cage.harm.store(1, Relaxed);
        }
        rounds += 1;
        cage.rounds.store(rounds, Relaxed);
        turn.look(now);
    }
}

/// The spinning one of `processor` computes a round, while others may be due to wake.
fn note_overdue(processor: usize) {
    let now_us = machine::now_us();
    for (index, cage) in CAGES.iter().enumerate().take(count()) {
        let due_us = cage.due_us.load(Relaxed);
        if (processor == 0 || processor == index) && due_us != 0 && due_us <= now_us {
            cage.overdue[usize::from(processor != index)].fetch_add(1, Relaxed);
        }
    }
}

fn note_turn(cage: &Cage, now: u64, rounds: u64) {
    let turns = cage.turns.load(Relaxed);
    // The first may be the rest of an earlier turn, from before the measurement.
    let place = if turns < 2 { &cage.first } else { &cage.latest };
    place[0].store(now, Relaxed);
    place[1].store(rounds, Relaxed);
    cage.turns.store(turns + 1, Relaxed);
}

/// The body of the one that sleeps.
extern "C" fn wake(processor: u64) -> ! {
    runtime::utcb::set_exception_handler(ThreadId::ROOT);
    let cage = &CAGES[processor as usize % MOST];
    let mut rng = Rng::new(machine::ticks());
    loop {
        let time = Time::micros(1 + rng.below(6_000));
        // What the kernel understands, not what was wished.
        let due_us = machine::now_us() + time.period_us().unwrap_or(0);
        cage.due_us.store(due_us, Relaxed);
        let _ = ipc::receive(high(processor as usize), time);
        cage.due_us.store(0, Relaxed);
        let [here, first] = [0, 1].map(|by: usize| cage.overdue[by].swap(0, Relaxed));
        cage.outrun.fetch_max(if processor == 0 { here } else { here.min(first) }, Relaxed);
        let late_us = machine::now_us().saturating_sub(due_us);
        cage.late.fetch_max(late_us, Relaxed);
        cage.woken.fetch_add(1, Relaxed);
    }
}
