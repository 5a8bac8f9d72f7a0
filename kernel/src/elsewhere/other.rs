//! What the first processor keeps of another.

use core::cell::Cell;

use abi::inspect::Back;

use super::party::Party;
use super::queueing::{self, make_ready};
use crate::arch::clock;
use crate::between::set::Processors;
use crate::elsewhere::visits;
use crate::sched::ready::ReadyQueue;
use crate::space::SpaceRef;
use crate::thread::TcbRef;

/// So many calls, in so many µs, and threads stay on the first processor, or go alone, for the
/// rest of that time.
const MOST_CALLS: u32 = 8;
const REST_US: u64 = 2_000;

/// What the first processor keeps of another.
pub struct Other {
    /// Threads that are away and wait for it; exactly those.
    pub(super) ready: ReadyQueue,
    /// Who is in its berth.
    pub(super) guest: Cell<Option<TcbRef>>,
    /// Clock value up to which that one's time has been charged, µs.
    pub(super) charged_us: Cell<u64>,
    /// Who is there together.
    pub(super) party: Party,
    /// How often changes of tables have called somebody back.
    calls: Often,
    /// How often messages from here have.
    questions: Often,
    /// Why threads have come back, how often.
    backs: [Cell<u64>; Back::ALL.len()],
}

/// Counts what comes often; the count begins anew now and then.
struct Often {
    count: Cell<u32>,
    since_us: Cell<u64>,
}

impl Often {
    const fn new() -> Self {
        Self { count: Cell::new(0), since_us: Cell::new(0) }
    }

    /// It has come; whether that is too often now.
    fn note(&self, now_us: u64) -> bool {
        let mut count = self.count.get();
        if now_us >= self.since_us.get() + REST_US {
            self.since_us.set(now_us);
            count = 0;
        }
        self.count.set(count + 1);
        count + 1 >= MOST_CALLS
    }

    /// Whether it has come too often lately.
    #[inline(always)]
    fn is_too_often(&self) -> bool {
        self.count.get() >= MOST_CALLS && self.lasts()
    }

    #[cold]
    #[inline(never)]
    fn lasts(&self) -> bool {
        clock::now_us() < self.since_us.get() + REST_US
    }
}

impl Other {
    /// Nobody is there.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ready: ReadyQueue::new(),
            guest: Cell::new(None),
            charged_us: Cell::new(0),
            party: Party::new(),
            calls: Often::new(),
            questions: Often::new(),
            backs: [const { Cell::new(0) }; Back::ALL.len()],
        }
    }

    /// Somebody has come back.
    pub fn note_back(&self, why: Back) {
        let count = &self.backs[why as usize % Back::ALL.len()];
        count.set(count.get() + 1);
    }

    /// How often threads have come back, for each reason in the order of [`Back`].
    #[must_use]
    pub fn came_back(&self) -> &[Cell<u64>] {
        &self.backs
    }

    /// A change of tables is about to stop somebody; whether that comes too often: then nobody goes there for
    /// a while.
    #[must_use]
    pub(super) fn note_change(&self, now_us: u64) -> bool {
        self.calls.note(now_us)
    }

    /// Whether anybody who is there uses the tables of `space`.
    pub(super) fn uses(&self, space: SpaceRef) -> bool {
        let is_its = |guest: TcbRef| guest.space() == Some(space);
        self.guest.get().is_some_and(is_its) || self.party.has_space(space)
    }

    /// Whether nobody goes there for a while: whoever has a page from somebody who takes it
    /// back all the time would be called back before its first instruction.
    pub(super) fn rests(&self) -> bool {
        self.calls.is_too_often()
    }

    /// Somebody here has asked for one of a party.
    pub(super) fn note_question(&self) {
        let _ = self.questions.note(clock::now_us());
    }

    /// Whether everybody goes there alone for a while: whoever is asked for all the time would
    /// take those with it from their work who are there at the same time.
    pub(super) fn keeps_to_itself(&self) -> bool {
        self.questions.is_too_often()
    }

    /// `thread` waits for it no longer: it is ready here.
    #[inline(never)]
    pub fn gives_up(&self, thread: TcbRef) {
        self.ready.remove(thread);
        make_ready(thread);
    }

    /// The highest priority that anybody who is there can have.
    #[must_use]
    pub fn most(&self) -> u8 {
        let Some(guest) = self.guest.get() else { return 0 };
        if self.party.hides() {
            return guest.space().map_or(u8::MAX, |space| space.ceilings().priority);
        }
        self.party.most().unwrap_or(guest.priority.get())
    }

    /// Who waits for the processor.
    #[inline(always)]
    #[must_use]
    pub fn queue(&self) -> &ReadyQueue {
        &self.ready
    }

    /// Who is first to go there.
    #[must_use]
    pub fn first(&self) -> Option<TcbRef> {
        queueing::first(&self.ready)
    }

    /// Whether each of its seats is paid by whose it is; for the checker.
    #[must_use]
    pub fn has_sound_seats(&self, number: u32) -> bool {
        self.party.seats.are_sound(number)
    }

    /// Who is there.
    #[inline(always)]
    #[must_use]
    pub fn guest(&self) -> Option<TcbRef> {
        self.guest.get()
    }
}

impl Default for Other {
    fn default() -> Self {
        Self::new()
    }
}

impl Processors {
    /// The one that is among them, if there is only one, with what is kept of it.
    pub fn only(&self) -> Option<(u32, &'static Other)> {
        let number = self.only_number()?;
        Some((number, visits::other(number)?))
    }

    /// Those that are among them now, with what is kept of each.
    pub fn all(&self) -> impl Iterator<Item = (u32, &'static Other)> + use<> {
        self.numbers().map_while(|number| Some((number, visits::other(number)?)))
    }
}

/// Whether `number` is that of a processor that runs.
#[must_use]
pub fn exists(number: u64) -> bool {
    number < u64::from(visits::processors())
}
