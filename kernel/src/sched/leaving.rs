//! Who goes on on other processors: the lists that the scheduler keeps for `elsewhere`, which carries that out. Whoever
//! becomes ready and runs elsewhere is noted here, and looked at on the way out of the kernel.

use core::cell::Cell;

use abi::ThreadId;

use crate::arch::cpu;
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

/// How many threads are remembered that may leave before somebody picks them.
const PLACES: usize = 16;
/// How many of them may be of processors that take nobody for now.
const MOST_KEPT: usize = PLACES / 2;

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

    pub fn add(&self, id: ThreadId) {
        if let Some(place) = self.ids.get(self.count.get()) {
            place.set(id);
            self.count.set(self.count.get() + 1);
        }
    }

    /// The thread `id`, whose processor takes nobody for now, is to be looked at again, if it can be remembered and
    /// leaves room for others, whose processors do.
    #[must_use]
    pub fn keep(&self, id: ThreadId) -> bool {
        let count = self.count.get();
        let is_known = self.ids.iter().take(count).any(|known| known.get() == id);
        if !is_known && count < MOST_KEPT {
            self.add(id);
        }
        is_known || count < MOST_KEPT
    }

    /// Those who are there now, who are taken out; meanwhile whoever has been taken may be added again.
    pub fn take_all(&self) -> impl Iterator<Item = ThreadId> {
        self.ids.iter().take(self.count.replace(0)).map(Cell::get)
    }

    /// Whether there is nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count.get() == 0
    }

    /// Whether there is nobody but the thread `id`.
    pub fn is_only(&self, id: ThreadId) -> bool {
        self.count.get() == 1 && self.ids[0].get() == id
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
