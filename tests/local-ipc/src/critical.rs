//! Critical sections as threads (`runtime::section`).

use core::sync::atomic::{AtomicU64, Ordering};

use abi::Time;
use runtime::section::{self, Section};
use runtime::{Msg, direct_println, ipc};

use crate::cast::{self, Actor, Part, RIGHT};
use crate::{CALLS, Verdict, entries};

/// Sections that an interrupt or somebody else falls into.
const ROUNDS: u64 = 1_000_000;

/// What the sections look after: two words that are the same outside.
pub struct Pair(u64, u64);

/// On the thread of a section.
pub fn serve() -> ! {
    section::serve(Pair(0, 0))
}

/// The section at place `place`, which has been started as one.
pub fn at(place: usize) -> Section<Pair> {
    // SAFETY: `serve` runs there.
    unsafe { Section::of(cast::local(place)) }
}

/// Adds one to both words; false if somebody else is inside.
pub fn add(section: &Section<Pair>) -> bool {
    section.with(|pair| {
        let same = pair.0 == pair.1;
        pair.0 += 1;
        core::hint::black_box(&mut *pair);
        pair.1 += 1;
        same
    })
}

fn total(section: &Section<Pair>) -> Result<u64, &'static str> {
    section.with(|pair| if pair.0 == pair.1 { Ok(pair.0) } else { Err("somebody left halfway") })
}

/// Nobody else is there: entering and leaving needs no kernel.
pub fn alone() -> Verdict {
    let server = Actor::start(0, Part::Section);
    let section = at(0);
    (0..10).for_each(|_| assert!(add(&section)));
    let mut least = (u64::MAX, u64::MAX);
    for _ in 0..3 {
        let (before, start) = (entries(), clock());
        for _ in 0..CALLS {
            if !add(&section) {
                return Err("somebody else was inside");
            }
        }
        let ticks = clock() - start;
        least = (least.0.min(entries() - before), least.1.min(ticks));
    }
    let instructions = least.1 / CALLS;
    direct_println!(
        "local-ipc: {CALLS} sections, {} kernel entries, {instructions} instructions each with the loop",
        least.0
    );
    let sum = total(&section)?;
    server.stop();
    match (least.0 < CALLS / 50, sum == 10 + 3 * CALLS) {
        (true, true) => Ok(()),
        (false, _) => Err("most sections needed the kernel"),
        (_, false) => Err("the section lost an addition"),
    }
}

/// One of higher priority comes in again and again, wherever the first is.
pub fn contended() -> Verdict {
    let server = Actor::start(0, Part::Section);
    let section = at(0);
    RIGHT.store(0, Ordering::Relaxed);
    let rival = Actor::start(1, Part::Enter);
    let verdict = (0..ROUNDS).all(|_| add(&section));
    let others = RIGHT.load(Ordering::Relaxed);
    rival.stop();
    // It may have been stopped inside: it is counted then or not.
    let sum = total(&section)?;
    server.stop();
    if !verdict {
        return Err("two were inside at once");
    }
    if others < 30 {
        return Err("nobody else came in");
    }
    if (ROUNDS + others..=ROUNDS + others + 1).contains(&sum) { Ok(()) } else { Err("sums differ") }
}

/// Somebody cancels the IPC again and again: who is inside stays there until it is done.
pub fn cancelled() -> Verdict {
    let server = Actor::start(0, Part::Section);
    let section = at(0);
    let canceller = Actor::start(1, Part::Cancel);
    let verdict = (0..ROUNDS).all(|_| add(&section));
    canceller.stop();
    let sum = total(&section)?;
    server.stop();
    if verdict && sum == ROUNDS { Ok(()) } else { Err("a cancelled section was lost or halved") }
}

/// Messages that are none of the section's do nothing.
pub fn strays() -> Verdict {
    let server = Actor::start(0, Part::Section);
    let section = at(0);
    for round in 0..100 {
        let words = Msg::default().words(&[round, 0xDEAD_0000, !0]);
        let _ = ipc::send_within(server.id, &words, Time::micros(100));
        let answered = ipc::call_within(
            server.id,
            &words,
            abi::Timeouts::new(Time::micros(100), Time::micros(100)),
        );
        if answered.is_ok() {
            return Err("a stray message was answered");
        }
        if !add(&section) {
            return Err("a stray message was taken for work");
        }
    }
    let sum = total(&section)?;
    server.stop();
    if sum == 100 { Ok(()) } else { Err("a stray message was work") }
}

/// A section inside another one.
pub fn nested() -> Verdict {
    let servers = [0, 1].map(|place| Actor::start(place, Part::Section));
    let (outer, inner) = (at(0), at(1));
    for _ in 0..CALLS {
        let right = outer.with(|pair| {
            pair.0 += 1;
            pair.1 += 1;
            add(&at(1))
        });
        if !right {
            return Err("two were inside at once");
        }
    }
    let sums = (total(&outer)?, total(&inner)?);
    servers.iter().for_each(Actor::stop);
    if sums == (CALLS, CALLS) { Ok(()) } else { Err("an inner section was lost") }
}

/// The time-stamp counter, which counts instructions here.
pub fn clock() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Enters every few microseconds and counts.
pub fn enter_again_and_again(rounds: &AtomicU64) -> ! {
    let section = at(0);
    let mut turn = 0_usize;
    loop {
        turn += 1;
        add(&section);
        rounds.fetch_add(1, Ordering::Relaxed);
        let _ = ipc::receive(runtime::thread::me(), Time::micros([3, 7, 11, 13][turn % 4]));
    }
}
