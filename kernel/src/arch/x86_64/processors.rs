//! The other processors: started once, at boot, one after the other; each then waits in the
//! kernel, as an idle thread of its own, for work that it does not have yet
//! (docs/decisions/0039-a-kernel-per-processor.md).
//!
//! What a processor tells the first one is in its [`Slot`], in atomics: everything else here
//! is the first processor's. One that does not come up, or not as the first one is, is
//! left out with a sentence, and the system runs.

use core::arch::{asm, global_asm};
use core::fmt;
use core::hint::spin_loop;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::apic::{self, Message};
use super::cpu::ticks;
use super::errands::{Errand, ask};
use super::percpu::{Cpu, cpu};
use super::thread::{TcbRef, leave, pad, set_current, special};
use super::{
    boot, descriptors, features, lines, machine_check, mitigations, replica, seats, vectors, visits,
};
use crate::arch::{clock, phys_to_virt};
use crate::between::berth::Berth;
use crate::boot::madt::{MAX_PROCESSORS, Madt};
use crate::boot::memory::Range;
use crate::kprintln;
use crate::mem::{PhysFrame, RootWord, frames};
use crate::thread::own::make_idle_in;

global_asm!(include_str!("trampoline.S"), MAIN = sym main);

unsafe extern "C" {
    static baton_trampoline: u8;
    static baton_trampoline_end: u8;
    fn baton_processor_entry();
}

/// Offsets of the words in the trampoline (`trampoline.S`).
mod word {
    pub const TICKET: usize = 8;
    pub const BOOT_ROOT: usize = 12;
    pub const ROOT: usize = 16;
    pub const ENTRY: usize = 24;
    /// Words to which the page's address is added; the last is not aligned.
    pub const PLACES: [usize; 3] = [32, 40, 50];
}

/// Between INIT and the start-up message (Intel SDM 3A, 9.4.4.1), µs.
const AFTER_INIT_US: u64 = 10_000;
/// Between the two start-up messages, µs.
const AFTER_START_US: u64 = 200;
/// How long a processor has until it is given up, µs.
pub(super) const PATIENCE_US: u64 = 1_000_000;
/// Questions about the time that are asked; the one with the quickest answer counts.
const QUESTIONS: u32 = 64;
/// By how much counters may seem to disagree: a part of a second.
const CLOCK_TOLERANCE: u64 = 1_000_000;

/// How far a processor has come.
pub(super) mod state {
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
pub(super) struct Slot {
    /// What the first processor has asked the processor to do ([`Errand`]), until it is done; 0: nothing.
    pub(super) errand: AtomicU32,
    /// Its number among the APICs.
    pub(super) apic: AtomicU32,
    pub(super) state: AtomicU32,
    question: AtomicU32,
    answer: AtomicU32,
    /// The errand that it has done last.
    pub(super) done: AtomicU32,
    /// What was wrong with it when it was asked last.
    pub(super) violations: AtomicU32,
    nmis: AtomicU32,
    counter: AtomicU64,
    root: AtomicU64,
    /// The frames of its idle thread.
    idle: [AtomicU64; 2],
    /// What the first processor keeps of it, if it runs: the address of it.
    pub(super) other: AtomicU64,
    /// Who of the first processor's threads is there.
    pub(super) berth: Berth,
    /// Where those are who come together.
    pub(super) seats: seats::Seats,
}

impl Slot {
    /// Its own root table.
    pub(super) fn root(&self) -> u64 {
        self.root.load(Ordering::Relaxed)
    }

    /// Whether the first processor has asked for something.
    pub(super) fn is_asked(&self) -> bool {
        self.errand.load(Ordering::Relaxed) != 0
    }
}

static SLOTS: [Slot; MAX_PROCESSORS] = [const {
    Slot {
        errand: AtomicU32::new(0),
        apic: AtomicU32::new(0),
        state: AtomicU32::new(state::ABSENT),
        question: AtomicU32::new(0),
        answer: AtomicU32::new(0),
        done: AtomicU32::new(0),
        violations: AtomicU32::new(0),
        nmis: AtomicU32::new(0),
        counter: AtomicU64::new(0),
        root: AtomicU64::new(0),
        idle: [const { AtomicU64::new(0) }; 2],
        other: AtomicU64::new(0),
        berth: Berth::new(),
        seats: seats::Seats::new(),
    }
}; MAX_PROCESSORS];

/// How many run; their numbers are those below.
static COUNT: AtomicU32 = AtomicU32::new(1);

/// How many processors run.
pub fn count() -> u32 {
    COUNT.load(Ordering::Relaxed)
}

/// The slot of number `number`.
pub(super) fn slot(number: u32) -> &'static Slot {
    &SLOTS[number as usize % MAX_PROCESSORS]
}

