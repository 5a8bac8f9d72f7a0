//! A-stacks (Bershad et al. 1990, 3.2) as a task sees them: where they can lie, and what is on them.
//!
//! They lie in the part of the task's UTCB area where no UTCB is. The other side can write an A-stack at any
//! time: words are read once, bytes copied out, and no reference ever leads there.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use proto::layout::{A_STACK_PAGES, A_STACKS};

use crate::window::PAGE;

/// Bytes of a message's words on an A-stack: those that no register takes. Strings lie behind them.
const WORDS_BYTES: u64 = 512;
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
pub struct AStack(u64);

impl AStack {
    /// The one at `address`, if one can be there; whether it is there its users learn by touching it.
    #[must_use]
    #[inline(always)]
    pub const fn at(address: u64) -> Option<Self> {
        let offset = address.wrapping_sub(A_STACKS);
        let fits = offset < A_STACK_PAGES * PAGE && address.is_multiple_of(PAGE);
        if fits { Some(Self(address)) } else { None }
    }

    const fn word_at(self, offset: usize) -> *mut u64 {
        (self.0 as usize + offset) as *mut u64
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
        let (whole, rest) = bytes.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let words = whole.iter().chain((!rest.is_empty()).then_some(&last));
        for (index, word) in words.enumerate() {
            let place = self.word_at(WORDS_BYTES as usize + index * 8);
            // SAFETY: as for `word`; the length was compared, and a page has whole words.
            unsafe { place.write_volatile(u64::from_le_bytes(*word)) }
        }
        true
    }

    /// Copies a string of `room.len()` bytes into `room`; whether it can have been so long.
    #[must_use]
    pub fn take(self, room: &mut [u8]) -> bool {
        if room.len() > STRING_BYTES {
            return false;
        }
        let word = |index| {
            let place = self.word_at(WORDS_BYTES as usize + index * 8);
            // SAFETY: as in `put`.
            unsafe { place.read_volatile() }.to_le_bytes()
        };
        let (whole, rest) = room.as_chunks_mut::<8>();
        let count = whole.len();
        whole.iter_mut().enumerate().for_each(|(index, chunk)| *chunk = word(index));
        if !rest.is_empty() {
            let len = rest.len();
            rest.copy_from_slice(&word(count)[..len]);
        }
        true
    }
}
