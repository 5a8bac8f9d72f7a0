//! Taking the processor from others.

use alloc::format;
use runtime::{clock, ipc, kernel, syscall};

use crate::hostile::{Hostile, Reached, rest};
use crate::machine;
use crate::order::Help;

/// How long a hog computes, µs.
const HOG_US: u64 = 400_000;
/// It begins so late, so that its creator gets to its next call, µs.
const LATER_US: u64 = 5_000;
/// Longest time that a canary may be without the processor, µs: some slices of others.
const LONGEST_US: u64 = 60_000;
const UNCHANGED: u64 = !0;
/// Thread of this task whose stack and UTCB the hog uses.
const INDEX: u64 = 15;

extern "C" fn hog(_: u64) -> ! {
    ipc::sleep(LATER_US);
    let end = clock::now_us() + HOG_US;
    while clock::now_us() < end {}
    rest()
}

fn verdict(gap_us: u64, canary: &str) -> Reached {
    (gap_us > LONGEST_US)
        .then(|| format!("a canary {canary} was without the processor for {gap_us} us"))
}

/// Makes itself the scheduler of its own thread, and gives that an endless slice.
pub fn endless_slice(hostile: &Hostile) -> Reached {
    let hog_id = hostile.own_id(INDEX);
    // Its scheduler is the thread that makes it.
    if !machine::create(hog_id, INDEX) {
        return None;
    }
    // Slice and quantum: never.
    let (state, _) = syscall::schedule(hog_id.0, 0, UNCHANGED, UNCHANGED, UNCHANGED);
    if state == 0 {
        let _ = kernel::delete(hog_id);
        return None;
    }
    machine::start(hog_id, INDEX, hog, 0);
    let [gap_us, _] = hostile.ask(Help::Compute, 0);
    let _ = kernel::delete(hog_id);
    verdict(gap_us, "of the same priority")
}

/// A task of low priority makes a thread, which computes.
pub fn priority(hostile: &Hostile) -> Reached {
    let id = hostile.own_id(INDEX);
    if !machine::create(id, INDEX) {
        return None;
    }
    machine::start(id, INDEX, hog, 0);
    let [gap_us, _] = hostile.ask(Help::Compute, 1);
    let _ = kernel::delete(id);
    verdict(gap_us, "of higher priority than the attacker")
}
