//! The queues of the scheduler and of IPC against simple models: ready queue with
//! lazy removal, wakeup lists, send queues.

use std::collections::VecDeque;

use crate::common::{Machine, Random};
use abi::ThreadId;
use abi::id::USER_BASE;
use kernel::ipc::queue;
use kernel::mem::frames;
use kernel::sched::ready::ReadyQueue;
use kernel::sched::wakeup::{GRAIN_US, NEAR_US, WakeupLists};
use kernel::thread::rendezvous::{Busy, set_busy};
use kernel::thread::{TcbRef, install};

const THREADS: usize = 40;
const ROUNDS: usize = 100_000;

/// Tcbs without spaces: queues need no more.
fn tcbs() -> (Machine, Vec<TcbRef>) {
    let machine = Machine::new(0, 0, false);
    let make = |index: usize| {
        let number = USER_BASE + index as u32;
        let (stack, top) =
            (frames::take().expect("a frame is free"), frames::take().expect("a frame is free"));
        let thread = install(ThreadId::global(number, 1), stack, top).expect("the number is free");
        thread.id.set(ThreadId::global(number, 1));
        thread.open_from.set(ThreadId::ANY);
        set_busy(thread, Busy::Ready);
        thread
    };
    let threads = (0..THREADS).map(make).collect();
    (machine, threads)
}

/// Rings by priority, first come first.
struct ReadyModel(Vec<VecDeque<usize>>);

impl ReadyModel {
    fn contains(&self, who: usize) -> bool {
        self.0.iter().any(|ring| ring.contains(&who))
    }

    fn remove(&mut self, who: usize) {
        self.0.iter_mut().for_each(|ring| ring.retain(|other| *other != who));
    }

    /// Drops the first of the highest priorities until one of them is ready.
    fn highest(&mut self, is_ready: impl Fn(usize) -> bool) -> Option<usize> {
        for ring in self.0.iter_mut().rev() {
            while let Some(first) = ring.front() {
                if is_ready(*first) {
                    return Some(*first);
                }
                ring.pop_front();
            }
        }
        None
    }
}

#[test]
fn the_ready_queue_is_rings_by_priority_that_are_cleaned_lazily() {
    let (_machine, threads) = tcbs();
    let mut random = Random::seeded(41);
    let queue = ReadyQueue::new();
    let mut model = ReadyModel(vec![VecDeque::new(); 256]);
    let mut found = 0;
    for _ in 0..ROUNDS {
        let who = random.below(THREADS as u64) as usize;
        let thread = threads[who];
        let ring = usize::from(thread.priority.get());
        match random.below(10) {
            0 | 1 if !model.contains(who) => {
                queue.insert(thread);
                model.0[ring].push_back(who);
            }
            0 | 1 => queue.insert(thread),
            2 => {
                queue.insert_first(thread);
                model.remove(who);
                model.0[ring].push_front(who);
            }
            3 => {
                queue.remove(thread);
                model.remove(who);
            }
            4 => {
                queue.rotate(thread);
                model.remove(who);
                model.0[ring].push_back(who);
            }
            5 => {
                queue.remove(thread);
                model.remove(who);
                thread.priority.set([0, 63, 64, 100, 127, 128, 200, 255][random.below(8) as usize]);
            }
            6 | 7 => set_busy(
                thread,
                [Busy::Waiting, Busy::Halted, Busy::Polling][random.below(3) as usize],
            ),
            8 => set_busy(thread, Busy::Ready),
            _ => {
                let got = queue.highest();
                let wanted = model.highest(|who| threads[who].is_ready());
                assert_eq!(
                    got.map(|thread| thread.id.get()),
                    wanted.map(|who| threads[who].id.get())
                );
                found += u32::from(wanted.is_some());
            }
        }
        assert_eq!(queue.contains(thread), model.contains(who));
    }
    assert!(found > ROUNDS as u32 / 40, "the queue was nearly always empty");
    for (who, thread) in threads.iter().enumerate() {
        assert_eq!(queue.contains(*thread), model.contains(who));
    }
}

/// A wakeup that is armed: when it is due, and from when on it could be served.
#[derive(Clone, Copy)]
struct Armed {
    at_us: u64,
    since_us: u64,
}

