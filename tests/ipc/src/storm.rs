//! A storm: random messages of every kind between all spaces, while the conductor
//! aborts, halts, restarts and deletes threads and takes memory away at random
//! moments. Nobody may hang afterwards, and the kernel's invariants hold.

use abi::syscall::exregs;
use abi::{Fpage, MapItem, Rights, StringItem, ThreadId, Time};
use runtime::{ipc, kernel};

use crate::forms::{arrived, pattern};
use crate::paths::Random;
use crate::puppet::{Order, Puppet, STEPS};
use crate::stage::{Stage, set_priority, settle};
use crate::verdict::{Complaint, Test, Verdict};
use crate::{ensure, pager};
use root_harness::violations;

/// The tests.
pub const TESTS: &[Test] = &[("nobody_hangs", storm)];

/// Rounds.
const ROUNDS: u64 = 100;
/// Seed of the first.
const SEED: u64 = 0x2002_0013_0005_0003;
/// What the conductor does in a round.
const ACTIONS: u64 = 8;
/// Puppets that are always there, then the spares.
const CAST: [usize; 9] = [0, 1, 4, 5, 8, 9, 12, 13, 14];
/// A window for mappings that nothing else uses.
const WINDOW: Fpage = Fpage::memory(0x4000_0000, 20, Rights::NONE);

/// One round's actors.
struct Cast([Puppet; CAST.len()]);

fn storm(stage: &Stage) -> Verdict {
    runtime::direct_println!("storm: {ROUNDS} rounds from seed {SEED:#x}");
    let mut seeds = Random(SEED);
    for number in 0..ROUNDS {
        let seed = seeds.next();
        let mut random = Random(seed);
        let verdict = round(stage, &mut random).and_then(|()| calm(stage));
        verdict
            .map_err(|why| Complaint::new(format_args!("round {number}, seed {seed:#x}: {why}")))?;
    }
    Ok(())
}

fn round(stage: &Stage, random: &mut Random) -> Verdict {
    let mut cast = Cast(CAST.map(|index| stage.puppet(index)));
    for (actor, index) in cast.0.iter_mut().zip(CAST).skip(6) {
        *actor = spare(stage, random, index)?;
    }
    if random.one_in(2) {
        stage.unmap_memory();
    }
    if random.one_in(3) {
        let page = stage.memory.base() + (random.below(stage.memory.bytes()) & !0xFFFF);
        pager::leave_unanswered(page, page + 0x1_0000);
    }
    for at in 0..CAST.len() {
        begin(stage, random, &cast, at);
    }
    for _ in 0..ACTIONS {
        let _ = ipc::receive(ThreadId::ROOT, Time::micros(1 + random.below(1500)));
        disturb(stage, random, &mut cast)?;
    }
    pager::leave_unanswered(0, 0);
    stage.reset();
    for actor in &cast.0[6..] {
        let _ = kernel::delete(actor.id);
    }
    Ok(())
}

/// A spare in the space of some other puppet, or in its own.
fn spare(stage: &Stage, random: &mut Random, index: usize) -> Result<Puppet, Complaint> {
    let made = match random.below(4) {
        0 => stage.create_spare(index, 0),
        1 => stage.create_spare(index, 4),
        2 => stage.create_spare(index, 8),
        _ => stage.create_spare_space(index),
    };
    made.map_err(|error| {
        Complaint::new(format_args!("creating thread {index} was refused with {error:?}"))
    })
}

fn begin(stage: &Stage, random: &mut Random, cast: &Cast, at: usize) {
    let mut orders = [Order::NONE; STEPS];
    orders.iter_mut().for_each(|order| *order = order_for(stage, random, cast, at));
    set_priority(cast.0[at].id, random.pick(&[50, 90, 90, 120]));
    cast.0[at].start(&orders);
}

