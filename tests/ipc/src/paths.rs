//! The fast path against the complete path: the same random states and orders
//! through both, and everything visible compared.
//!
//! A case gives every puppet a priority and up to four random orders and lets them
//! run until all wait. It runs three times: as it is, with every Ipc forced onto the
//! complete path, and with some forced, at random. A timer tick may fall into one of the two runs and change who
//! runs next, so a difference counts only if it shows again and again.

use abi::syscall::{COMPLETE_PATH, USER_FLAGS, USER_FLAGS_MASK};
use abi::{MsgTag, ThreadId, Time, Timeouts};
use runtime::sync::Lock;

use crate::ensure;
use crate::puppet::{self, Order, Outcome, Puppet, STEPS, Vector};
use crate::stage::{ROOTS, Stage, set_priority, settle};
use crate::verdict::{Complaint, Test, Verdict};

/// The tests.
pub const TESTS: &[Test] =
    &[("send_only_with_a_queued_sender", queued_sender), ("random_states", random)];

/// Random cases.
const CASES: u64 = 4000;
/// Seed of the first case.
const SEED: u64 = 0x1995_0005_1993_0005;
/// A difference must show so often in a row.
const TRIES: u32 = 5;
/// The puppets that play: two in each space.
const CAST: [usize; 6] = [0, 1, 4, 5, 8, 9];
/// Events compared at most.
const EVENTS: usize = CAST.len() * STEPS;

/// xorshift64 (Marsaglia 2003).
pub struct Random(pub u64);

impl Random {
    /// The next word.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }

    /// One of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// What one run of a case showed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Picture {
    done: [usize; CAST.len()],
    events: [(usize, usize); EVENTS],
    count: usize,
    /// Hash of each outcome's visible words.
    outcomes: [[u64; STEPS]; CAST.len()],
}

/// A case: what everybody does.
struct Case {
    priorities: [u8; CAST.len()],
    lengths: [usize; CAST.len()],
    orders: [[Order; STEPS]; CAST.len()],
    order_of_start: [usize; CAST.len()],
}

/// Somebody other than `me`: most often `partner`.
fn random_name(random: &mut Random, stage: &Stage, me: usize, partner: usize) -> ThreadId {
    let other = loop {
        let index = if random.one_in(4) { random.pick(&CAST) } else { partner };
        if index != me {
            break stage.puppet(index);
        }
    };
    other.name(crate::forms::together(me, other.index) && random.one_in(6))
}

fn random_order(
    random: &mut Random,
    stage: &Stage,
    me: usize,
    partner: usize,
    first: bool,
    server: bool,
) -> Order {
    let name = random_name(random, stage, me, partner);
    let usual = !random.one_in(3);
    let mut order = match (random.below(8), first, server) {
        (0..4, true, true) if usual => Order::wait(),
        (_, true, true) if usual => Order::receive(name),
        (_, false, true) if usual => Order::reply_wait(name),
        (_, _, false) if usual => Order::call(name),
        (0, ..) => Order::send(name),
        (1, ..) => Order::wait(),
        (2, ..) => Order::receive(name),
        (3, ..) => Order::new(name, ThreadId::ANY_LOCAL),
        (4, ..) => Order::call(name),
        (5, ..) => Order::reply_wait(name),
        _ => Order::new(name, random_name(random, stage, me, partner)),
    };
    if random.one_in(8) {
        let times = [Time::NEVER, Time::NEVER, Time::ZERO, Time::micros(30_000_000)];
        order.timeouts = Timeouts::new(random.pick(&times), random.pick(&times[..3])).0;
    }
    if random.one_in(32) && order.link == 0 {
        // An id that nobody has.
        let stranger = ThreadId::global(order.to.number().max(70), 9);
        if random.one_in(2) { order.from = stranger } else { order.to = stranger }
    }
    fill(random, me, &mut order);
    order
}

