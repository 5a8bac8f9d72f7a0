//! The threads that run elsewhere.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::layout::{INITIAL_KIP, INITIAL_UTCB_AREA, INITIAL_UTCB_BITS};
use abi::{CallError, Fpage, Rights, ThreadId, Time, Timeouts};
use root_harness::{Places, local, location};
use runtime::space::Fault;
use runtime::{Msg, ipc, kernel, schedule};

use crate::{alone, hidden, machine, moves, strings, tables, talks, visits};

/// Threads there can be.
pub const PLACES: usize = 9;

static STAGE: Places<PLACES> = Places::new();
static PARTS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
/// What each has counted.
pub static COUNTS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
/// Whom each calls.
static PARTNERS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
/// Where `Read` reads.
pub static ADDRESS: AtomicU64 = AtomicU64::new(0);
/// Where it reads at each place, unless that is 0.
pub static OWN_ADDRESSES: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
/// Rounds of `Forge`.
pub static ROUNDS: AtomicU64 = AtomicU64::new(0);
/// What was found wrong.
pub static WRONG: AtomicU64 = AtomicU64::new(0);

/// What a thread does.
#[derive(Clone, Copy)]
pub enum Part {
    /// Counts.
    Count,
    /// Answers with the message's first word and its own count.
    Serve,
    /// Calls the root thread for ever.
    Call,
    /// Reads a byte for ever, and counts.
    Read,
    /// Moves from processor to processor, and counts.
    Wander,
    /// Keeps a word of its own in a vector register, and counts.
    Hold,
    /// Calls its partner for ever, which serves, and counts the right answers.
    Talk,
    /// Likewise, and between the calls names threads that are none.
    Forge,
    /// Likewise, and between the calls sends strings, which its partner does not accept.
    Spell,
    /// Returns from an interrupt that there was none of.
    Return,
    /// Answers without the kernel where that is possible.
    ServeAlone,
    /// Calls its partner so.
    TalkAlone,
    /// Writes what it likes where those two look.
    Lie,
    /// Moves somebody else from processor to processor, and counts.
    Move,
    /// Deletes somebody else, and counts.
    Delete,
    /// As `ServeAlone`, with a word of its own in a vector register meanwhile.
    ServeAndHold,
    /// Likewise; it asks its partner first.
    ForwardAlone,
    /// Likewise; it reads a byte first.
    ServeAndRead,
    /// As `TalkAlone`, in single steps.
    StepAlone,
    /// Says that others run in its place.
    Forger,
    /// Looks after a critical section's value.
    Section,
    /// Enters the section at place 0 for ever.
    Enter,
    /// Reads a port for ever, and counts.
    ReadPort,
    /// Agrees to procedure calls.
    Agree,
    /// Is lent to that clerk.
    Lend,
    /// Calls the procedures of that clerk for ever, and counts the right answers.
    CallProcedures,
    /// Deletes its partner when it is told to, and counts.
    DeletePartner,
    /// Sends its partner long strings for ever, and counts them.
    Ship,
    /// Receives those.
    Take,
    /// Receives a message, and then calls its partner for ever.
    Relay,
    /// Receives a message, and then reads for ever where it is told to, or a port, and counts.
    Probe,
    /// Gives its seat up, calls its partner, which gives it another one, and computes for a while, for ever, and counts.
    Reseat,
}

/// A thread of the root task's.
pub struct Actor {
    /// Its global id.
    pub id: ThreadId,
    place: usize,
}

impl Actor {
    /// Starts a thread at `place`, on processor `number`.
    pub fn start(place: usize, part: Part, number: u32) -> Self {
        Self::start_in(place, part, number, |id| STAGE.make(id, place))
    }

    /// The same in a space of its own, whose pager this thread is.
    pub fn start_apart(place: usize, part: Part, number: u32) -> Self {
        let made = |id| make_space(id, location(place));
        Self::start_in(place, part, number, made).with_pages()
    }

    /// The same in the space of `first`, which has one of its own.
    pub fn start_beside(place: usize, part: Part, number: u32, first: &Self) -> Self {
        let root = ThreadId::ROOT;
        let made = |id| kernel::create_active(id, first.id, root, root, location(place));
        Self::start_in(place, part, number, made).with_pages()
    }

    /// As [`Self::start_apart`], or beside `first`, with a number that is far from those of all other places.
    pub fn start_far(place: usize, part: Part, number: u32, first: Option<&Self>) -> Self {
        const FAR: u32 = 1 << 9;
        let (near, root) = (STAGE.next_id(place), ThreadId::ROOT);
        let id = ThreadId::global(near.number() + FAR * (place as u32 + 1), near.version());
        let made = |id| match first {
            None => make_space(id, location(place)),
            Some(first) => kernel::create_active(id, first.id, root, root, location(place)),
        };
        Self::start_as(id, place, part, number, made).with_pages()
    }

