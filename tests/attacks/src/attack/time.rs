//! Taking the processor from others.

use alloc::format;
use proto::root as op;
use runtime::{clock, ipc, kernel, root, syscall, thread};

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
    let (hog_id, index) = root::create_thread().ok()?;
    let scheduler = machine::set_scheduler(hog_id, thread::me());
    // Slice and quantum: never.
    let (state, _) = syscall::schedule(hog_id.0, 0, UNCHANGED, UNCHANGED, UNCHANGED);
    if !scheduler || state == 0 {
        root::delete_thread(hog_id);
        return None;
    }
    machine::start(hog_id, index, hog, 0);
    let [gap_us, _] = hostile.ask(Help::Compute, 0);
    root::delete_thread(hog_id);
    verdict(gap_us, "of the same priority")
}

/// A task of low priority makes a thread, which computes.
pub fn priority(hostile: &Hostile) -> Reached {
    let id = hostile.own_id(15, op::version_of(0x7004, 1));
    if !machine::create(id, 15) {
        return None;
    }
    machine::start(id, 15, hog, 0);
    let [gap_us, _] = hostile.ask(Help::Compute, 1);
    let _ = kernel::delete(id);
    verdict(gap_us, "of higher priority than the attacker")
}
