//! Tasks: an address space with its threads, its chief, its quota.
//!
//! The memory side (page tables, mappings, quota) is `mem::space::AddressSpace`;
//! this module owns what makes it a task: the threads, the chief, the authority
//! over other tasks (design 5.6), the UTCB and KIP areas.

pub mod control;
pub mod destroy;
pub mod quota;

use core::cell::Cell;

use abi::{CallError, ThreadId};

use crate::arch::{TcbRef, cpu};
pub use crate::mem::space::SpaceRef;

/// Deepest nesting of clans; bounds the walk to a common chief.
const MAX_DEPTH: u32 = 64;
/// Pages a new task gets from its creator's quota unless it is given more.
pub const DEFAULT_QUOTA_PAGES: u64 = 64;

/// The task part of an address space; lives inside it.
#[derive(Default)]
pub struct Task {
    /// Ring of the task's threads.
    pub threads: Cell<Option<TcbRef>>,
    /// Number of threads.
    pub thread_count: Cell<u64>,
    /// The task that created this one; `None` for the initial ones.
    pub chief: Cell<Option<SpaceRef>>,
    /// Number of chiefs above.
    pub depth: Cell<u32>,
    /// σ0, σ1, root: may control every task (X.2 5.3).
    pub privileged: Cell<bool>,
    /// Links of all spaces.
    pub next: Cell<Option<SpaceRef>>,
    /// Links of all spaces.
    pub prev: Cell<Option<SpaceRef>>,
}

/// All spaces, as a doubly linked list, newest first.
#[derive(Default)]
pub struct Spaces {
    first: Cell<Option<SpaceRef>>,
    count: Cell<u64>,
    next_id: Cell<u64>,
}

impl Spaces {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: Cell::new(None), count: Cell::new(0), next_id: Cell::new(0) }
    }

    /// Number of spaces.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// A number for a new space, unique since boot.
    #[must_use]
    pub fn new_id(&self) -> u64 {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        id
    }

    /// Enters a space.
    pub fn insert(&self, space: SpaceRef) {
        let old = self.first.replace(Some(space));
        space.task.next.set(old);
        space.task.prev.set(None);
        if let Some(old) = old {
            old.task.prev.set(Some(space));
        }
        self.count.set(self.count.get() + 1);
    }

    /// Takes a space out.
    pub fn remove(&self, space: SpaceRef) {
        let (next, prev) = (space.task.next.take(), space.task.prev.take());
        match prev {
            Some(prev) => prev.task.next.set(next),
            None => self.first.set(next),
        }
        if let Some(next) = next {
            next.task.prev.set(prev);
        }
        self.count.set(self.count.get() - 1);
    }

    /// Calls `visit` for every space.
    pub fn for_each(&self, mut visit: impl FnMut(SpaceRef)) {
        let mut next = self.first.get();
        while let Some(space) = next {
            next = space.task.next.get();
            visit(space);
        }
    }
}

impl SpaceRef {
    /// Whether the task may call for everything (σ0, σ1, root).
    #[must_use]
    pub fn is_privileged(self) -> bool {
        self.task.privileged.get()
    }

    /// Whether this task may control `target`: itself, a task below it, or any if privileged.
    pub fn may_control(self, target: Option<SpaceRef>) -> Result<(), CallError> {
        if self.is_privileged() {
            return Ok(());
        }
        let mut step = target;
        while let Some(space) = step {
            if space == self {
                return Ok(());
            }
            step = space.task.chief.get();
        }
        Err(CallError::NoPrivilege)
    }
}

/// Creates an empty space whose chief and giver of kernel memory is `creator`.
pub fn create(creator: SpaceRef) -> Result<SpaceRef, CallError> {
    if creator.task.depth.get() >= MAX_DEPTH {
        return Err(CallError::InvalidSpace);
    }
    let pages = DEFAULT_QUOTA_PAGES.min(creator.quota().left() / 2);
    let gift = creator.quota().split(pages).map_err(|_| CallError::NoMemory)?;
    let space = match SpaceRef::create(cpu().spaces.new_id(), gift) {
        Ok(space) => space,
        Err(gift) => {
            creator.quota().join(gift);
            return Err(CallError::NoMemory);
        }
    };
    space.task.chief.set(Some(creator));
    space.task.depth.set(creator.task.depth.get() + 1);
    cpu().spaces.insert(space);
    Ok(space)
}

/// Whether `thread` is the first thread of σ0, σ1 or the root task, without which the system is dead.
#[must_use]
pub fn is_initial(thread: TcbRef) -> bool {
    [ThreadId::SIGMA0, ThreadId::SIGMA1, ThreadId::ROOT].contains(&thread.id.get())
}
