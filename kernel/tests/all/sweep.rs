//! Who waits for a thread that is deleted is told so, however many threads there are, and
//! meets no later thread of its id.

use abi::id::USER_BASE;
use abi::{IpcError, IpcErrorKind, Phase, ThreadId, utcb};
use kernel::thread::{TcbRef, lookup, registry, set_current};
use std::sync::atomic::Ordering::Relaxed;

use crate::common::Random;
use crate::common::tasks::{ipc, machine, registers, thread};
use kernel::arch::{clock, cpu};
use kernel::check;
use kernel::control::lifecycle;
use kernel::control::thread_control::{Request, thread_control};
use kernel::ipc::sweep;
use kernel::ipc::wait::waits;
use kernel::irq::tick::tick;
use kernel::space::SpaceRef;
use kernel::thread::rendezvous::Waits;

const TASKS: u32 = 4;
const THREADS: u32 = 48;
/// From tick to tick.
const TICK_US: u64 = 1_000;

/// Many threads; the first one stays, to do things. The clock has run for a while, as whenever
/// the first program runs: in its first grain no tick looks for sleepers.
fn many(spaces: &[SpaceRef]) -> Vec<TcbRef> {
    clock::PAGE.offset_us.fetch_max(10 * TICK_US, Relaxed);
    (0..THREADS)
        .map(|index| thread(spaces[(index % TASKS) as usize], index, ThreadId::NIL))
        .collect()
}

fn wait_for(waiter: TcbRef, partner: TcbRef) {
    let _ = ipc(waiter, ThreadId::NIL, partner.id.get());
    assert_eq!(waits(waiter), Waits::Closed(partner.id.get()));
}

fn delete(doer: TcbRef, thread: TcbRef) {
    set_current(doer);
    let _ = lifecycle::delete(thread);
    assert_eq!(check::violations(), 0);
}

fn is_told(waiter: TcbRef) -> bool {
    let error = IpcError::decode(registers(waiter).word(utcb::ERROR_CODE));
    waiter.is_ready() && error == Some(IpcError::new(IpcErrorKind::NonExisting, Phase::Receive))
}

/// Ticks until the sweep is over; how many.
fn ticks(doer: TcbRef) -> u32 {
    set_current(doer);
    let mut count = 0;
    while registry().sweep.is_under_way() {
        clock::PAGE.offset_us.fetch_add(TICK_US, Relaxed);
        let _ = tick(doer);
        assert_eq!(check::violations(), 0);
        count += 1;
        assert!(count < 1_000, "the sweep does not end");
    }
    count
}

#[test]
fn a_few_waiters_are_told_at_once() {
    let (_machine, spaces) = machine(2);
    let [doer, partner, waiter] = [0, 1, 2].map(|index| thread(spaces[0], index, ThreadId::NIL));
    wait_for(waiter, partner);
    delete(doer, partner);
    assert!(is_told(waiter));
    assert!(!registry().sweep.is_under_way());
}

#[test]
fn many_waiters_are_told_by_the_ticks_that_follow() {
    let (_machine, spaces) = machine(TASKS);
    let threads = many(&spaces);
    let (doer, partner) = (threads[0], threads[1]);
    threads[2..].iter().for_each(|waiter| wait_for(*waiter, partner));
    delete(doer, partner);
    assert!(!threads[2..].iter().all(|waiter| is_told(*waiter)), "all at once");
    assert!(ticks(doer) <= THREADS / 4);
    assert!(threads[2..].iter().all(|waiter| is_told(*waiter)));
}

#[test]
fn an_id_that_is_given_again_is_met_by_nobody_who_waited_for_the_old_thread() {
    let (_machine, spaces) = machine(TASKS);
    let threads = many(&spaces);
    let (doer, partner) = (threads[0], threads[1]);
    threads[2..].iter().for_each(|waiter| wait_for(*waiter, partner));
    let id = partner.id.get();
    spaces[0].task.privileged.set(true);
    doer.scheduler.set(doer.id.get());
    delete(doer, partner);
    let request = Request {
        dest: id,
        pager: ThreadId::NIL,
        scheduler: doer.id.get(),
        space: doer.id.get(),
        utcb_location: !0,
    };
    assert!(thread_control(doer, &request).is_ok());
    assert!(lookup(id).is_some());
    assert!(threads[2..].iter().all(|waiter| is_told(*waiter)));
}

