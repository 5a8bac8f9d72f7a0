//! A canary by itself: memory, registers, name, clock, and how late it wakes.

use core::sync::atomic::Ordering;

use abi::ThreadId;
use fuzzing::registers::{self, Changed, PATTERNS};
use runtime::{ipc, utcb};

use super::{CAGES, CANARIES, Cage, Harm, JUDGING, has_judged};
use crate::machine;
use crate::rng::mix;

/// Rounds of the register check, some 250 instructions each.
const ROUNDS: u64 = 40;
/// How long it sleeps, µs.
const SLEEP_US: u64 = 4_000;

/// The body of a canary.
pub extern "C" fn live(index: u64) -> ! {
    let cage = &CAGES[index as usize % CANARIES];
    runtime::utcb::set_exception_handler(ThreadId::ROOT);
    if runtime::kernel::use_vector_registers().is_err() {
        cage.harm(Harm::VectorRegister, [index, 0]);
    }
    let name = utcb::my_global_id();
    let mut round = 0;
    loop {
        let due = machine::now_us() + SLEEP_US * (1 + 4 * index);
        ipc::sleep(SLEEP_US * (1 + 4 * index));
        punctual(cage, due);
        work(cage, mix(index, round));
        if utcb::my_global_id() != name {
            cage.harm(Harm::Name, [utcb::my_global_id().0, name.0]);
        }
        round += 1;
        cage.got_on();
    }
}

/// Notes how late it is, unless the judge itself kept the processor meanwhile.
fn punctual(cage: &Cage, due: u64) {
    let now = machine::now_us();
    let judged = has_judged(due.saturating_sub(2_000), now);
    if now < due {
        // The clock of the kernel rounds a sleep up, never down.
        cage.harm(Harm::Clock, [now, due]);
    } else if !judged && now - due > cage.late_us.load(Ordering::Relaxed) {
        cage.late_us.store(now - due, Ordering::Relaxed);
        cage.details[0].store(due, Ordering::Relaxed);
        cage.details[1].store(JUDGING.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

fn work(cage: &Cage, seed: u64) {
    for (index, word) in (0..).zip(&cage.memory) {
        word.store(mix(seed, index), Ordering::Relaxed);
    }
    let mut table = [0u64; PATTERNS];
    for (index, word) in table.iter_mut().enumerate() {
        *word = mix(seed, index as u64 + 7);
    }
    let harm = registers::kept(ROUNDS, &mut table).err().map(|changed| match changed {
        Changed::Vector => Harm::VectorRegister,
        Changed::Control => Harm::ControlRegister,
        Changed::General => Harm::GeneralRegister,
    });
    if let Some(harm) = harm {
        cage.harm(harm, [harm as u64, seed]);
    }
    for (index, word) in (0..).zip(&cage.memory) {
        let value = word.load(Ordering::Relaxed);
        if value != mix(seed, index) {
            cage.harm(Harm::Memory, [index, value]);
        }
    }
}
