//! The fast path's one compare (`arch/x86_64/entry/ipc.S`, `thread/rendezvous.rs`) accepts
//! exactly what the rules allow, whatever a sender passes as `to`.

use std::collections::BTreeMap;

use crate::common::fastpath::{Verdict, compare};
use crate::common::{Machine, Random};
use abi::ThreadId;
use abi::id::{SYSTEM_BASE, THREAD_BITS, USER_BASE};
use kernel::control::lifecycle;
use kernel::ipc::wait::waits;
use kernel::mem::RootWord;
use kernel::thread::rendezvous::{Busy, Waits, busy_word, set_busy, set_closed, set_open};
use kernel::thread::{own, set_current};

const BUSY: [Busy; 6] =
    [Busy::Ready, Busy::Polling, Busy::Waiting, Busy::Transfer, Busy::Inactive, Busy::Halted];
const ROUNDS: usize = 300_000;

/// Threads by number, each with its id and what it waits for.
struct Threads {
    all: BTreeMap<u32, (ThreadId, Waits)>,
    user: Vec<ThreadId>,
}

impl Threads {
    /// The kernel's own, and `count` others in random states.
    fn new(random: &mut Random, count: usize) -> Self {
        let mut user: Vec<ThreadId> = Vec::new();
        while user.len() < count {
            // Near each other and at the ends of the range as well.
            let span = [4, 64, 1 << THREAD_BITS][random.below(3) as usize];
            let number = USER_BASE + random.below(span) as u32;
            if number >> THREAD_BITS == 0 && user.iter().all(|id| id.number() != number) {
                let version = [random.next() as u32, 1, 2, 65][random.below(4) as usize];
                user.push(ThreadId::global(
                    number,
                    if version & 63 == 0 { version | 1 } else { version },
                ));
            }
        }
        let mut all: BTreeMap<u32, (ThreadId, Waits)> = (0..=SYSTEM_BASE)
            .map(|line| {
                (
                    line,
                    (
                        ThreadId::irq(line),
                        Waits::Busy([Busy::Halted, Busy::Polling][random.below(2) as usize]),
                    ),
                )
            })
            .collect();
        for id in &user {
            let waits = match random.below(4) {
                0 => Waits::Open,
                // Nobody waits for an id that is not current.
                1 | 2 => Waits::Closed(user[random.below(count as u64) as usize]),
                _ => Waits::Busy(BUSY[random.below(6) as usize]),
            };
            all.insert(id.number(), (*id, waits));
        }
        Self { all, user }
    }

    /// The word that the fast path finds for `to`: that of the tcb that the masked
    /// number leads to, or of the null page.
    fn word(&self, to: ThreadId) -> u64 {
        let number = to.number() & ((1 << THREAD_BITS) - 1);
        self.all.get(&number).map_or(0, |(id, waits)| word(*id, *waits))
    }

    /// What the rules say.
    fn legal(&self, to: ThreadId, own: ThreadId) -> Verdict {
        match self.all.values().find(|(id, _)| *id == to) {
            Some((_, Waits::Open)) => Verdict::Open,
            Some((_, Waits::Closed(from))) if *from == own => Verdict::ForUs,
            _ => Verdict::Complete,
        }
    }
}

/// The rendezvous word by its definition: own id xor what is waited for.
fn word(id: ThreadId, waits: Waits) -> u64 {
    match waits {
        Waits::Open => id.0,
        Waits::Closed(from) => id.0 ^ from.0,
        Waits::Busy(busy) => busy_word(id, busy),
        Waits::Nonsense => id.0 ^ u64::from(SYSTEM_BASE - 1) << 32,
    }
}

/// A `to` to try: a current id, a damaged one, or one made to fool the compare.
fn any_to(random: &mut Random, threads: &Threads, own: ThreadId) -> ThreadId {
    let mut one = || threads.user[random.below(threads.user.len() as u64) as usize];
    let (target, other) = (one(), one());
    let word = threads.word(target);
    ThreadId(match random.below(9) {
        0 => random.next(),
        1 => target.0 ^ 1 << random.below(64),
        2 => target.0 ^ 1 << (32 + THREAD_BITS) + random.below(15) as u32,
        3 => word,
        4 => word ^ own.0,
        5 => word ^ other.0,
        6 => [0, !0, !63, random.below(SYSTEM_BASE.into()) << 32 | 1][random.below(4) as usize],
        _ => target.0,
    })
}

#[test]
fn the_compare_accepts_exactly_what_is_legal() {
    let mut random = Random::seeded(21);
    let mut accepted = [0_u32; 2];
    for round in 0..ROUNDS / 100 {
        let threads = Threads::new(&mut random, 2 + round % 30);
        for _ in 0..100 {
            let own = threads.user[random.below(threads.user.len() as u64) as usize];
            let to = any_to(&mut random, &threads, own);
            // The sender runs, so it waits for nobody.
            let mut now = threads.all.clone();
            now.insert(own.number(), (own, Waits::Busy(Busy::Ready)));
            let now = Threads { all: now, user: threads.user.clone() };
            let (got, legal) = (compare(to, now.word(to), own), now.legal(to, own));
            assert_eq!(got, legal, "{own} to {:#x}, word {:#x}", to.0, now.word(to));
            match got {
                Verdict::Open => accepted[0] += 1,
                Verdict::ForUs => accepted[1] += 1,
                Verdict::Complete => {}
            }
        }
    }
    assert!(
        accepted.iter().all(|count| *count > ROUNDS as u32 / 100),
        "hardly anything was accepted: {accepted:?}"
    );
}

#[test]
fn a_wait_for_a_dead_id_would_be_entered_by_a_wrong_one() {
    // Why nobody may stay in a closed wait for an id that is not current (decision 0012):
    // the sender has the dead one's number and passes an id that nobody has.
    let (receiver, dead, own) =
        (ThreadId::global(60, 1), ThreadId::global(70, 1), ThreadId::global(70, 2));
    let word = word(receiver, Waits::Closed(dead));
    let to = ThreadId(word ^ own.0);
    assert_ne!(to, receiver);
    assert_eq!((to.number(), compare(to, word, own)), (receiver.number(), Verdict::ForUs));
}

#[test]
fn a_word_says_what_was_set() {
    let machine = Machine::new(1, 64, false);
    set_current(own::make_idle(RootWord::default()));
    let mut random = Random::seeded(22);
    for index in 0..20 {
        let version = random.next() as u32 | 1;
        let id = ThreadId::global(USER_BASE + index * 6_000, version);
        let thread = lifecycle::create(id, machine.spaces[1], id).expect("quota suffices");
        assert_eq!(waits(thread), Waits::Busy(Busy::Inactive));
        for busy in BUSY {
            set_busy(thread, busy);
            assert_eq!(waits(thread), Waits::Busy(busy));
            assert_eq!(thread.is_ready(), busy == Busy::Ready);
        }
        set_open(thread);
        assert_eq!(waits(thread), Waits::Open);
        for _ in 0..100 {
            let partner = ThreadId::global(
                USER_BASE + random.below(100_000) as u32,
                random.next() as u32 | 1,
            );
            set_closed(thread, partner);
            assert_eq!(waits(thread), Waits::Closed(partner));
        }
    }
}