    /// Answers its first faults.
    fn with_pages(self) -> Self {
        let actor = self;
        while let Ok(message) = ipc::receive(actor.id, Time::micros(3_000)) {
            let Some(_) = Fault::decode(&message) else { break };
            let _ = ipc::send(actor.id, &root_harness::image());
        }
        actor
    }

    /// Whoever is at `place` calls `partner`.
    pub fn calls(place: usize, partner: &Self) {
        PARTNERS[place].store(partner.id.0, Ordering::Relaxed);
    }

    /// The same without the kernel, and the partner is the thread at place `partner`.
    pub fn calls_locally(place: usize, partner: usize) {
        PARTNERS[place].store(local(partner).0, Ordering::Relaxed);
    }

    fn start_in(
        place: usize,
        part: Part,
        number: u32,
        make: impl FnOnce(ThreadId) -> Result<(), CallError>,
    ) -> Self {
        Self::start_as(STAGE.next_id(place), place, part, number, make)
    }

    fn start_as(
        id: ThreadId,
        place: usize,
        part: Part,
        number: u32,
        make: impl FnOnce(ThreadId) -> Result<(), CallError>,
    ) -> Self {
        PARTS[place].store(part as u64, Ordering::Relaxed);
        COUNTS[place].store(0, Ordering::Relaxed);
        assert!(make(id).is_ok(), "the kernel makes no thread");
        assert!(schedule::set_processor(id, number).is_ok(), "the kernel sends no thread there");
        STAGE.start(id, place, run);
        Self { id, place }
    }

    /// Its local id.
    pub fn local(&self) -> ThreadId {
        local(self.place)
    }

    /// What it has counted.
    pub fn count(&self) -> u64 {
        COUNTS[self.place].load(Ordering::Relaxed)
    }

    /// Whether it counts on, while this thread waits for a message without leaving the
    /// processor to anybody, or gives up.
    pub fn counts_on(&self) -> bool {
        let before = self.count();
        (0..200_000_000).any(|_| {
            core::hint::spin_loop();
            self.count() > before + 2
        })
    }

    /// Deletes the thread.
    pub fn stop(&self) {
        let _ = kernel::delete(self.id);
    }
}

extern "C" fn run() -> ! {
    let place = root_harness::own_place();
    let count = &COUNTS[place];
    match PARTS[place].load(Ordering::Relaxed) {
        0 => loop {
            alone::end_turn(count.fetch_add(1, Ordering::Relaxed));
        },
        1 => serve(count),
        2 => loop {
            let msg = Msg::default().words(&[count.fetch_add(1, Ordering::Relaxed)]);
            let _ = ipc::call(ThreadId::ROOT, &msg);
        },
        3 => loop {
            let own = OWN_ADDRESSES[place].load(Ordering::Relaxed);
            let _ = machine::read(if own == 0 { ADDRESS.load(Ordering::Relaxed) } else { own });
            alone::end_turn(count.fetch_add(1, Ordering::Relaxed));
        },
        4 => loop {
            let round = count.fetch_add(1, Ordering::Relaxed);
            let _ = schedule::set_processor(runtime::thread::me(), (round % 2) as u32);
        },
        5 => loop {
            let _ = holds(place, count, 0, 50);
        },
        6 => loop {
            talk(place, count);
        },
        7 => forge(place, count),
        8 => loop {
            talk(place, count);
            let to = ThreadId(PARTNERS[place].load(Ordering::Relaxed));
            if ipc::call(to, &Msg::default().string(b"a string")).is_ok() {
                WRONG.fetch_add(1, Ordering::Relaxed);
            }
        },
        9 => machine::return_from_nothing(),
        part => talk_alone(part, place, count),
    }
}

