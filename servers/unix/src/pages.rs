//! Mappings on their way to programs, and their revocation. Frames are pages of one
//! window; a mapping goes out as a map item of the answer that the thread gets anyway.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use abi::{Fpage, MapItem, Rights, ThreadId};
use runtime::kernel;
use unix::machine::{Access, MachineThread, Mapping};
use unix::memory::FrameId;

/// Map items that fit into one answer beside its result.
pub const ITEMS: usize = 30;

/// The rights of an access.
const fn rights(access: Access) -> Rights {
    Rights(access.bits())
}

const _: () = assert!(
    Access::READ.bits() == Rights::R.0
        && Access::WRITE.bits() == Rights::W.0
        && Access::EXECUTE.bits() == Rights::X.0,
    "accesses have the bits of rights"
);

/// Mappings that wait for their thread's answer.
pub struct Pages {
    /// Address of frame 0.
    base: u64,
    /// How many threads there are mappings for.
    threads: Cell<usize>,
    /// Those of one thread: hardly ever there are more.
    first: RefCell<Option<(u64, Vec<MapItem>)>>,
    /// Those of further threads.
    waiting: RefCell<BTreeMap<u64, Vec<MapItem>>>,
    /// An empty list, kept for its capacity.
    spare: RefCell<Vec<MapItem>>,
}

impl Pages {
    /// Frames are the pages from `base` on.
    pub fn new(base: u64) -> Self {
        Self {
            base,
            threads: Cell::new(0),
            first: RefCell::default(),
            waiting: RefCell::default(),
            spare: RefCell::new(Vec::with_capacity(ITEMS)),
        }
    }

    fn fpage(&self, frame: FrameId, rights: Rights) -> Fpage {
        Fpage::memory(self.base + u64::from(frame.0) * 4096, 12, rights)
    }

    /// Notes mappings for the next answer to `thread`. More than fit are dropped: the
    /// program faults again.
    pub fn add(&self, thread: MachineThread, pages: &[Mapping]) {
        let (mut first, mut waiting) = (self.first.borrow_mut(), self.waiting.borrow_mut());
        let items = match &mut *first {
            Some((of, items)) if *of == thread.0 => items,
            None if waiting.is_empty() => &mut first.insert((thread.0, self.spare.take())).1,
            _ => waiting.entry(thread.0).or_default(),
        };
        let room = ITEMS.saturating_sub(items.len());
        items.extend(
            pages.iter().take(room).map(|page| {
                MapItem::map(self.fpage(page.frame, rights(page.access)), page.address)
            }),
        );
        self.threads.set(usize::from(first.is_some()) + waiting.len());
    }

    /// Whether no mapping waits for this thread.
    #[inline(always)]
    pub fn none_wait_for(&self, thread: ThreadId) -> bool {
        self.threads.get() == 0 || !self.some_wait_for(thread)
    }

    fn some_wait_for(&self, thread: ThreadId) -> bool {
        self.first.borrow().as_ref().is_some_and(|(of, _)| *of == thread.0)
            || self.waiting.borrow().contains_key(&thread.0)
    }

    /// The mappings for `thread`, which is being answered; see [`Self::give_back`].
    #[inline(always)]
    pub fn take(&self, thread: ThreadId) -> Option<Vec<MapItem>> {
        if self.threads.get() == 0 { None } else { self.take_some(thread) }
    }

    fn take_some(&self, thread: ThreadId) -> Option<Vec<MapItem>> {
        let mut first = self.first.borrow_mut();
        let taken = match first.as_ref() {
            Some((of, _)) if *of == thread.0 => first.take().map(|(_, items)| items),
            _ => self.waiting.borrow_mut().remove(&thread.0),
        };
        self.threads.set(usize::from(first.is_some()) + self.waiting.borrow().len());
        taken
    }

    /// The mappings are in the answer: their list can serve again.
    #[inline(always)]
    pub fn give_back(&self, mut items: Vec<MapItem>) {
        items.clear();
        drop(self.spare.replace(items));
    }

    /// Nothing waits for a thread that is gone.
    pub fn forget(&self, thread: MachineThread) {
        drop(self.take(ThreadId(thread.0)));
    }

    /// Takes rights away from all programs that have these frames. A frame that waits to
    /// be mapped with such a right is not mapped.
    pub fn revoke(&self, frames: &[FrameId], access: Access) {
        let revoked = rights(access);
        for batch in frames.chunks(60) {
            kernel::unmap_all(batch.iter().map(|frame| self.fpage(*frame, revoked)));
        }
        let (mut first, mut waiting) = (self.first.borrow_mut(), self.waiting.borrow_mut());
        let first = first.as_mut().map(|(_, items)| items);
        for items in first.into_iter().chain(waiting.values_mut()) {
            items.retain(|item| {
                let frame = (item.fpage.base() - self.base) / 4096;
                !frames.iter().any(|revoked| u64::from(revoked.0) == frame)
            });
        }
    }
}
