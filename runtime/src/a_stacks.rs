//! A-stacks (Bershad et al. 1990, 3.2) as a task sees them: where they can lie, and what is on them.
//!
//! They lie in the part of the task's UTCB area where no UTCB is. The other side can write an A-stack at any
//! time: words are read once, bytes copied out, and no reference ever leads there.

use core::num::NonZeroU64;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use proto::layout::{A_STACK_PAGES, A_STACKS};

use crate::block;
use crate::window::PAGE;

/// Bytes of a message's words on an A-stack: those that no register takes. Strings lie behind them.
const WORDS_BYTES: u64 = 512;
/// How many words that are.
const WORDS: usize = WORDS_BYTES as usize / 8;
/// Bytes of the longest string on an A-stack.
pub const STRING_BYTES: usize = (PAGE - WORDS_BYTES) as usize;

/// The pages that are somebody's, a bit each.
static TAKEN: AtomicU64 = AtomicU64::new(0);
const _: () = assert!(A_STACK_PAGES <= 64, "a bit each");

/// A page of the task's where an A-stack can be, as long as this lives.
#[derive(Debug)]
pub struct Place(u64);

impl Place {
    /// A free one.
    #[must_use]
    pub fn take() -> Option<Self> {
        let free = |taken: u64| {
            let index = u64::from(taken.trailing_ones());
            (index < A_STACK_PAGES).then(|| taken | 1 << index)
        };
        let before = TAKEN.fetch_update(Relaxed, Relaxed, free).ok()?;
        Some(Self(before.trailing_ones().into()))
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> u64 {
        A_STACKS + self.0 * PAGE
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        TAKEN.fetch_and(!(1 << self.0), Relaxed);
    }
}

/// An A-stack of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AStack(NonZeroU64);

impl AStack {
    /// The one at `address`, if one can be there; whether it is there its users learn by touching it.
    #[must_use]
    #[inline(always)]
    pub const fn at(address: u64) -> Option<Self> {
        let offset = address.wrapping_sub(A_STACKS);
        let fits = offset < A_STACK_PAGES * PAGE && address.is_multiple_of(PAGE);
        match NonZeroU64::new(address) {
            Some(address) if fits => Some(Self(address)),
            _ => None,
        }
    }

    /// The one with which the kernel has brought a call: it says where that is, or gives a status in place of it.
    #[must_use]
    #[inline(always)]
    pub(crate) const fn of_visit(address: u64) -> Option<Self> {
        if address < abi::lrpc::FIRST_ADDRESS {
            return None;
        }
        match NonZeroU64::new(address) {
            Some(address) => Some(Self(address)),
            None => None,
        }
    }

    const fn word_at(self, offset: usize) -> *mut u64 {
        (self.0.get() as usize + offset) as *mut u64
    }

    /// Word `index` of a message.
    #[must_use]
    pub fn word(self, index: usize) -> u64 {
        // SAFETY: A-stacks lie where no Rust object does; the mask keeps it inside the words.
        unsafe { self.word_at((index & 63) * 8).read_volatile() }
    }

    /// Sets it.
    pub fn set_word(self, index: usize, value: u64) {
        // SAFETY: as for `word`.
        unsafe { self.word_at((index & 63) * 8).write_volatile(value) }
    }

    /// Leaves `bytes` as a string; whether there is room for it.
    #[must_use]
    pub fn put(self, bytes: &[u8]) -> bool {
        if bytes.len() > STRING_BYTES {
            return false;
        }
        // SAFETY: as for `word`; the length was compared, and a page has whole words.
        unsafe { block::write(self.word_at(WORDS_BYTES as usize), bytes) }
        true
    }

    /// Copies a string of `room.len()` bytes into `room`; whether it can have been so long.
    #[must_use]
    pub fn take(self, room: &mut [u8]) -> bool {
        if room.len() > STRING_BYTES {
            return false;
        }
        // SAFETY: as in `put`.
        unsafe { block::read(self.word_at(WORDS_BYTES as usize), room) }
        true
    }

    /// Leaves `bytes` in the words from `index` on, the last one filled up with zeros.
    #[inline(always)]
    pub fn set_words(self, index: usize, bytes: &[u8]) {
        assert!(index + bytes.len().div_ceil(8) <= WORDS);
        // SAFETY: as for `word`; the length was compared.
        unsafe { block::write(self.word_at(index * 8), bytes) }
    }

    /// Fills `room` with what the words from `index` on hold.
    #[inline(always)]
    pub fn copy_words(self, index: usize, room: &mut [u8]) {
        assert!(index + room.len().div_ceil(8) <= WORDS);
        // SAFETY: as in `set_words`.
        unsafe { block::read(self.word_at(index * 8), room) }
    }
}
