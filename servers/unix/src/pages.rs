//! Mappings on their way to programs, and their revocation. Frames are pages of one
//! window; a mapping goes out as a map item of the answer that the thread gets anyway.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::RefCell;

use abi::{Fpage, MapItem, Rights, ThreadId};
use runtime::kernel;
use unix::machine::{Access, MachineThread, Mapping};
use unix::memory::FrameId;

/// Map items that fit into one answer beside its result.
pub const ITEMS: usize = 30;

/// The rights of an access.
fn rights(access: Access) -> Rights {
    let mut rights = Rights::NONE;
    for (flag, right) in
        [(Access::READ, Rights::R), (Access::WRITE, Rights::W), (Access::EXECUTE, Rights::X)]
    {
        if access.contains(flag) {
            rights = Rights(rights.0 | right.0);
        }
    }
    rights
}

/// Mappings that wait for their thread's answer.
pub struct Pages {
    /// Address of frame 0.
    base: u64,
    waiting: RefCell<BTreeMap<u64, Vec<MapItem>>>,
}

impl Pages {
    /// Frames are the pages from `base` on.
    pub fn new(base: u64) -> Self {
        Self { base, waiting: RefCell::new(BTreeMap::new()) }
    }

    fn fpage(&self, frame: FrameId, rights: Rights) -> Fpage {
        Fpage::memory(self.base + u64::from(frame.0) * 4096, 12, rights)
    }

    /// Notes mappings for the next answer to `thread`. More than fit are dropped: the
    /// program faults again.
    pub fn add(&self, thread: MachineThread, pages: &[Mapping]) {
        let mut waiting = self.waiting.borrow_mut();
        let items = waiting.entry(thread.0).or_default();
        for page in pages.iter().take(ITEMS - items.len().min(ITEMS)) {
            items.push(MapItem::map(self.fpage(page.frame, rights(page.access)), page.address));
        }
    }

    /// Whether no mapping waits for this thread.
    #[inline(always)]
    pub fn none_wait_for(&self, thread: ThreadId) -> bool {
        let waiting = self.waiting.borrow();
        waiting.is_empty() || !waiting.contains_key(&thread.0)
    }

    /// The mappings for `thread`, which is being answered.
    #[inline(always)]
    pub fn take(&self, thread: ThreadId) -> Option<Vec<MapItem>> {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.is_empty() {
            return None;
        }
        waiting.remove(&thread.0)
    }

    /// Nothing waits for a thread that is gone.
    pub fn forget(&self, thread: MachineThread) {
        self.waiting.borrow_mut().remove(&thread.0);
    }

    /// Takes rights away from all programs that have these frames. A frame that waits to
    /// be mapped with such a right is not mapped.
    pub fn revoke(&self, frames: &[FrameId], access: Access) {
        let revoked = rights(access);
        for batch in frames.chunks(60) {
            kernel::unmap_all(batch.iter().map(|frame| self.fpage(*frame, revoked)));
        }
        for items in self.waiting.borrow_mut().values_mut() {
            items.retain(|item| {
                let frame = (item.fpage.base() - self.base) / 4096;
                !frames.iter().any(|revoked| u64::from(revoked.0) == frame)
            });
        }
    }
}