/// The number of number `number` among the APICs.
pub(super) fn apic_of(number: u32) -> u32 {
    slot(number).apic.load(Ordering::Relaxed)
}

/// Interrupts number `number`, which looks for what is wanted of it then.
#[inline(never)]
pub fn interrupt(number: u32) {
    let _ = apic::send(apic_of(number), Message::Interrupt(vectors::HELLO));
}

/// Why a processor is left out.
enum Fault {
    Memory,
    Silent,
    Differs,
    Clock(i64),
    Deaf(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("the kernel's memory is too small for its tables"),
            Self::Silent => f.write_str("it does not come up"),
            Self::Differs => f.write_str("it has not the features of the first one"),
            Self::Clock(ticks) => write!(f, "its time stamp counter is {ticks} ticks off"),
            Self::Deaf(what) => write!(f, "it does not answer to {what}"),
        }
    }
}

/// Starts all processors that `madt` lists, by way of the page `trampoline`, and says how
/// many there are.
pub fn start_all(madt: Option<&Madt>, trampoline: Range, template: u64) {
    let all = madt.map_or(1, |madt| madt.processors.as_slice().len());
    let (mut started, free) = (1, frames::free());
    match madt.filter(|_| all > 1) {
        Some(madt) if lines::has_apics() && !trampoline.is_empty() => {
            let own = apic::id();
            SLOTS[0].apic.store(own, Ordering::Relaxed);
            let others = madt.processors.as_slice().iter().filter(|other| other.apic != own);
            for other in others.take(MAX_PROCESSORS - 1) {
                let number = started;
                match start_one(number, other.apic, trampoline.start, template) {
                    Ok(()) => started += 1,
                    Err(fault) => {
                        let slot = slot(number);
                        slot.state.store(state::ABSENT, Ordering::Relaxed);
                        slot.other.store(0, Ordering::Relaxed);
                        let _ = apic::send(other.apic, Message::Init);
                        kprintln!(
                            "baton: the processor with APIC {} is left out: {fault}",
                            other.apic
                        );
                    }
                }
            }
        }
        Some(_) => kprintln!("baton: one processor is used: the others need APICs and a low page"),
        None => {}
    }
    COUNT.store(started, Ordering::Relaxed);
    let (pages, roots) = (free - frames::free(), u64::from(started - 1) * replica::ROOTS);
    kprintln!(
        "baton: processors: {all}, started: {started}; pages of memory for the others: {pages}, of roots: {roots}"
    );
}

/// Starts one of them.
fn start_one(number: u32, apic: u32, page: u64, template: u64) -> Result<(), Fault> {
    if apic > 0xFE {
        return Err(Fault::Deaf("messages of this kind of APIC"));
    }
    let slot = &SLOTS[number as usize % MAX_PROCESSORS];
    let own = replica::build(template).ok_or(Fault::Memory)?;
    slot.root.store(own.root, Ordering::Relaxed);
    slot.seats.furnish(&own.seats, own.users);
    slot.other.store(visits::make_other(own.other), Ordering::Relaxed);
    slot.apic.store(apic, Ordering::Relaxed);
    slot.idle.iter().zip(own.idle).for_each(|(slot, frame)| slot.store(frame, Ordering::Relaxed));
    let place = phys_to_virt(own.cpu + offset_of!(Cpu, number) as u64).cast::<u32>();
    // SAFETY: the frame is the new processor's `Cpu`'s first page, and it does not run yet.
    unsafe { place.write(number) };
    // SAFETY: the page is the trampoline's, and no processor is on it: the last one that was
    // has told that it is up, or has been reset.
    unsafe { prepare(page, own.root) };
    let _ = apic::send(apic, Message::Init);
    // Nobody else is to run meanwhile: without PAUSE, each of which costs an emulator dearly.
    let begin = ticks();
    while ticks() - begin < clock::us_to_ticks(AFTER_INIT_US) {}
    let up = || slot.state.load(Ordering::Acquire) != state::ABSENT;
    for patience_us in [AFTER_START_US, PATIENCE_US] {
        let sent = apic::send(apic, Message::Start((page >> 12) as u8));
        if wait(patience_us, &up) || !sent {
            break;
        }
    }
    match slot.state.load(Ordering::Acquire) {
        state::UP => {}
        state::DIFFERS => return Err(Fault::Differs),
        _ => return Err(Fault::Silent),
    }
    check_clock(slot)?;
    slot.state.store(state::IDLE, Ordering::Release);
    greet(number, slot)
}