/// Words, flags, vector registers and garbage.
fn fill(random: &mut Random, me: usize, order: &mut Order) {
    order.mr.iter_mut().for_each(|word| *word = random.next());
    let words = if random.one_in(3) { random.below(64) } else { random.below(9) } as u32;
    order.mr[0] = MsgTag::new(random.next() >> 16, words, 0).0;
    if random.one_in(16) {
        order.mr[0] |= random.next() & (MsgTag::XCPU | MsgTag::REDIRECTED | MsgTag::ERROR);
    }
    order.garbage = core::array::from_fn(|_| random.next());
    // The root task's threads have said that they use none.
    if !ROOTS.contains(&me) {
        order.vector = random.pick(&[Vector::Nothing, Vector::Kept, Vector::Dead, Vector::Dead]);
    }
    // The direction flag too.
    order.flags = USER_FLAGS | random.next() & (USER_FLAGS_MASK | 0x400);
}

/// The case being played: too large for the stack.
static CASE: Lock<Case> = Lock::new(Case {
    priorities: [0; CAST.len()],
    lengths: [0; CAST.len()],
    orders: [[Order::NONE; STEPS]; CAST.len()],
    order_of_start: [0; CAST.len()],
});

impl Case {
    /// Makes this the case of `seed`.
    fn make(&mut self, seed: u64, stage: &Stage) {
        let mut random = Random(seed);
        self.priorities = core::array::from_fn(|_| random.pick(&[50, 90, 90, 120]));
        self.lengths = core::array::from_fn(|_| {
            if random.one_in(4) { random.below(STEPS as u64 + 1) as usize } else { STEPS }
        });
        self.order_of_start = core::array::from_fn(|at| at);
        (1..CAST.len())
            .for_each(|at| self.order_of_start.swap(at, random.below(at as u64 + 1) as usize));
        // The first half serves the second half, pair by pair.
        for place in 0..CAST.len() {
            let partner = CAST[self.order_of_start[(place + CAST.len() / 2) % CAST.len()]];
            let (at, server) = (self.order_of_start[place], place < CAST.len() / 2);
            for (step, order) in self.orders[at].iter_mut().enumerate() {
                *order = random_order(&mut random, stage, CAST[at], partner, step == 0, server);
            }
        }
        if random.one_in(3) {
            (1..CAST.len())
                .for_each(|at| self.order_of_start.swap(at, random.below(at as u64 + 1) as usize));
        }
    }

    /// Plays it once.
    fn play(&self, stage: &Stage, forced: impl Fn(usize, usize) -> bool) -> Picture {
        for index in CAST {
            stage.puppet(index).stop();
        }
        settle();
        puppet::clear_log();
        for at in self.order_of_start {
            let actor = stage.puppet(CAST[at]);
            set_priority(actor.id, self.priorities[at]);
            let mut orders = self.orders[at];
            for (step, order) in orders.iter_mut().enumerate() {
                order.timeouts |= if forced(at, step) { COMPLETE_PATH } else { 0 };
            }
            actor.start(&orders[..self.lengths[at]]);
        }
        settle();
        self.picture(stage)
    }

    fn picture(&self, stage: &Stage) -> Picture {
        let actors = CAST.map(|index| stage.puppet(index));
        let count = puppet::log_len();
        Picture {
            done: actors.map(|actor| actor.done()),
            events: core::array::from_fn(|at| if at < count { puppet::event(at) } else { (0, 0) }),
            count,
            outcomes: core::array::from_fn(|at| {
                core::array::from_fn(|step| visible(&actors[at], &self.orders[at][step], step))
            }),
        }
    }
}

/// A hash of what an outcome shows and the interface defines (X.2 4.1, 4.6, 5.1).
fn visible(actor: &Puppet, order: &Order, step: usize) -> u64 {
    if actor.done() <= step {
        return 0;
    }
    let outcome: Outcome = actor.outcome(step);
    let failed = outcome.tag().is_error() && outcome.error != 0;
    let received = !order.from.is_nil() && !failed;
    let mut hash = mix(1, outcome.mr[0]);
    hash = mix(hash, outcome.rdi ^ actor.local.0);
    hash = mix(hash, outcome.sp_change);
    hash = mix(hash, if order.link == 0 { outcome.flags } else { outcome.flags & 0x500 });
    if failed {
        hash = mix(hash, outcome.error);
    }
    if received {
        hash = mix(hash, outcome.from.0);
        for word in &outcome.mr[1..=outcome.tag().untyped()] {
            hash = mix(hash, *word);
        }
    }
    hash
}

fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

fn random(stage: &Stage) -> Verdict {
    runtime::direct_println!("paths: {CASES} cases from seed {SEED:#x}");
    let mut seeds = Random(SEED);
    let (mut steps, mut saved) = (0, 0);
    let mut case = CASE.lock();
    for number in 0..CASES {
        let seed = seeds.next();
        case.make(seed, stage);
        let done = compare(stage, &case, seeds.next() >> 20)
            .map_err(|(fast, complete)| describe(number, seed, &fast, &complete))?;
        steps += done.0;
        saved += done.1;
        let (_, faults) = puppet::vector_faults();
        ensure!(
            faults == 0,
            "case {number}, seed {seed:#x}: vector registers were wrong after {faults} Ipcs"
        );
        if number % 512 == 0 {
            let violations = root_harness::violations();
            ensure!(
                violations == 0,
                "case {number}, seed {seed:#x}: {violations} broken invariants"
            );
        }
    }
    runtime::direct_println!(
        "paths: {steps} Ipcs completed in either run, {saved} of them on the fast path"
    );
    let (looks, _) = puppet::vector_faults();
    runtime::direct_println!("paths: vector registers were right after {looks} Ipcs");
    ensure!(looks > CASES, "vector registers were looked at {looks} times: too few");
    ensure!(
        steps > CASES && saved > CASES / if puppet::have_vector_path() { 4 } else { 8 },
        "only {steps} Ipcs completed, {saved} of them on the fast path: the cases test too little"
    );
    Ok(())
}

/// Entries into the kernel's complete paths so far.
fn kernel_entries() -> u64 {
    runtime::kernel::inspect(abi::inspect::What::Kernel, 0, 0).map_or(0, |record| record[4])
}

/// Completed steps and how many entries into the complete path the fast path saved;
/// or the two pictures that differ. `mask` says whose Ipcs are forced in the mixed run.
fn compare(stage: &Stage, case: &Case, mask: u64) -> Result<(u64, u64), (Picture, Picture)> {
    let mut last = None;
    for _ in 0..TRIES {
        let start = kernel_entries();
        let fast = case.play(stage, |_, _| false);
        let middle = kernel_entries();
        let complete = case.play(stage, |_, _| true);
        let end = kernel_entries();
        let mixed = case.play(stage, |at, step| mask >> (at * STEPS + step) & 1 != 0);
        if fast == complete && mixed == complete {
            return Ok((fast.count as u64, (end - middle).saturating_sub(middle - start)));
        }
        last = Some((if fast == complete { mixed } else { fast }, complete));
    }
    last.map_or(Ok((0, 0)), Err)
}

fn describe(number: u64, seed: u64, fast: &Picture, complete: &Picture) -> Complaint {
    for (at, index) in CAST.into_iter().enumerate() {
        for step in 0..STEPS {
            if fast.outcomes[at][step] != complete.outcomes[at][step] {
                return Complaint::new(format_args!(
                    "case {number}, seed {seed:#x}: puppet {} saw something else in step {step} (it completed {} steps on the \
                    fast path, {} on the complete path)",
                    index, fast.done[at], complete.done[at]
                ));
            }
        }
    }
    let at = (0..EVENTS).find(|at| fast.events[*at] != complete.events[*at]).unwrap_or(0);
    Complaint::new(format_args!(
        "case {number}, seed {seed:#x}: event {at} is step {:?} of a puppet on the fast path, {:?} on the complete path",
        fast.events[at], complete.events[at]
    ))
}

/// A thread that others wait to send to sends, without a receive phase, to one that
/// waits: it must go on at once.
fn queued_sender(stage: &Stage) -> Verdict {
    for (a, b) in crate::forms::PAIRS {
        for path in crate::forms::PATHS {
            stage.reset();
            let (a, b, c) = (stage.puppet(a), stage.puppet(b), stage.puppet(10));
            b.order(Order::receive(a.id));
            settle();
            c.order(Order::send(a.id));
            settle();
            a.order(path(Order::send(b.id)));
            settle();
            ensure!(a.done() == 1, "a thread with a queued sender did not return from its send");
            ensure!(c.done() == 0, "a send without a receive phase took a message");
        }
    }
    Ok(())
}
