//! The other processors: started once, at boot, one after the other; each then waits in the
//! kernel, as an idle thread of its own, for work that it does not have yet
//! (docs/decisions/0039-a-kernel-per-processor.md).
//!
//! What a processor tells the first one is in its slot (`slots`): everything else here
//! is the first processor's. One that does not come up, or not as the first one is, is
//! left out with a sentence, and the system runs.

use core::arch::{asm, global_asm};
use core::fmt;
use core::hint::spin_loop;
use core::mem::offset_of;
use core::sync::atomic::Ordering;

use super::{replica, seats, visits};
use crate::arch::x86_64::apic::{self, Message};
use crate::arch::x86_64::apic_kind::{HIGHEST_NARROW, Kind};
use crate::arch::x86_64::asm::copy_bytes;
use crate::arch::x86_64::cpu::ticks;
use crate::arch::x86_64::errands::ask;
use crate::arch::x86_64::percpu::Cpu;
use crate::arch::x86_64::slots::{PATIENCE_US, Slot, own, set_count, slot, state, wait};
use crate::arch::x86_64::thread::{TcbRef, leave, pad, set_current, special};
use crate::arch::x86_64::{boot, descriptors, features, lines, machine_check, mitigations};
use crate::arch::{clock, phys_to_virt};
use crate::between::errand::Errand;
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
/// Questions about the time that are asked; the one with the quickest answer counts.
const QUESTIONS: u32 = 64;
/// By how much counters may seem to disagree: a part of a second.
const CLOCK_TOLERANCE: u64 = 1_000_000;

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
            slot(0).apic.store(own, Ordering::Relaxed);
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
    set_count(started);
    let (pages, roots) = (free - frames::free(), u64::from(started - 1) * replica::ROOTS);
    kprintln!(
        "baton: processors: {all}, started: {started}; pages of memory for the others: {pages}, of roots: {roots}"
    );
}

/// Starts one of them.
fn start_one(number: u32, apic: u32, page: u64, template: u64) -> Result<(), Fault> {
    let is_paged = apic::kind() == Kind::Page;
    if apic > HIGHEST_NARROW && is_paged {
        return Err(Fault::Deaf("messages of this kind of APIC"));
    }
    let slot = slot(number);
    let own = replica::build(template).ok_or(Fault::Memory)?;
    slot.root.store(own.root, Ordering::Relaxed);
    seats::of(number).furnish(&own.seats, own.users);
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
    unsafe { copy_bytes(to, from, end.offset_from_unsigned(from)) };
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

/// Where `trampoline.S` leads: on this processor's own tables and stack, interrupts off.
extern "C" fn main() -> ! {
    let slot = own();
    // SAFETY: on the kernel's tables, of which CR3 holds nothing but the address; no page is
    // a user page that the kernel uses.
    let is_alike = unsafe { features::join() };
    if !is_alike || !apic::enable() {
        slot.state.store(state::DIFFERS, Ordering::Release);
        stop();
    }
    // SAFETY: the processor has what the first one has, for which the actions were chosen.
    unsafe { mitigations::join() };
    pad::init();
    descriptors::join();
    machine_check::init();
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
