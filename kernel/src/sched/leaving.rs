//! Who goes on on other processors: the lists that the scheduler keeps for `elsewhere`, which carries that out. Whoever
//! becomes ready and runs elsewhere is noted here, and looked at on the way out of the kernel.

use core::cell::Cell;

use abi::ThreadId;

use crate::arch::{cpu, preemption};
use crate::thread::TcbRef;

/// The line that stands for "look at the other processors": no device has it, for on the 8259s
/// it is the cascade, and nobody may handle it.
pub const LINE: u32 = 2;

/// `thread` becomes ready: it leaves as soon as the kernel does, if that is all that it wants.
pub fn wants_to_leave(thread: TcbRef) {
    cpu().scheduler.leaving.add(thread.id.get());
    look_soon();
}

/// See to it that it is looked who has come back, and who leaves, on the way out of the kernel.
pub fn look_soon() {
    let lines = &cpu().pending_lines;
    lines.set(lines.get() | 1 << LINE);
}

/// Whether nothing but that look is noted.
#[must_use]
pub fn is_all() -> bool {
    cpu().pending_lines.get() == 1 << LINE
}

/// Lets interrupts in; whether anything is noted now but that look: who is made ready by it may have to run first.
#[must_use]
pub fn something_else_is_due() -> bool {
    preemption::let_in();
    cpu().pending_lines.get() & !(1 << LINE) != 0
}

/// The same; whether a look waits for what is noted.
#[must_use]
pub fn look_waits() -> bool {
    something_else_is_due() && cpu().scheduler.owes.get() != Owes::WholeLook
}

/// What the first processor does for others when somebody has run who goes first (`irq::ahead`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Owes {
    Nothing,
    /// A look, with what a tick does.
    Look,
    /// The same, and nobody goes first any more.
    WholeLook,
}

/// How many threads are remembered that may leave before somebody picks them.
const PLACES: usize = 16;
/// How many of them may be of processors that take nobody for now.
const MOST_KEPT: usize = PLACES / 2;

/// The ids of threads that have become ready here and go on elsewhere: nobody has to pick them
/// for that. If there are too many, who has been missed is looked for among all that are ready.
pub struct Leaving {
    ids: [Cell<ThreadId>; PLACES],
    count: Cell<usize>,
    /// There have been too many since they were looked for last.
    missed: Cell<bool>,
}

impl Leaving {
    /// Nobody.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ids: [const { Cell::new(ThreadId::NIL) }; PLACES],
            count: Cell::new(0),
            missed: Cell::new(false),
        }
    }

    pub fn add(&self, id: ThreadId) {
        match self.ids.get(self.count.get()) {
            Some(place) => {
                place.set(id);
                self.count.set(self.count.get() + 1);
            }
            None => self.missed.set(true),
        }
    }

    /// Whether there have been too many.
    pub fn has_missed(&self) -> bool {
        self.missed.get()
    }

    /// Who has been missed is looked for.
    pub fn begin_search(&self) {
        self.missed.set(false);
    }

    /// Remembers the thread `id`, which has been missed, unless it is known; whether there was room.
    pub fn has_room_for(&self, id: ThreadId) -> bool {
        if !self.knows(id) {
            self.add(id);
        }
        !self.missed.get()
    }

    fn knows(&self, id: ThreadId) -> bool {
        self.ids.iter().take(self.count.get()).any(|known| known.get() == id)
    }

    /// The thread `id`, whose processor takes nobody for now, is to be looked at again, if it can be remembered and
    /// leaves room for others, whose processors do.
    #[must_use]
    pub fn keep(&self, id: ThreadId) -> bool {
        let (count, is_known) = (self.count.get(), self.knows(id));
        if !is_known && count < MOST_KEPT {
            self.add(id);
        }
        is_known || count < MOST_KEPT
    }

    /// Those who are there now, who are taken out; meanwhile whoever has been taken may be added again.
    pub fn take_all(&self) -> impl Iterator<Item = ThreadId> {
        self.ids.iter().take(self.count.replace(0)).map(Cell::get)
    }

    /// Those who are there.
    pub fn all(&self) -> impl Iterator<Item = ThreadId> {
        self.ids.iter().take(self.count.get()).map(Cell::get)
    }

    /// There are more than are remembered.
    pub fn miss(&self) {
        self.missed.set(true);
    }

    /// Whether there is nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count.get() == 0 && !self.missed.get()
    }

    /// Whether there is nobody but the thread `id`.
    pub fn is_only(&self, id: ThreadId) -> bool {
        self.count.get() == 1 && !self.missed.get() && self.ids[0].get() == id
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        self.count.set(0);
    }
}

impl Default for Leaving {
    fn default() -> Self {
        Self::new()
    }
}