#[test]
fn an_id_lost_during_a_sweep_has_another_one() {
    let (_machine, spaces) = machine(TASKS);
    let threads = many(&spaces);
    let (doer, one, other) = (threads[0], threads[THREADS as usize - 1], threads[20]);
    let waiters = &threads[1..10];
    waiters.iter().for_each(|waiter| wait_for(*waiter, other));
    delete(doer, one);
    // The waiters have had their turn.
    delete(doer, other);
    let _ = ticks(doer);
    assert!(waiters.iter().all(|waiter| is_told(*waiter)));
}

#[test]
fn whoever_is_deleted_during_a_sweep_everybody_is_told() {
    for seed in 0..20 {
        // Each thread of the host is a machine of its own.
        let run = std::thread::spawn(move || delete_in_any_order(seed));
        assert!(run.join().is_ok(), "seed {seed}");
    }
}

fn delete_in_any_order(seed: u64) {
    let mut rng = Random::new(seed);
    let (_machine, spaces) = machine(TASKS);
    let mut threads = many(&spaces);
    let doer = threads.remove(0);
    for waiter in threads.clone() {
        let other = threads[rng.below(threads.len() as u64) as usize];
        if other != waiter {
            wait_for(waiter, other);
        }
    }
    while threads.len() > 1 {
        let last = threads.len() as u64 - 1;
        let index = [0, last, rng.below(last + 1)][rng.below(3) as usize];
        delete(doer, threads.remove(index as usize));
        if rng.one_in(3) {
            set_current(doer);
            let _ = tick(doer);
        }
        if rng.one_in(8) {
            let _ = ticks(doer);
            let left = threads.iter().filter(|waiter| waits_for_nobody(**waiter)).count();
            assert_eq!(left, 0, "{left} threads wait for nobody");
        }
    }
}

fn waits_for_nobody(waiter: TcbRef) -> bool {
    matches!(waits(waiter), Waits::Closed(from) if lookup(from).is_none())
}

#[test]
fn nobody_but_a_giver_of_old_ids_finishes_a_sweep() {
    let (_machine, spaces) = machine(TASKS);
    let threads = many(&spaces);
    let id = threads[1].id.get();
    delete(threads[0], threads[1]);
    assert!(registry().sweep.is_under_way());
    sweep::finish_before(ThreadId::global(USER_BASE + 100, 2), 1);
    assert!(registry().sweep.is_under_way());
    sweep::finish_before(id, id.version());
    assert!(!registry().sweep.is_under_way());
}

/// A tick goes a little of the way, whoever runs; the idle thread goes on, and stops for whoever is ready.
#[test]
fn a_tick_sweeps_little_and_who_idles_sweeps_on() {
    let (_machine, spaces) = machine(TASKS);
    let idle = kernel::thread::current();
    let threads = many(&spaces);
    let (doer, partner) = (threads[0], threads[1]);
    threads[2..].iter().for_each(|waiter| wait_for(*waiter, partner));
    delete(doer, partner);
    set_current(idle);
    let told = |threads: &[TcbRef]| threads[2..].iter().filter(|one| is_told(**one)).count();
    let nobody_is_ready = || {
        while let Some(ready) = cpu().scheduler.ready.highest() {
            cpu().scheduler.ready.remove(ready);
        }
    };
    let before = told(&threads);
    nobody_is_ready();
    sweep::tick();
    assert!(registry().sweep.is_under_way() && told(&threads) - before <= 4);
    nobody_is_ready();
    let before = told(&threads);
    let next = sweep::idle();
    assert!(told(&threads) - before <= 8, "whoever is told is ready: who idles stops");
    assert!(next != idle && threads.contains(&next));
    assert!(cpu().scheduler.watches.get(), "who idles next goes on");
    while registry().sweep.is_under_way() {
        nobody_is_ready();
        let _ = sweep::idle();
    }
    assert_eq!(told(&threads), threads.len() - 2);
    assert!(!cpu().scheduler.watches.get());
}
