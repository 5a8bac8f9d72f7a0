//! What each processor and the first one tell each other: in a [`Slot`], in atomics. Other processors are started in
//! `elsewhere::processors`.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::apic::{self, Message};
use super::cpu::ticks;
use super::percpu::cpu;
use super::vectors;
use crate::arch::clock;
use crate::between::berth::Berth;
use crate::between::errand::Errands;
use crate::boot::madt::MAX_PROCESSORS;

/// How long a processor has until it is given up, µs.
pub(crate) const PATIENCE_US: u64 = 1_000_000;

/// How far a processor has come.
pub(crate) mod state {
    pub const ABSENT: u32 = 0;
    /// It runs and answers questions about the time.
    pub const UP: u32 = 1;
    /// It is not as the first one is.
    pub const DIFFERS: u32 = 2;
    /// The first processor has let it into the idle loop.
    pub const IDLE: u32 = 3;
}

/// What a processor and the first one tell each other. Each has lines of its own.
#[repr(align(64))]
pub(crate) struct Slot {
    /// Its number among the APICs.
    pub(crate) apic: AtomicU32,
    pub(crate) state: AtomicU32,
    pub(crate) question: AtomicU32,
    pub(crate) answer: AtomicU32,
    /// What was wrong with it when it was asked last.
    pub(crate) violations: AtomicU32,
    pub(crate) nmis: AtomicU32,
    pub(crate) counter: AtomicU64,
    pub(crate) root: AtomicU64,
    /// The frames of its idle thread.
    pub(crate) idle: [AtomicU64; 2],
    /// What the first processor keeps of it, if it runs: the address of it.
    pub(crate) other: AtomicU64,
    /// What the first processor has asked it to do (`errands`).
    pub(crate) errands: Errands,
    /// Who of the first processor's threads is there.
    pub(crate) berth: Berth,
}

impl Slot {
    /// Its own root table.
    pub(crate) fn root(&self) -> u64 {
        self.root.load(Ordering::Relaxed)
    }
}

static SLOTS: [Slot; MAX_PROCESSORS] = [const {
    Slot {
        apic: AtomicU32::new(0),
        state: AtomicU32::new(state::ABSENT),
        question: AtomicU32::new(0),
        answer: AtomicU32::new(0),
        violations: AtomicU32::new(0),
        nmis: AtomicU32::new(0),
        counter: AtomicU64::new(0),
        root: AtomicU64::new(0),
        idle: [const { AtomicU64::new(0) }; 2],
        other: AtomicU64::new(0),
        errands: Errands::new(),
        berth: Berth::new(),
    }
}; MAX_PROCESSORS];

/// How many run; their numbers are those below.
static COUNT: AtomicU32 = AtomicU32::new(1);

/// How many processors run.
pub fn count() -> u32 {
    COUNT.load(Ordering::Relaxed)
}

/// So many have been started.
pub(crate) fn set_count(count: u32) {
    COUNT.store(count, Ordering::Relaxed);
}

/// The slot of number `number`.
pub(crate) fn slot(number: u32) -> &'static Slot {
    &SLOTS[number as usize % MAX_PROCESSORS]
}

/// The number of number `number` among the APICs.
pub(crate) fn apic_of(number: u32) -> u32 {
    slot(number).apic.load(Ordering::Relaxed)
}

/// Interrupts number `number`, which looks for what is wanted of it then.
#[inline(never)]
pub fn interrupt(number: u32) {
    let _ = apic::send(apic_of(number), Message::Interrupt(vectors::HELLO));
}

/// Waits until `done`, at most `us`; whether it is. PAUSE lets an emulator run the others.
pub(crate) fn wait(us: u64, done: &dyn Fn() -> bool) -> bool {
    let end = ticks().saturating_add(clock::us_to_ticks(us));
    while !done() {
        if ticks() >= end {
            return done();
        }
        spin_loop();
    }
    true
}

/// Every other processor that runs, with its number.
pub(crate) fn started() -> impl Iterator<Item = (u32, &'static Slot)> {
    (1..count()).map(|number| (number, slot(number)))
}

/// This processor's slot.
pub(crate) fn own() -> &'static Slot {
    &SLOTS[cpu().number.get() as usize % MAX_PROCESSORS]
}

/// An NMI has come here.
pub fn note_nmi() {
    own().nmis.fetch_add(1, Ordering::Release);
}

/// Calls `each` with the root table of every other processor that runs; for checks.
pub fn for_each_root(each: impl FnMut(u64)) {
    started().map(|(_, slot)| slot.root.load(Ordering::Relaxed)).for_each(each);
}
