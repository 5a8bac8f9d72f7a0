//! Tasks: an address space with its threads, its chief, its quota.
//!
//! The memory side (page tables, mappings, quota) is `mem::space::AddressSpace`;
//! this module owns what makes it a task: the threads, the chief, the authority
//! over other tasks (design 5.6), the UTCB and KIP areas.

pub mod quota_control;
pub mod space_control;
pub mod task_control;

use core::cell::Cell;

use abi::{CallError, Rights, ThreadId};

use crate::arch::global::global;
pub use crate::mem::SpaceRef;
use crate::mem::space::Area;
use crate::mem::{AddressSpace, NoMemory, Owned, PhysFrame};
use crate::ring::{self, Links, Ring};
use crate::thread;
use crate::thread::tcb::{Armed, Siblings};
use crate::thread::{LinkagesRef, TcbRef};
use crate::usermem::CurrentWord;

/// Deepest nesting of clans; bounds the walk to a common chief.
pub const MAX_DEPTH: u32 = 64;
/// Pages a new task gets from its creator's quota unless it is given more.
pub const DEFAULT_QUOTA_PAGES: u64 = 64;

/// The task part of an address space; lives inside it.
#[derive(Default)]
pub struct Task {
    /// The task's threads.
    pub threads: Ring<Siblings>,
    /// Number of threads.
    pub thread_count: Cell<u64>,
    /// The task that created this one; `None` for the initial ones.
    pub chief: Cell<Option<SpaceRef>>,
    /// The tasks whose chief it is, and links of those of one chief.
    pub below: Ring<Below>,
    /// See `below`.
    pub beside: Links<SpaceRef>,
    /// Number of chiefs above.
    pub depth: Cell<u32>,
    /// σ0, σ1, root: may control every task (X.2 5.3).
    pub privileged: Cell<bool>,
    /// What the chief gave.
    pub limits: task_control::Limits,
    /// The thread that was destroying the task has been deleted.
    pub abandoned: Cell<bool>,
    /// New threads use no vector registers: one of the task's has said so.
    pub no_vector: Cell<bool>,
    /// The threads that may exchange messages in user mode.
    pub armed: Ring<Armed>,
    /// How many they are.
    pub armed_count: Cell<u32>,
    /// How many of them wait in public, and [`ENTANGLED`] once any has taken part in procedure calls:
    /// 0 if none that goes can leave a partner behind.
    pub entangled: Cell<u64>,
    /// The task's bindings, and those that it has inherited ([`crate::lrpc`]).
    pub linkages: Cell<Option<LinkagesRef>>,
    /// See `linkages`.
    pub inherited: Ring<Inherited>,
    /// Which of the task's armed threads runs, as user mode knows it.
    pub current_word: CurrentWord,
    /// Frames behind the UTCB area.
    pub utcb_pages: Cell<u64>,
    /// Links of all spaces.
    pub links: Links<SpaceRef>,
}

impl Owned for AddressSpace {
    type Owner = Task;
}

/// See [`Task::entangled`].
pub const ENTANGLED: u64 = 1 << 32;

ring::kinds! {
    /// All tasks.
    Tasks of SpaceRef: task.links;
    /// The tasks of one chief.
    Below of SpaceRef: task.beside;
    /// Bindings whose clients have ended, and for which their chief pays.
    Inherited of LinkagesRef: links;
}

/// All spaces.
#[derive(Default)]
pub struct Spaces {
    spaces: Ring<Tasks>,
    count: Cell<u64>,
    next_id: Cell<u32>,
    /// Bindings made since boot.
    bindings: Cell<u64>,
    /// How many have been abandoned in the middle of their destruction.
    abandoned: Cell<u64>,
}

impl Spaces {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            spaces: Ring::new(),
            count: Cell::new(0),
            abandoned: Cell::new(0),
            next_id: Cell::new(0),
            bindings: Cell::new(0),
        }
    }

    /// Number of spaces.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// A number for a new space, unique since boot.
    #[must_use]
    pub fn new_id(&self) -> u32 {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        id
    }

    /// What tells a new binding from all others since boot, from 1 on.
    #[must_use]
    pub fn new_generation(&self) -> u64 {
        self.bindings.set(self.bindings.get() + 1);
        self.bindings.get()
    }

    /// Enters a space.
    pub fn insert(&self, space: SpaceRef) {
        self.spaces.append(space);
        self.count.set(self.count.get() + 1);
    }

    /// Takes a space out.
    pub fn remove(&self, space: SpaceRef) {
        self.spaces.remove(space);
        self.count.set(self.count.get() - 1);
    }

    /// A half-destroyed space whose destroyer is gone: the caller's to destroy now.
    #[must_use]
    pub fn take_abandoned(&self) -> Option<SpaceRef> {
        if self.abandoned.get() == 0 {
            return None;
        }
        let found = self.spaces.iter().find(|space| space.task.abandoned.replace(false));
        found.inspect(|_| self.abandoned.set(self.abandoned.get() - 1))
    }

    /// Whoever was destroying `space` is gone.
    pub fn abandon(&self, space: SpaceRef) {
        if !space.task.abandoned.replace(true) {
            self.abandoned.set(self.abandoned.get() + 1);
        }
    }

    /// Calls `visit` for every space. `visit` must not take any out.
    pub fn for_each(&self, visit: impl FnMut(SpaceRef)) {
        self.spaces.each(visit);
    }

    /// All spaces, for whoever may stop on the way. None may be taken out meanwhile.
    pub fn all(&self) -> impl Iterator<Item = SpaceRef> {
        self.spaces.iter()
    }
}

