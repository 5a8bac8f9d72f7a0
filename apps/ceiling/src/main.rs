//! Priority inversion, and what bounds it: three threads of different priorities, of which the
//! highest and the lowest share a value. Behind a plain lock the highest waits as long as the one in the middle
//! likes to compute; with a critical section that is a thread of ceiling priority
//! (`runtime::section`) it waits for one section at most.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use runtime::section::Section;
use runtime::{clock, ipc, println, root, thread};

runtime::entry!(main);

/// What a section takes, and how long the thread in the middle computes, µs.
const SECTION_US: u64 = 3_000;
const MIDDLE_US: u64 = 50_000;
/// The low thread is inside when the others begin, µs after it.
const BEGIN_US: u64 = 1_000;
/// Priorities; this program's first thread has 100.
const LOW: u8 = 40;
const MIDDLE: u8 = 60;
const HIGH: u8 = 80;
/// Above everybody who enters.
const CEILING: u8 = 81;

/// A lock whose waiters sleep and look again.
static LOCKED: AtomicBool = AtomicBool::new(false);
/// How long the high thread waited to get in, µs, and whether it has.
static WAITED_US: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicBool = AtomicBool::new(false);

fn main() {
    let plain = match demonstrate(|body| {
        while LOCKED.swap(true, Ordering::Acquire) {
            ipc::sleep(500);
        }
        body();
        LOCKED.store(false, Ordering::Release);
    }) {
        Ok(waited) => waited,
        Err(why) => return println!("ceiling: no thread: {why}."),
    };
    let section: &Section<u64> = match Section::new(0, CEILING) {
        Ok(section) => Box::leak(Box::new(section)),
        Err(why) => return println!("ceiling: no critical section: {why}."),
    };
    let ceiling = demonstrate(move |body| {
        section.with(|entries| {
            *entries += 1;
            body();
        });
    });
    let Ok(ceiling) = ceiling else { return println!("ceiling: no more threads.") };
    println!(
        "ceiling: sections of {SECTION_US} µs, {MIDDLE_US} µs of somebody else. The high thread waited \
        {plain} µs for a plain lock, {ceiling} µs with the ceiling; {} entries.",
        section.with(|entries| *entries)
    );
}

/// Three threads at once; returns how long the high one waited to get in.
fn demonstrate(
    enter: impl Fn(&(dyn Fn() + Sync)) + Send + Copy + 'static,
) -> Result<u64, root::Refusal> {
    DONE.store(false, Ordering::Relaxed);
    let low = thread::spawn(move || enter(&|| compute(SECTION_US)))?;
    let middle = thread::spawn(|| {
        ipc::sleep(BEGIN_US);
        compute(MIDDLE_US);
    })?;
    let high = thread::spawn(move || {
        let wanted = clock::now_us() + BEGIN_US;
        ipc::sleep(BEGIN_US);
        enter(&|| WAITED_US.store(clock::now_us() - wanted, Ordering::Relaxed));
        DONE.store(true, Ordering::Release);
    })?;
    for (id, priority) in [(low, LOW), (middle, MIDDLE), (high, HIGH)] {
        root::set_priority(id, priority)?;
    }
    while !DONE.load(Ordering::Acquire) {
        ipc::sleep(1_000);
    }
    // The others end by themselves.
    ipc::sleep(2 * MIDDLE_US);
    Ok(WAITED_US.load(Ordering::Relaxed))
}

/// Uses `us` microseconds of the processor, not of the clock.
fn compute(us: u64) {
    let (mut used, mut last) = (0, clock::now_us());
    while used < us {
        let now = clock::now_us();
        // Whoever is preempted finds a gap: that time was somebody else's.
        used += (now - last).min(20);
        last = now;
    }
}
