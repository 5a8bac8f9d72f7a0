//! Places for threads of the root task's: number, UTCB and stack.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::layout::INITIAL_UTCB_AREA;
use abi::{CallError, ThreadId, utcb};
use runtime::{Msg, ipc, kernel};

/// The number of the thread at place 0.
pub const FIRST_NUMBER: u32 = abi::id::USER_BASE + 16;
const STACK_WORDS: usize = 1024;

#[repr(align(16))]
struct Stack([AtomicU64; STACK_WORDS]);

/// `N` of them.
pub struct Places<const N: usize> {
    stacks: [Stack; N],
    versions: [AtomicU64; N],
}

impl<const N: usize> Places<N> {
    /// Nobody is there.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            stacks: [const { Stack([const { AtomicU64::new(0) }; STACK_WORDS]) }; N],
            versions: [const { AtomicU64::new(0) }; N],
        }
    }

    /// An id for the thread at `place` that none had.
    #[must_use]
    pub fn next_id(&self, place: usize) -> ThreadId {
        let before = self.versions[place].fetch_add(1, Ordering::Relaxed) as u32;
        // The last six bits of a global id are not all 0.
        ThreadId::global(FIRST_NUMBER + place as u32, before + before / 63 + 1)
    }

    /// Makes the thread `id` of this space at `place`, which waits for its start.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn make(&self, id: ThreadId, place: usize) -> Result<(), CallError> {
        let root = ThreadId::ROOT;
        kernel::create_active(id, root, root, root, location(place))
    }

    /// Starts the thread `id` at `place`: it goes to `entry`, on the place's stack.
    pub fn start(&self, id: ThreadId, place: usize, entry: extern "C" fn() -> !) {
        let stack = &self.stacks[place].0;
        let sp = stack.as_ptr() as u64 + size_of_val(stack) as u64 - 8;
        let _ = ipc::send(id, &Msg::default().words(&[entry as usize as u64, sp]));
    }
}

impl<const N: usize> Default for Places<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Where the thread at `place` has its UTCB.
#[must_use]
pub const fn location(place: usize) -> u64 {
    INITIAL_UTCB_AREA + (place as u64 + 2) * utcb::SIZE
}

/// The local id of the thread at `place`.
#[must_use]
pub const fn local(place: usize) -> ThreadId {
    ThreadId::local(location(place) + utcb::POINTER_OFFSET)
}

/// The place of the thread that asks.
#[must_use]
pub fn own_place() -> usize {
    ((runtime::utcb::pointer() - local(0).0) / utcb::SIZE) as usize
}
