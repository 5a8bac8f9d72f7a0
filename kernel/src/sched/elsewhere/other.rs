//! What the first processor keeps of another, and whom it lets go there soon.

use core::cell::Cell;

use abi::ThreadId;
use abi::inspect::Back;

use super::party::Party;
use crate::arch::{TcbRef, clock, visits};
use crate::sched::ready::ReadyQueue;
use crate::space::SpaceRef;

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

    fn note(&self, now_us: u64) {
        if now_us >= self.since_us.get() + REST_US {
            self.since_us.set(now_us);
            self.count.set(0);
        }
        self.count.set(self.count.get() + 1);
    }

    /// Whether it has come too often lately.
    fn is_too_often(&self) -> bool {
        self.count.get() >= MOST_CALLS && clock::now_us() < self.since_us.get() + REST_US
    }

    /// The same behind [`Self::note`].
    fn has_become_too_often(&self) -> bool {
        self.count.get() >= MOST_CALLS
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
    pub(super) fn note_back(&self, why: Back) {
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
        self.calls.note(now_us);
        self.calls.has_become_too_often()
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
        self.questions.note(clock::now_us());
    }

    /// Whether everybody goes there alone for a while: whoever is asked for all the time would
    /// take those with it from their work who are there at the same time.
    pub(super) fn keeps_to_itself(&self) -> bool {
        self.questions.is_too_often()
    }

    /// Who waits for the processor; for the checker.
    #[must_use]
    pub fn queue(&self) -> &ReadyQueue {
        &self.ready
    }

    /// Whether each of its seats is paid by whose it is; for the checker.
    #[must_use]
    pub fn has_sound_seats(&self, number: u32) -> bool {
        self.party.seats.are_sound(number)
    }

    /// Who is there.
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

/// Other processors, by their numbers: those of which something is true.
pub struct Processors(Cell<u64>);

impl Processors {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self(Cell::new(0))
    }

    pub(super) fn add(&self, number: u32) {
        self.0.set(self.0.get() | 1 << (number & 63));
    }

    pub(super) fn remove(&self, number: u32) {
        self.0.set(self.0.get() & !(1 << (number & 63)));
    }

    pub(super) fn add_all(&self, others: &Self) {
        self.0.set(self.0.get() | others.0.get());
    }

    /// Forgets all of them.
    pub(super) fn clear(&self) {
        self.0.set(0);
    }

    /// Those that are not among `others`.
    pub(super) fn without(&self, others: &Self) -> Self {
        Self(Cell::new(self.0.get() & !others.0.get()))
    }

    /// Whether there is none.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.get() == 0
    }

    /// Whether number `number` is among them.
    #[must_use]
    pub fn has(&self, number: u32) -> bool {
        self.0.get() >> (number & 63) & 1 != 0
    }

    /// Those that are among them now.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        let mut left = self.0.get();
        core::iter::from_fn(move || {
            let number = left.trailing_zeros();
            left &= left.checked_sub(1)?;
            Some(number)
        })
    }

    /// The one that is among them, if there is only one, with what is kept of it.
    pub(super) fn only(&self) -> Option<(u32, &'static Other)> {
        let number = self.0.get().trailing_zeros();
        if !self.0.get().is_power_of_two() {
            return None;
        }
        Some((number, visits::other(number)?))
    }

    /// Those that are among them now, with what is kept of each.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &'static Other)> + use<> {
        self.numbers().map_while(|number| Some((number, visits::other(number)?)))
    }
}

impl Default for Processors {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether `number` is that of a processor that runs.
#[must_use]
pub fn exists(number: u64) -> bool {
    number < u64::from(visits::processors())
}

/// How many threads are remembered that may leave before somebody picks them.
const PLACES: usize = 16;

/// The ids of threads that have become ready here and go on elsewhere: nobody has to pick them
/// for that. If there are too many, or one has gone, that changes nothing but the time at which
/// they leave.
pub struct Leaving {
    ids: [Cell<ThreadId>; PLACES],
    count: Cell<usize>,
}

impl Leaving {
    /// Nobody.
    #[must_use]
    pub const fn new() -> Self {
        Self { ids: [const { Cell::new(ThreadId::NIL) }; PLACES], count: Cell::new(0) }
    }

    pub(super) fn add(&self, id: ThreadId) {
        if let Some(place) = self.ids.get(self.count.get()) {
            place.set(id);
            self.count.set(self.count.get() + 1);
        }
    }

    /// Those who are there now, who are taken out; meanwhile whoever has been taken may be added again.
    pub(super) fn take_all(&self) -> impl Iterator<Item = ThreadId> {
        self.ids.iter().take(self.count.replace(0)).map(Cell::get)
    }

    /// Whether there is nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count.get() == 0
    }

    /// Whether there is nobody but the thread `id`.
    pub(super) fn is_only(&self, id: ThreadId) -> bool {
        self.count.get() == 1 && self.ids[0].get() == id
    }

    /// Forgets all of them.
    pub(super) fn clear(&self) {
        self.count.set(0);
    }
}

impl Default for Leaving {
    fn default() -> Self {
        Self::new()
    }
}
