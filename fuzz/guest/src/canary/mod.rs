//! Canaries: tasks that harm nobody, do work, and notice when something of theirs
//! changes: memory, general and vector registers, names, messages, time.

mod lone;
mod pair;

use core::sync::atomic::{AtomicU64, Ordering};

use abi::id::USER_BASE;
use abi::layout::{INITIAL_KIP, INITIAL_UTCB_AREA};
use abi::{Fpage, Rights, ThreadId, Time};
use runtime::space::Fault;
use runtime::{Msg, ipc, kernel, layout, schedule};

use crate::{machine, report};

/// How many there are.
pub const CANARIES: usize = 4;
const STACK_WORDS: usize = 1024;
const MEMORY_WORDS: usize = 1536;
/// No thread that a hostile task makes has these numbers.
const FIRST: u32 = USER_BASE + 16;

/// What a canary reports, and its memory.
#[repr(C, align(4096))]
struct Cage {
    /// Rounds of work.
    progress: AtomicU64,
    /// What was wrong; 0 nothing.
    harm: AtomicU64,
    /// Two words about it.
    details: [AtomicU64; 2],
    /// Longest delay of a wake-up, µs.
    late_us: AtomicU64,
    /// Id of the partner.
    partner: AtomicU64,
    stack: [AtomicU64; STACK_WORDS],
    memory: [AtomicU64; MEMORY_WORDS],
}

static CAGES: [Cage; CANARIES] = [const {
    Cage {
        progress: AtomicU64::new(0),
        harm: AtomicU64::new(0),
        details: [const { AtomicU64::new(0) }; 2],
        late_us: AtomicU64::new(0),
        partner: AtomicU64::new(0),
        stack: [const { AtomicU64::new(0) }; STACK_WORDS],
        memory: [const { AtomicU64::new(0) }; MEMORY_WORDS],
    }
}; CANARIES];

/// When the judge has last kept the processor for long, µs.
pub static JUDGING: AtomicU64 = AtomicU64::new(0);
/// Since when it keeps it without a pause, µs; 0: it waits, or other processors have their turn.
static SINCE: AtomicU64 = AtomicU64::new(0);
/// What the judge does for so long without a pause, µs, excuses a canary that wakes late.
const LONG_US: u64 = 300;

/// The judge works, without a pause since `since_us`. A canary of another processor may look at the clock before the
/// judge is at its work's end.
pub fn judge_works(since_us: u64) {
    SINCE.store(since_us, Ordering::Relaxed);
}

/// The judge does not, from `now_us` on; `since_us` is what it said before.
pub fn judge_pauses(since_us: u64, now_us: u64) {
    if now_us - since_us >= LONG_US {
        JUDGING.store(now_us, Ordering::SeqCst);
    }
    SINCE.store(0, Ordering::SeqCst);
}

/// Whether the judge has kept the processor for long after `from_us`, at `now_us`.
fn has_judged(from_us: u64, now_us: u64) -> bool {
    // In this order: what it is about to end is either still under way, or has been noted.
    let since_us = SINCE.load(Ordering::SeqCst);
    let works = since_us != 0 && now_us.saturating_sub(since_us) >= LONG_US;
    works || JUDGING.load(Ordering::SeqCst) >= from_us
}

impl Cage {
    /// Reports harm, the first only.
    fn harm(&self, what: Harm, details: [u64; 2]) {
        if self.harm.load(Ordering::Relaxed) == 0 {
            self.details[0].store(details[0], Ordering::Relaxed);
            self.details[1].store(details[1], Ordering::Relaxed);
            self.harm.store(what as u64, Ordering::Relaxed);
        }
    }