/// What is left of the parts: messages without the kernel, and moves.
fn talk_alone(part: u64, place: usize, count: &AtomicU64) -> ! {
    match part {
        10 => alone::serve(|word| word),
        11 => alone::talk(partner(place), count),
        12 => alone::lie(count),
        13 => moves::move_about(count),
        14 => moves::delete(count),
        15 => alone::serve(|word| holds(place, count, word, 4)),
        16 => alone::serve(|word| {
            let answer = ipc::local_call(partner(place), &Msg::default().words(&[word]));
            answer.map_or(!word, |msg| msg.get(0))
        }),
        17 => alone::serve(|word| {
            let _ = machine::read(ADDRESS.load(Ordering::Relaxed));
            word
        }),
        18 => alone::step(partner(place), count),
        19 => hidden::forge(),
        20 => hidden::serve_section(),
        21 => hidden::enter(count),
        22 => loop {
            let _ = machine::read_port(tables::PORT);
            alone::end_turn(count.fetch_add(1, Ordering::Relaxed));
        },
        23 => visits::agree(),
        24 => visits::lend(count),
        25 => visits::call(place, count),
        26 => moves::delete_partner(partner(place), count),
        27 => strings::ship(partner(place), count),
        28 => strings::take(count),
        29 => tables::relay(partner(place)),
        30 => tables::probe(place, count),
        _ => talks::reseat(place, count),
    }
}

/// Whom the thread at `place` calls.
fn partner(place: usize) -> ThreadId {
    ThreadId(PARTNERS[place].load(Ordering::Relaxed))
}

/// Returns `word`, and keeps another one in a vector register for so many `turns`.
fn holds(place: usize, count: &AtomicU64, word: u64, turns: u64) -> u64 {
    let kept = (0x5EED_0000 + place as u64) ^ word << 32;
    if machine::hold(kept, count, turns) != kept {
        WRONG.fetch_add(1, Ordering::Relaxed);
    }
    word
}

/// The thread `id` in a space of its own.
fn make_space(id: ThreadId, location: u64) -> Result<(), CallError> {
    kernel::create(id, id, ThreadId::ROOT, location)?;
    kernel::move_quota(id, 64)?;
    let utcbs = Fpage::memory(INITIAL_UTCB_AREA, INITIAL_UTCB_BITS, Rights::NONE);
    kernel::configure_space(id, Fpage::memory(INITIAL_KIP, 12, Rights::NONE), utcbs)?;
    kernel::set_pager(id, id, ThreadId::ROOT, !0)
}

/// One call, whose answer is looked at. A partner that is gone answers nothing.
pub fn talk(place: usize, count: &AtomicU64) {
    let round = count.load(Ordering::Relaxed);
    let to = ThreadId(PARTNERS[place].load(Ordering::Relaxed));
    let answer = ipc::call(to, &Msg::default().words(&[round]));
    match answer {
        Ok(msg) if msg.get(0) == round => {
            count.fetch_add(1, Ordering::Relaxed);
            alone::end_turn(round);
        }
        Ok(_) => drop(WRONG.fetch_add(1, Ordering::Relaxed)),
        Err(_) => core::hint::spin_loop(),
    }
}

/// Talks, and names everything that a fast path could take for somebody.
fn forge(place: usize, count: &AtomicU64) -> ! {
    let own = runtime::thread::me().0;
    let partner = PARTNERS[place].load(Ordering::Relaxed);
    let versions = [0, 1, 0x3000, 0x7246, 0xFFFF_FFC0, own & 0xFFFF_FFFF, partner & 0xFFFF_FFFF];
    // The numbers as they are, and with what stands above those that the array has room for.
    let low = (0..16).chain([own >> 32, partner >> 32, (own ^ partner) >> 32]);
    let low = low.chain([64, 127, (1 << abi::id::THREAD_BITS) - 1]);
    let numbers = low.flat_map(|number| {
        [0, 1, 0x4000, 0x7FFF].map(|above| number ^ above << abi::id::THREAD_BITS)
    });
    loop {
        for number in numbers.clone() {
            for version in versions {
                talk(place, count);
                let to = ThreadId(number << 32 | version);
                let is_somebody = to.0 == 0 || [own, partner, ThreadId::ROOT.0].contains(&to.0);
                // A thread of the system waits for nobody here, and interrupts for their handlers.
                let timeouts = Timeouts::new(Time::ZERO, Time::NEVER);
                if !is_somebody && ipc::call_within(to, &Msg::default(), timeouts).is_ok() {
                    WRONG.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        ROUNDS.fetch_add(1, Ordering::Relaxed);
    }
}

fn serve(count: &AtomicU64) -> ! {
    let mut request = ipc::wait(Time::NEVER);
    loop {
        request = match request {
            Ok((client, msg)) => {
                let done = count.fetch_add(1, Ordering::Relaxed);
                let answer = Msg::default().words(&[msg.get(0), done]);
                ipc::lipc(client, ThreadId::ANY, Timeouts::REPLY_WAIT, &answer)
            }
            Err(_) => ipc::wait(Time::NEVER),
        };
    }
}
