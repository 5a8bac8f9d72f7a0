//! The canaries: one spins at the priority of the hostile task and counts its turns, one
//! of higher priority sleeps and measures how late it wakes.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use abi::id::USER_BASE;
use abi::{ThreadId, Time};
use runtime::{clock, ipc, kernel, schedule};

use super::hostile::{self, Stack};
use crate::machine;
use crate::rng::Rng;

/// Canaries' ids; no hostile thread has these numbers.
const EQUAL: ThreadId = ThreadId::global(USER_BASE + 16, 1);
const HIGH: ThreadId = ThreadId::global(USER_BASE + 17, 1);
/// Priority of the one that measures delays.
pub const HIGH_PRIORITY: u8 = 220;
/// A pause of so many ticks (instructions) means that somebody else had a turn.
const GAP: u64 = 200_000;
/// Words that are added up in a round, to be something to do.
const WORK: usize = 64;

static STACKS: [Stack; 2] = [const { hostile::stack() }; 2];
/// What the first one works on; a sum that is not [`sum`] is harm.
static WORDS: [AtomicU64; WORK] = [const { AtomicU64::new(3) }; WORK];

/// Begins a new measurement when it changes.
static EPOCH: AtomicU64 = AtomicU64::new(0);
/// Rounds since the epoch began.
static ROUNDS: AtomicU64 = AtomicU64::new(0);
/// Time stamp and rounds of the beginning of its first whole and its latest turn; turns.
static FIRST: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static LATEST: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static TURNS: AtomicU64 = AtomicU64::new(0);
static HARM: AtomicU64 = AtomicU64::new(0);
/// Longest delay since the epoch began, µs, and wake-ups.
static LATE: AtomicU64 = AtomicU64::new(0);
static WOKEN: AtomicU64 = AtomicU64::new(0);

/// Both canaries and what a round costs.
pub struct Canaries {
    round_ticks: f64,
    began: u64,
}

/// What they saw in one scenario.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Share of the processor that the one of equal priority had, 0 to 1.
    pub share: f64,
    /// Turns that it had.
    pub turns: u64,
    /// Longest delay of the one of higher priority, µs.
    pub late_us: u64,
    /// How often that one woke.
    pub woken: u64,
    /// Whether the memory of one changed.
    pub harm: bool,
}

/// The spinning canary.
pub const fn equal() -> ThreadId {
    EQUAL
}

/// Whether `id` is a canary.
pub fn is_one(id: ThreadId) -> bool {
    id == EQUAL || id == HIGH
}

impl Canaries {
    /// Creates and starts both. They run when the caller waits.
    pub fn start() -> kernel::Result<Self> {
        for (index, (id, body)) in
            [(EQUAL, spin as extern "C" fn(u64) -> !), (HIGH, wake)].into_iter().enumerate()
        {
            hostile::make_space(id, hostile::UTCB_BITS)?;
            hostile::start(id, &STACKS[index], body, index as u64);
        }
        schedule::set_priority(EQUAL, hostile::PRIORITY)?;
        schedule::set_priority(HIGH, HIGH_PRIORITY)?;
        Ok(Self { round_ticks: 0.0, began: 0 })
    }

    /// Begins a measurement with the spinning one at `priority`.
    pub fn begin(&mut self, priority: u8) {
        let _ = schedule::set_priority(EQUAL, priority);
        TURNS.store(0, Relaxed);
        ROUNDS.store(0, Relaxed);
        LATE.store(0, Relaxed);
        WOKEN.store(0, Relaxed);
        self.began = clock::ticks();
        EPOCH.fetch_add(1, Relaxed);
    }

    /// Nobody disturbed them since `begin`: what a round costs.
    pub fn calibrate(&mut self) {
        let spent = clock::ticks() - self.began;
        self.round_ticks = spent as f64 / ROUNDS.load(Relaxed).max(1) as f64;
    }

    /// Ends a measurement.
    pub fn end(&self) -> Seen {
        let now = clock::ticks();
        let turns = TURNS.load(Relaxed);
        let load = |pair: &[AtomicU64; 2]| [pair[0].load(Relaxed), pair[1].load(Relaxed)];
        let (first, latest) = (load(&FIRST), load(&LATEST));
        // Whole turns of everybody if there were some; otherwise all of the time.
        let (ticks, rounds) = if turns > 2 {
            (latest[0] - first[0], latest[1] - first[1])
        } else {
            (now - self.began, ROUNDS.load(Relaxed))
        };
        Seen {
            share: rounds as f64 * self.round_ticks / ticks.max(1) as f64,
            turns,
            late_us: LATE.load(Relaxed),
            woken: WOKEN.load(Relaxed),
            harm: HARM.swap(0, Relaxed) != 0,
        }
    }
}

/// The body of the spinning canary.
extern "C" fn spin(_: u64) -> ! {
    runtime::utcb::set_exception_handler(ThreadId::ROOT);
    let (mut epoch, mut rounds, mut last) = (0, 0, clock::ticks());
    loop {
        let now = clock::ticks();
        if EPOCH.load(Relaxed) != epoch {
            epoch = EPOCH.load(Relaxed);
            rounds = 0;
        } else if now - last > GAP {
            turn(now, rounds);
        }
        last = now;
        if WORDS.iter().map(|word| word.load(Relaxed)).sum::<u64>() != 3 * WORK as u64 {
            HARM.store(1, Relaxed);
        }
        rounds += 1;
        ROUNDS.store(rounds, Relaxed);
    }
}

fn turn(now: u64, rounds: u64) {
    let turns = TURNS.load(Relaxed);
    // The first may be the rest of an earlier turn, from before the measurement.
    let place = if turns < 2 { &FIRST } else { &LATEST };
    place[0].store(now, Relaxed);
    place[1].store(rounds, Relaxed);
    TURNS.store(turns + 1, Relaxed);
}

/// The body of the one that sleeps.
extern "C" fn wake(_: u64) -> ! {
    runtime::utcb::set_exception_handler(ThreadId::ROOT);
    let mut rng = Rng::new(machine::ticks());
    loop {
        let time = Time::micros(1 + rng.below(6_000));
        // What the kernel understands, not what was wished.
        let due_us = machine::now_us() + time.period_us().unwrap_or(0);
        let _ = ipc::receive(HIGH, time);
        let late_us = machine::now_us().saturating_sub(due_us);
        LATE.fetch_max(late_us, Relaxed);
        WOKEN.fetch_add(1, Relaxed);
    }
}