#[test]
fn wakeups_come_never_early_and_at_most_a_grain_late() {
    let (_machine, threads) = tcbs();
    let mut random = Random::seeded(42);
    let lists = WakeupLists::new();
    let mut armed: Vec<Option<Armed>> = vec![None; THREADS];
    let (mut now_us, mut expired, mut again, mut left, mut quiet) = (0_u64, 0, 0, 0, 0);
    for _ in 0..ROUNDS {
        let who = random.below(THREADS as u64) as usize;
        match random.below(8) {
            0..=2 => {
                // Up to a second; one in four up to an hour and more.
                let digits = if random.one_in(4) { 32 } else { 44 };
                let distance = random.next() >> digits + random.below(20);
                let at_us = (now_us + distance).saturating_sub(5);
                lists.insert(threads[who], at_us);
                armed[who] = Some(Armed { at_us: at_us.max(1), since_us: now_us });
            }
            3 | 4 => {
                // Cancelled lazily: the thread stays linked.
                threads[who].wake_at_us.set(0);
                armed[who] = None;
            }
            5 => {
                lists.remove(threads[who]);
                armed[who] = None;
            }
            _ => {
                // A tick, a few lost ticks, or a very long time.
                let long = if random.one_in(500) { 300_000_000 } else { 2_000_000 };
                now_us += [1000, 1000, 4096, long][random.below(4) as usize] + random.below(50);
                if !lists.is_due(now_us) {
                    quiet += 1;
                    let earliest_us = armed.iter().flatten().map(|armed| armed.at_us).min();
                    assert!(earliest_us.is_none_or(|at_us| at_us > now_us + 1000));
                    continue;
                }
                lists.tick_looks();
                let most = if random.one_in(2) { u32::MAX } else { 1 + random.below(3) as u32 };
                loop {
                    let wake = |thread: TcbRef| {
                        let who = (thread.id.get().number() - USER_BASE) as usize;
                        let was = armed[who].take().expect("only what is armed expires, and once");
                        assert!(was.at_us <= now_us, "{} µs early", was.at_us - now_us);
                        expired += 1;
                        if random.one_in(4) {
                            lists.insert(thread, now_us + 3000);
                            armed[who] = Some(Armed { at_us: now_us + 3000, since_us: now_us });
                            again += 1;
                        }
                    };
                    let (rest, _) = lists.expire_some(now_us, most, wake);
                    if rest.is_none() {
                        break;
                    }
                    // Somebody leaves in the middle, whether due or not.
                    let who = random.below(THREADS as u64) as usize;
                    lists.remove(threads[who]);
                    armed[who] = None;
                    left += 1;
                }
                for armed in armed.iter().flatten() {
                    let limit_us = armed.at_us.max(armed.since_us) + GRAIN_US;
                    assert!(limit_us > now_us, "due at {} and not served at {now_us}", armed.at_us);
                }
            }
        }
        for (thread, armed) in threads.iter().zip(&armed) {
            assert_eq!(thread.wake_at_us.get(), armed.map_or(0, |armed| armed.at_us));
            assert!(armed.is_none() || thread.wake.are_linked(), "an armed thread is linked");
        }
    }
    assert!(expired > 1000 && again > 100, "hardly anything expired: {expired}, {again} again");
    assert!(left > 100, "hardly anybody left in the middle: {left}");
    assert!(quiet > 100, "hardly a tick had nothing to do: {quiet}");
}

#[test]
fn a_tick_looks_at_nobody_who_sleeps_long() {
    const LONG_US: u64 = 600_000_000;
    const TICK_US: u64 = 1000;
    let (_machine, threads) = tcbs();
    let lists = WakeupLists::new();
    for (index, thread) in (0..).zip(&threads) {
        // Some in ten seconds, the others in ten minutes, or cancelled before that.
        let from_us = if index % 3 == 0 { 10_000_000 } else { LONG_US };
        lists.insert(*thread, from_us + index);
        if index % 3 == 1 {
            thread.wake_at_us.set(0);
        }
    }
    let mut woken = 0;
    for now_us in (0..LONG_US / TICK_US + 10).map(|tick| tick * TICK_US) {
        if !lists.is_due(now_us) {
            continue;
        }
        lists.tick_looks();
        let _ = lists.expire_some(now_us, u32::MAX, |_| woken += 1);
        lists.for_each_ring(|list, ring| {
            let is_near = WakeupLists::is_near(list);
            for thread in ring.iter().filter(|thread| is_near && thread.wake_at_us.get() != 0) {
                let due_us = thread.wake_at_us.get();
                assert!(
                    due_us < now_us + NEAR_US + 2 * GRAIN_US,
                    "due at {due_us}, parsed at {now_us}"
                );
            }
        });
    }
    assert_eq!(woken, THREADS - (THREADS + 1) / 3);
    assert!(threads.iter().all(|thread| !thread.wake.are_linked()), "nobody is in a list any more");
}

#[test]
fn senders_are_served_in_the_order_in_which_they_came() {
    let (_machine, threads) = tcbs();
    let mut random = Random::seeded(43);
    // The first three receive; a sender is in at most one queue.
    let (receivers, senders) = threads.split_at(3);
    let mut model: Vec<VecDeque<usize>> = vec![VecDeque::new(); receivers.len()];
    for _ in 0..ROUNDS {
        let (place, who) = (random.below(3) as usize, random.below(senders.len() as u64) as usize);
        let (receiver, sender) = (receivers[place], senders[who]);
        let place_of = model.iter().position(|queue| queue.contains(&who));
        match (random.below(4), place_of) {
            (0 | 1, None) => {
                queue::append(receiver, sender);
                model[place].push_back(who);
            }
            (0 | 1, Some(at)) => {
                queue::remove(receivers[at], sender);
                model[at].retain(|other| *other != who);
            }
            (2, None) => queue::remove(receiver, sender),
            _ => {
                let first = receiver.senders.first();
                assert_eq!(
                    first.map(|thread| thread.id.get()),
                    model[place].front().map(|who| senders[*who].id.get())
                );
                if let Some(first) = first.filter(|_| random.one_in(2)) {
                    queue::remove(receiver, first);
                    model[place].pop_front();
                }
            }
        }
        for (receiver, model) in receivers.iter().zip(&model) {
            let mut order = Vec::new();
            for sender in receiver.senders.iter() {
                order.push((sender.id.get().number() - USER_BASE) as usize - receivers.len());
            }
            assert!(order.iter().eq(model), "{order:?} instead of {model:?}");
            let open_from = if model.is_empty() { ThreadId::ANY } else { queue::SOMEBODY };
            assert_eq!(receiver.open_from.get(), open_from);
        }
    }
}