    fn got_on(&self) {
        self.progress.store(self.progress.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// What can happen to a canary.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Harm {
    VectorRegister = 1,
    ControlRegister = 2,
    GeneralRegister = 3,
    Memory = 4,
    Name = 5,
    Clock = 6,
    Message = 7,
    Forged = 8,
    StringData = 9,
    Beyond = 10,
    Refused = 11,
}

const HARMS: [&str; 11] = [
    "a vector register changed",
    "a floating-point control register changed",
    "a general register changed",
    "its memory changed",
    "its name changed",
    "the clock went backwards",
    "a message came altered",
    "a message came in its partner's name that the partner did not send",
    "a string came altered",
    "a string was written outside of its buffer",
    "its partner could not be reached",
];

/// A canary as the judge sees it.
struct Canary {
    name: &'static str,
    priority: u8,
    /// Longest time without progress, µs.
    patience_us: u64,
    /// Longest delay of a wake-up, µs; 0 none is promised.
    late_us: u64,
    body: extern "C" fn(u64) -> !,
    seen: u64,
    seen_us: u64,
}

/// All canaries.
pub struct Canaries([Canary; CANARIES]);

impl Canaries {
    /// None lives yet; times are stretched by `slack`.
    #[must_use]
    pub const fn new(slack: u64) -> Self {
        let base = Canary {
            name: "of high priority",
            priority: 220,
            patience_us: 60_000 * slack,
            late_us: 4_000 * slack,
            body: lone::live,
            seen: 0,
            seen_us: 0,
        };
        Self([
            Canary { ..base },
            Canary {
                name: "of equal priority",
                priority: crate::tasks::PRIORITY,
                patience_us: 1_000_000 * slack,
                late_us: 0,
                ..base
            },
            Canary {
                name: "that serves",
                priority: 125,
                patience_us: 600_000 * slack,
                late_us: 0,
                body: pair::serve,
                ..base
            },
            Canary {
                name: "that calls",
                priority: 125,
                patience_us: 600_000 * slack,
                late_us: 0,
                body: pair::call,
                ..base
            },
        ])
    }

    /// Creates and starts all; their pages come with their faults.
    pub fn start(&mut self) -> kernel::Result<()> {
        CAGES[2].partner.store(id(3).0, Ordering::Relaxed);
        CAGES[3].partner.store(id(2).0, Ordering::Relaxed);
        for (index, canary) in self.0.iter_mut().enumerate() {
            let id = id(index);
            kernel::create(id, id, ThreadId::ROOT, !0)?;
            let kip = Fpage::memory(INITIAL_KIP, 12, Rights::NONE);
            let utcbs = Fpage::memory(INITIAL_UTCB_AREA, 12, Rights::NONE);
            kernel::configure_space(id, kip, utcbs)?;
            kernel::set_pager(id, id, ThreadId::ROOT, INITIAL_UTCB_AREA)?;
            let sp = CAGES[index].stack.as_ptr() as u64 + (STACK_WORDS as u64 - 8) * 8;
            machine::write(sp, index as u64);
            machine::write(sp + 8, canary.body as usize as u64);
            let start = Msg::new(0).word(machine::start_address()).word(sp);
            let _ = ipc::send_within(id, &start, Time::micros(50_000));
            let _ = schedule::set_priority(id, canary.priority);
            crate::tasks::place(id, index + 1);
            canary.seen_us = machine::now_us();
        }
        Ok(())
    }

    /// Reports harm and standstill.
    pub fn check(&mut self) {
        let now_us = machine::now_us();
        for (canary, cage) in self.0.iter_mut().zip(&CAGES) {
            let harm = cage.harm.swap(0, Ordering::Relaxed);
            if harm != 0 {
                let what = HARMS.get(harm as usize - 1).copied().unwrap_or("its report changed");
                let [one, two] =
                    [0, 1].map(|word: usize| cage.details[word].load(Ordering::Relaxed));
                report::violation(format_args!(
                    "the canary {}: {what} ({one:#x}, {two:#x})",
                    canary.name
                ));
            }
            let progress = cage.progress.load(Ordering::Relaxed);
            if progress != canary.seen {
                (canary.seen, canary.seen_us) = (progress, now_us);
            } else if now_us - canary.seen_us > canary.patience_us {
                report::violation(format_args!(
                    "the canary {} has not got on for {} us",
                    canary.name,
                    now_us - canary.seen_us
                ));
            }
            let late_us = cage.late_us.load(Ordering::Relaxed);
            if canary.late_us != 0 && late_us > canary.late_us {
                report::violation(format_args!(
                    "the canary {} woke {late_us} us late: it should have at {} us; the judge was last busy at {} us",
                    canary.name,
                    cage.details[0].load(Ordering::Relaxed),
                    cage.details[1].load(Ordering::Relaxed)
                ));
            }
        }
    }

    /// Rounds of all, and the longest delay of a wake-up in µs.
    #[must_use]
    pub fn figures(&self) -> ([u64; CANARIES], u64) {
        let rounds = [0, 1, 2, 3].map(|index: usize| CAGES[index].progress.load(Ordering::Relaxed));
        (rounds, CAGES[0].late_us.load(Ordering::Relaxed))
    }
}

/// The id of canary `index`.
#[must_use]
pub const fn id(index: usize) -> ThreadId {
    ThreadId::global(FIRST + index as u32, 1)
}

/// Which canary `id` is.
#[must_use]
pub fn index_of(wanted: ThreadId) -> Option<usize> {
    (0..CANARIES).find(|index| id(*index) == wanted)
}

/// The answer to a canary's fault.
#[must_use]
pub fn page_for(index: usize, fault: &Fault) -> Option<Msg> {
    let (low, high) = layout::image();
    let cage = core::ptr::from_ref(&CAGES[index]) as u64;
    let own = (cage..cage + size_of::<Cage>() as u64).contains(&fault.address);
    let rights = if own { Rights::RW } else { Rights::RX };
    let allowed = own || !fault.access.contains(Rights::W);
    ((low..high).contains(&fault.address) && allowed).then(|| fault.same_page(rights))
}