global! {
    /// All spaces of this machine.
    pub fn spaces() -> Spaces = Spaces::new();
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
        let below = target.is_some_and(|space| space.is_below(self));
        if below { Ok(()) } else { Err(CallError::NoPrivilege) }
    }

    /// Gives the task another chief, or none.
    pub fn set_chief(self, chief: Option<SpaceRef>) {
        if let Some(before) = self.task.chief.replace(chief) {
            before.task.below.remove(self);
        }
        if let Some(chief) = chief {
            chief.task.below.append(self);
        }
    }

    /// `error` for those who may call for everything, "no privilege" for others.
    #[must_use]
    pub fn refusal(self, error: CallError) -> CallError {
        if self.is_privileged() { error } else { CallError::NoPrivilege }
    }

    /// Whether SpaceControl has given the space its areas.
    #[must_use]
    pub fn is_initialised(self) -> bool {
        self.areas().0.end != 0
    }

    /// Where the KIP is.
    #[must_use]
    pub fn kip_area(self) -> Area {
        self.areas().0
    }

    /// Where UTCBs may be.
    #[must_use]
    pub fn utcb_area(self) -> Area {
        self.areas().1
    }

    /// The frame behind the page at `page` of the UTCB area; a new one, paid by the
    /// space, if there is none yet.
    pub fn utcb_page(self, page: u64) -> Result<u64, NoMemory> {
        match self.any_kernel_page(page) {
            Some((phys, false)) => return Ok(phys),
            // A-stacks are there, which another space sees.
            Some((_, true)) => return Err(NoMemory),
            None => {}
        }
        let frame = self.quota().take_zeroed_frame()?;
        if let Err(error) = self.map_kernel_page(page, frame.address(), Rights::RW) {
            self.quota().give_back(frame);
            return Err(error);
        }
        self.task.utcb_pages.set(self.task.utcb_pages.get() + 1);
        Ok(frame.address())
    }

    /// Gives back the frame of one page of the UTCB area; whether there was one.
    pub fn drop_utcb_page(self, page: u64) -> bool {
        if self.kernel_page(page).is_none() {
            return false;
        }
        let Some(phys) = self.unmap_kernel_page(page) else { return false };
        self.quota().give_back(PhysFrame::at(phys));
        self.task.utcb_pages.set(self.task.utcb_pages.get() - 1);
        true
    }
}

/// Creates an empty space whose chief and giver of kernel memory is `creator`.
pub fn create(creator: SpaceRef) -> Result<SpaceRef, CallError> {
    if creator.task.depth.get() >= MAX_DEPTH {
        return Err(CallError::InvalidSpace);
    }
    let unused = creator.quota().limit().saturating_sub(creator.quota().used());
    let pages = DEFAULT_QUOTA_PAGES.min(unused / 2);
    let made = AddressSpace::create(spaces().new_id(), creator.quota(), pages);
    let space = made.map_err(|_| CallError::NoMemory)?;
    space.set_chief(Some(creator));
    space.task.depth.set(creator.task.depth.get() + 1);
    space.task.limits.ceilings.set(creator.ceilings());
    spaces().insert(space);
    Ok(space)
}

/// Whether `thread` is the first thread of σ0, σ1 or the root task, without which the system is dead.
#[must_use]
pub fn is_initial(thread: TcbRef) -> bool {
    let privileged = thread.space().is_some_and(SpaceRef::is_privileged);
    privileged && [ThreadId::SIGMA0, ThreadId::SIGMA1, ThreadId::ROOT].contains(&thread.id.get())
}

/// Takes back a space in which no thread could be made: nothing but its first frames exists.
pub fn discard(space: SpaceRef, creator: SpaceRef) {
    spaces().remove(space);
    space.set_chief(None);
    space.free(creator.quota());
}

/// The thread that `id` names for `caller`, if `caller` may control it. If not, the error
/// does not tell whether anybody has `id`; `missing` is for those who may know.
pub fn controlled(caller: TcbRef, id: ThreadId, missing: CallError) -> Result<TcbRef, CallError> {
    let own = caller.space().ok_or(CallError::NoPrivilege)?;
    let thread = thread::resolve(caller, id).ok_or(own.refusal_about(id, missing))?;
    own.may_control(thread.space()).map(|()| thread)
}
