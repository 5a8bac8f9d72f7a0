//! Turns: where instructions are counted, all processors share the emulator's one thread and its one clock.
//!
//! QEMU's rule (7.2): a turn begins with the first processor and lasts until the next timer is due, with which the
//! first one begins again; before that it ends with PAUSE or HLT, and when somebody writes to a device that arms a
//! timer, which the local timer's registers are. The clock goes on with every instruction, whoever executes it. So
//! whoever never pauses has the machine alone, and all that is measured here is of the emulator's making. What makes
//! it the kernel's again is that turns are *short*: whoever computes or calls in user mode here pauses at least
//! every [`TURN_US`], and somebody more urgent than the hostile pauses every [`PERIOD_US`], for kernel calls are
//! longer. Then N processors are like N that execute one instruction of N each.
//!
//! What is owed follows. A wake-up is due at a time t. On one processor the timer interrupts at t, or [`GAP_US`] behind
//! the interrupt before, and a stretch follows ([`STRETCH_US`]). With others there are ends of turns in that stretch,
//! at each of which the N - 1 others have theirs:
//! - six are writes to the local timer, two each time: it ticks again; it interrupts for the next who wakes, and when
//!   whoever gives way to those more urgent comes back;
//! - whoever is called back from another processor is waited for, which is two; a tick does that twice at most to each,
//!   at a slice's end and for somebody more urgent.
//!
//! So the first processor owes [`first_us`]. Another one is told when the first has come so far, or behind the thread that
//! gives turns, and a round of them, if that goes before (0141). It has its turn when the first one pauses: at the
//! latest when that thread has slept ([`PERIOD_US`]), and woken as late as the first processor owes. Its round is not
//! cut short, for no timer interrupts within [`GAP_US`] of the one that woke it; each processor takes one turn in it.
//! So another one owes [`elsewhere_us`].
//!
//! Both are owed to those who are among the first eight whom the kernel sees when it looks ahead (0132), the most urgent
//! first: canaries, the one that gives turns, the judge. With more than [`MOST_AHEAD`] processors ticks wake some.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use runtime::{clock, kip};

use super::Length;

/// Longest turn of another processor than the first, µs, an instruction being a nanosecond: [`LONG_ENOUGH`], and up to
/// 1,500 before that in which the processor takes somebody in.
pub const TURN_US: u64 = 4;
/// The turn of whoever only computes, ticks: all have the same, or who had more would have more of the machine.
const LONG_ENOUGH: u64 = 2_300;
/// What somebody gives back at once at most, ticks: by then the thread that gives turns has come.
const LONGEST: u64 = 1_000 * PERIOD_US;
/// How long the one that gives turns sleeps.
pub const PERIOD_US: u64 = 250;
/// Least time between two interrupts of the kernel's timer.
const GAP_US: u64 = 100;
/// Time between two of its ticks.
const TICK_US: u64 = 1_000;
/// The longest stretch with interrupts off, the switch, and the sleeper's own look at the clock.
const STRETCH_US: u64 = 52;
/// A grain of the wakeup lists.
const GRAIN_US: u64 = 1_024;
/// What the kernel promises a sleeper whom a tick wakes: two grains, and such a stretch.
const BY_TICKS_US: u64 = 2 * GRAIN_US + STRETCH_US;
/// Processors with a canary each, of all of whom the kernel looks ahead: two others come before.
const MOST_AHEAD: u64 = 6;

/// Whether processors take turns.
static ARE_TAKEN: AtomicBool = AtomicBool::new(false);

/// They do, if there are several, but not where they run at once: there PAUSE gives nobody anything, and each takes
/// the one lock of the emulator, for which its timers wait.
pub fn decide(length: Length) {
    ARE_TAKEN.store(kip::get().processors() > 1 && length != Length::AtOnce, Relaxed);
}

/// Whether they do.
#[inline(always)]
pub fn are_taken() -> bool {
    ARE_TAKEN.load(Relaxed)
}

/// Gives the other processors a turn, if they take turns.
#[inline(always)]
pub fn give() {
    if are_taken() {
        spin_loop();
    }
}

/// The turn of somebody who only computes.
pub struct Turn {
    since: u64,
}

impl Turn {
    /// It begins.
    pub fn begin() -> Self {
        Self { since: clock::ticks() }
    }

    /// It is over if it has been long enough at `now`.
    #[inline(always)]
    pub fn look(&mut self, now: u64) {
        if now - self.since >= LONG_ENOUGH {
            give();
            self.since = clock::ticks();
        }
    }
}

/// What somebody has had of the machine who makes long calls.
pub struct Account {
    since: u64,
}

impl Account {
    /// Nothing yet.
    pub fn open() -> Self {
        Self { since: clock::ticks() }
    }

    /// Gives each other processor about as long as the caller has had since it was here last, or as the longest turn.
    pub fn settle(&mut self) {
        if !are_taken() {
            return;
        }
        let others = u64::from(kip::get().processors()) - 1;
        let owed = (clock::ticks() - self.since).min(LONGEST) * others;
        let mut given = 0;
        for _ in 0..=owed / others / LONG_ENOUGH {
            let before = clock::ticks();
            spin_loop();
            given += clock::ticks() - before;
            if given >= owed {
                break;
            }
        }
        self.since = clock::ticks();
    }
}

/// How late somebody most urgent may wake on the first of `processors` that take turns.
pub const fn first_us(processors: u64) -> u64 {
    if processors > MOST_AHEAD {
        return BY_TICKS_US + ends(processors);
    }
    GAP_US + STRETCH_US + ends(processors)
}

/// The same on another one.
pub const fn elsewhere_us(processors: u64) -> u64 {
    first_us(processors) + PERIOD_US + first_us(processors) + 2 * processors * TURN_US
}

/// What less urgent threads may compute while somebody on `processor` is to wake, where processors run at once: eight
/// times what is owed by ticks. The emulator's timers are a thread of the host's, too, which waits while its
/// processors compute.
pub const fn at_once_us(processor: usize) -> u64 {
    8 * (BY_TICKS_US + if processor == 0 { 0 } else { GRAIN_US })
}

/// How much later somebody may wake while the judge ends a task whose ceiling of priority is below: who has become ready
/// in a turn that the judge leaves to others waits for the next (0052), and on another processor so may the one
/// that gives turns before.
pub const fn at_an_end_us(processor: usize) -> u64 {
    if processor == 0 { TICK_US } else { 2 * TICK_US }
}

/// What ends of the first one's turn take on the way of a wake-up.
const fn ends(processors: u64) -> u64 {
    let others = processors - 1;
    if others == 0 { 0 } else { (6 + 4 * others) * others * TURN_US }
}