fn order_for(stage: &Stage, random: &mut Random, cast: &Cast, me: usize) -> Order {
    let mut name = || random.pick(&cast.0).id;
    let (a, b) = (name(), name());
    let mut order = match random.below(8) {
        0 | 1 => Order::call(a),
        2 => Order::reply_wait(a),
        3 => Order::send(a),
        4 => Order::receive(a),
        5 => Order::new(a, b),
        6 => Order::receive(ThreadId::ANY_LOCAL),
        _ => Order::wait(),
    };
    let times = [Time::NEVER, Time::NEVER, Time::ZERO, Time::micros(400), Time::micros(2500)];
    if random.one_in(2) {
        order = order.within(random.pick(&times), random.pick(&times));
    }
    if random.one_in(3) {
        order = order.transfer_within(random.pick(&times), random.pick(&times));
    }
    if random.one_in(6) {
        order = order.propagate(b);
    }
    order = accept(stage, random, order);
    if random.one_in(2) { contents(stage, random, order, me) } else { order }
}

/// Words and up to three items.
fn contents(stage: &Stage, random: &mut Random, mut order: Order, me: usize) -> Order {
    let limit = random.pick(&[6, 6, 6, 50]);
    let words = random.below(limit) as usize;
    order = pattern(order, random.next() >> 16, words);
    for _ in 0..random.below(4) {
        order = if random.one_in(3) {
            let fpage =
                Fpage::memory(place(stage, random).0, 12 + random.below(6) as u32, Rights::RW);
            // The root space's pages are the pager's: it does not give them away.
            let item = MapItem {
                send_base: random.next() & 0xF_F000,
                fpage,
                grant: (2..6).contains(&me) && random.one_in(2),
            };
            order.item(&item.words())
        } else {
            let (address, len) = place(stage, random);
            order.string(address, len)
        };
    }
    order
}

/// A piece of the test memory.
fn place(stage: &Stage, random: &mut Random) -> (u64, u64) {
    let limit = random.pick(&[10, 5000, 70_000, 3_000_000]);
    let len = random.below(limit);
    let offset = random.below(stage.memory.bytes() - len);
    (stage.memory.base() + offset, len)
}

fn accept(stage: &Stage, random: &mut Random, mut order: Order) -> Order {
    if random.one_in(3) {
        order = order.window(WINDOW);
    }
    let mut words = [0; 6];
    for at in 0..3 {
        let (address, len) = place(stage, random);
        words[at * 2] = StringItem::new(len, 1, random.one_in(5) && at < 2).0 | u64::from(at < 2);
        words[at * 2 + 1] = address;
    }
    if random.one_in(5) { order } else { order.buffers(&words) }
}

/// Something happens to somebody.
fn disturb(stage: &Stage, random: &mut Random, cast: &mut Cast) -> Verdict {
    let at = random.below(CAST.len() as u64) as usize;
    let actor = cast.0[at];
    match random.below(9) {
        0 => drop(actor.abort(exregs::ABORT_SEND)),
        1 => drop(actor.abort(exregs::ABORT_RECEIVE)),
        2 => drop(actor.abort(exregs::ABORT_SEND | exregs::ABORT_RECEIVE)),
        3 => drop(actor.abort(exregs::HALT | exregs::HALT_VALID)),
        4 => drop(actor.abort(exregs::HALT_VALID)),
        5 => begin(stage, random, cast, at),
        6 => stage.unmap_memory(),
        _ if at >= 6 => {
            let _ = kernel::delete(actor.id);
            cast.0[at] = spare(stage, random, CAST[at])?;
            begin(stage, random, cast, at);
        }
        _ => drop(actor.exchange(Default::default())),
    }
    if random.one_in(4) {
        let found = violations();
        ensure!(
            found == 0,
            "the kernel found {found} broken invariants after an action on puppet {}",
            actor.id
        );
    }
    Ok(())
}

/// After a round: the puppets answer as ever, and the kernel is consistent.
fn calm(stage: &Stage) -> Verdict {
    for (a, b) in crate::forms::PAIRS {
        let (a, b) = (stage.puppet(a), stage.puppet(b));
        b.order(Order::receive(a.id));
        settle();
        a.order(pattern(Order::send(b.id), 5, 40));
        settle();
        arrived(&b, 0, a.name(crate::forms::together(a.index, b.index)), 5, 40)?;
    }
    let found = violations();
    ensure!(found == 0, "the kernel found {found} broken invariants after a round");
    Ok(())
}