/// Fills the trampoline in.
///
/// # Safety
/// `page` is a page of memory below 1 MiB that is nobody's, and no processor executes it.
unsafe fn prepare(page: u64, root: u64) {
    let (from, end) = (&raw const baton_trampoline, &raw const baton_trampoline_end);
    let to = phys_to_virt(page);
    let set = |at: usize, value: u64| {
        // SAFETY: the words lie in the page, aligned.
        unsafe { to.add(at).cast::<u64>().write_volatile(value) };
    };
    // SAFETY: the caller vouches for the page, in which the code fits.
    unsafe { super::asm::copy_bytes(to, from, end.offset_from_unsigned(from)) };
    for at in word::PLACES {
        // SAFETY: as above; a word of four bytes.
        unsafe {
            let place = to.add(at).cast::<u32>();
            place.write_unaligned(place.read_unaligned() + page as u32);
        }
    }
    set(word::ROOT, root);
    set(word::ENTRY, baton_processor_entry as *const () as u64);
    // The ticket comes last, with the other half of its word.
    const { assert!(word::BOOT_ROOT == word::TICKET + 4) };
    set(word::TICKET, boot::early_root() << 32 | 1);
}

/// Waits until `done`, at most `us`; whether it is. PAUSE lets an emulator run the others.
pub(super) fn wait(us: u64, done: &dyn Fn() -> bool) -> bool {
    let end = ticks().saturating_add(clock::us_to_ticks(us));
    while !done() {
        if ticks() >= end {
            return done();
        }
        spin_loop();
    }
    true
}

/// Compares the time stamp counters: what the other says must lie between the question and
/// the answer, by the first processor's counter.
fn check_clock(slot: &Slot) -> Result<(), Fault> {
    let (mut quickest, mut off) = (u64::MAX, 0);
    for question in 1..=QUESTIONS {
        let asked = ticks();
        slot.question.store(question, Ordering::Release);
        if !wait(PATIENCE_US, &|| slot.answer.load(Ordering::Acquire) == question) {
            return Err(Fault::Silent);
        }
        let (answered, theirs) = (ticks(), slot.counter.load(Ordering::Relaxed));
        if answered - asked < quickest {
            quickest = answered - asked;
            off = clock::disagreement(asked, theirs, answered);
        }
    }
    let tolerance = clock::frequency_hz() / CLOCK_TOLERANCE;
    if off.unsigned_abs() <= tolerance { Ok(()) } else { Err(Fault::Clock(off)) }
}

/// Asks the processor, which idles, and sends it an NMI; both must be answered.
fn greet(number: u32, slot: &Slot) -> Result<(), Fault> {
    if !ask(number, Errand::Hello) {
        return Err(Fault::Deaf("an interrupt"));
    }
    let before = slot.nmis.load(Ordering::Acquire);
    let sent = apic::send(slot.apic.load(Ordering::Relaxed), Message::Nmi);
    if !sent || !wait(PATIENCE_US, &|| slot.nmis.load(Ordering::Acquire) != before) {
        return Err(Fault::Deaf("an NMI"));
    }
    Ok(())
}

/// Every other processor that runs, with its number.
pub(super) fn started() -> impl Iterator<Item = (u32, &'static Slot)> {
    (1..count()).map(|number| (number, slot(number)))
}

/// This processor's slot.
pub(super) fn own() -> &'static Slot {
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

/// Where `trampoline.S` leads: on this processor's own tables and stack, interrupts off.
extern "C" fn main() -> ! {
    let slot = own();
    // SAFETY: on the kernel's tables, of which CR3 holds nothing but the address; no page is
    // a user page that the kernel uses.
    let is_alike = unsafe { features::join() };
    if !is_alike {
        slot.state.store(state::DIFFERS, Ordering::Release);
        stop();
    }
    // SAFETY: the processor has what the first one has, for which the actions were chosen.
    unsafe { mitigations::join() };
    pad::init();
    descriptors::join();
    machine_check::init();
    apic::enable();
    let mut wrong = false;
    features::check(&mut |_| wrong = true);
    let Some(idle) = make_idle(slot) else { stop() };
    set_current(idle);
    special::update(idle);
    slot.state.store(if wrong { state::DIFFERS } else { state::UP }, Ordering::Release);
    let mut answered = 0;
    while slot.state.load(Ordering::Acquire) != state::IDLE {
        let question = slot.question.load(Ordering::Acquire);
        if question != answered {
            slot.counter.store(ticks(), Ordering::Relaxed);
            slot.answer.store(question, Ordering::Release);
            answered = question;
        }
        spin_loop();
    }
    leave(idle)
}

/// Makes this processor's idle thread, in the frames that the first one has taken for it.
fn make_idle(slot: &Slot) -> Option<TcbRef> {
    let frames = slot.idle.each_ref().map(|frame| PhysFrame::at(frame.load(Ordering::Relaxed)));
    let root = RootWord::of_kernel(slot.root.load(Ordering::Relaxed));
    make_idle_in(frames, root)
}

/// Halts this processor for good.
#[inline(never)] // the tests lead a processor here
fn stop() -> ! {
    loop {
        // SAFETY: nothing runs here any more.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) };
    }
}
