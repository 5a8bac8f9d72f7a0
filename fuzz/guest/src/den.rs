//! A den: the memory of one hostile task, at the same addresses in the judge's space.
//!
//! The hostile may overwrite all of it; the judge believes nothing that it finds
//! there without checking. Everything is atomic words: both sides read and write.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::ThreadId;

use crate::hostile::ACTIONS;

/// Threads of a hostile task that the judge looks after.
pub const THREADS: usize = 4;
/// Numbers that each task uses for its children.
pub const CHILDREN: usize = 12;
/// Thread ids that each task knows.
pub const IDS: usize = 48;
/// Tokens of procedure calls that each task knows.
pub const TOKENS: usize = 4;
/// Servers that each task knows.
pub const SERVERS: usize = 4;
/// Calls that are remembered per thread.
pub const REMEMBERED: usize = 32;
/// Bytes of a thread's stack.
pub const STACK: usize = 8192;
/// Bytes of plain memory for strings.
pub const SCRATCH: usize = 4 * 4096;

/// One remembered call.
#[repr(C)]
pub struct Call {
    /// Time stamp.
    pub at: AtomicU64,
    /// Action and address that is called.
    pub what: AtomicU64,
    /// Registers.
    pub words: [AtomicU64; 14],
}

/// What a hostile thread keeps.
#[repr(C)]
pub struct Thread {
    /// Random state.
    pub rng: AtomicU64,
    /// Calls so far.
    pub calls: AtomicU64,
    /// The last calls, in turn.
    pub last: [Call; REMEMBERED],
}

/// The first page or two.
#[repr(C, align(4096))]
pub struct Den {
    /// Who there is: own threads first, then the others.
    pub ids: [AtomicU64; IDS],
    /// How often each action is taken.
    pub weights: [AtomicU64; ACTIONS],
    /// Number of the task; decides what it may try.
    pub number: AtomicU64,
    /// Base of the thread numbers that the task uses for its children.
    pub children: AtomicU64,
    /// Last versions of the children's numbers, as far as the task knows.
    pub versions: [AtomicU64; CHILDREN],
    /// The servers that requests go to: root task, pager, console, Unix server. Only where
    /// they are.
    pub servers: [AtomicU64; SERVERS],
    /// Tokens of A-stacks that the task's threads have got.
    pub tokens: [AtomicU64; TOKENS],
    /// Who repairs the task's threads: their pager and exception handler.
    pub keeper: AtomicU64,
    /// UTCB of the first thread, counted from the first of the area.
    pub first_utcb: AtomicU64,
    /// The threads.
    pub threads: [Thread; THREADS],
    /// Their stacks.
    pub stacks: [[AtomicU64; STACK / 8]; THREADS],
    /// Memory for strings.
    pub scratch: [AtomicU64; SCRATCH / 8],
}

impl Default for Den {
    fn default() -> Self {
        Self::new()
    }
}

impl Den {
    /// An empty one.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ids: [const { AtomicU64::new(0) }; IDS],
            weights: [const { AtomicU64::new(0) }; ACTIONS],
            number: AtomicU64::new(0),
            children: AtomicU64::new(0),
            versions: [const { AtomicU64::new(1) }; CHILDREN],
            servers: [const { AtomicU64::new(0) }; SERVERS],
            tokens: [const { AtomicU64::new(0) }; TOKENS],
            keeper: AtomicU64::new(ThreadId::ROOT.0),
            first_utcb: AtomicU64::new(0),
            threads: [const {
                Thread {
                    rng: AtomicU64::new(0),
                    calls: AtomicU64::new(0),
                    last: [const {
                        Call {
                            at: AtomicU64::new(0),
                            what: AtomicU64::new(0),
                            words: [const { AtomicU64::new(0) }; 14],
                        }
                    }; REMEMBERED],
                }
            }; THREADS],
            stacks: [const { [const { AtomicU64::new(0) }; STACK / 8] }; THREADS],
            scratch: [const { AtomicU64::new(0) }; SCRATCH / 8],
        }
    }

    /// The den at `address`, where the caller's task has one.
    #[must_use]
    pub fn at(address: u64) -> &'static Self {
        // SAFETY: a den is atomic words only, any of which may hold anything; if it is not
        // mapped, its user's thread comes to harm, as hostile ones may.
        unsafe { &*(address as *const Self) }
    }

    /// Its address.
    #[must_use]
    pub fn base(&self) -> u64 {
        core::ptr::from_ref(self) as u64
    }

    /// The first address of thread `index`'s stack that is above all others.
    #[must_use]
    pub fn stack_top(&self, index: usize) -> u64 {
        self.stacks[index % THREADS].as_ptr() as u64 + STACK as u64
    }

    /// The thread that starts with stack pointer `sp`.
    #[must_use]
    pub fn thread_of(&self, sp: u64) -> usize {
        let distance = sp.wrapping_sub(self.stacks.as_ptr() as u64);
        (distance / STACK as u64) as usize % THREADS
    }

    /// The stack pointer with which thread `index` starts.
    #[must_use]
    pub fn start_of(&self, index: usize) -> u64 {
        self.stack_top(index) - 64
    }

    /// Address of the memory for strings.
    #[must_use]
    pub fn scratch_base(&self) -> u64 {
        self.scratch.as_ptr() as u64
    }

    /// Remembers a call of thread `index`.
    pub fn remember(&self, index: usize, at: u64, what: u64, words: &[u64; 14]) {
        let thread = &self.threads[index % THREADS];
        let number = thread.calls.load(Ordering::Relaxed) as usize;
        let call = &thread.last[number % REMEMBERED];
        call.at.store(at, Ordering::Relaxed);
        call.what.store(what, Ordering::Relaxed);
        for (slot, word) in call.words.iter().zip(words) {
            slot.store(*word, Ordering::Relaxed);
        }
        thread.calls.store(number as u64 + 1, Ordering::Relaxed);
    }
}
