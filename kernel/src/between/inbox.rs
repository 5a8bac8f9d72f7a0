//! A processor's inbox: what the others ask of it, in the order in which they asked.
//!
//! A list with one word as its head. A request is a name (an index, an address: not 0, not 1),
//! whose link is its maker's until it is pushed and the owner's from then on. A request is in one
//! inbox at a time, and whoever makes one waits for its answer: so nobody floods an inbox.
//!
//! The same word says whether the owner looks by itself. Only the push that finds the inbox
//! empty and the owner away has to interrupt it: there is no second word whose order against
//! the first would matter, and no interrupt for an owner that is at work here anyway.
//!
//! Every push is one read-modify-write of one word, so all pushes to an inbox have one order, in
//! which they are taken; a push that can have known of another comes behind it.

use core::sync::atomic::{AtomicU64, Ordering};

/// The head of an empty inbox whose owner looks again before it leaves.
const LOOKING: u64 = 0;
/// The head of an empty inbox whose owner has to be interrupted.
const AWAY: u64 = 1;

/// A word in memory that several processors use; the host's models bring one of their own.
pub trait Word {
    /// A word that holds `value`.
    fn new(value: u64) -> Self;
    /// What it holds.
    fn load(&self, order: Ordering) -> u64;
    /// Changes it.
    fn store(&self, value: u64, order: Ordering);
    /// Puts `value` there; what was there.
    fn swap(&self, value: u64, order: Ordering) -> u64;
    /// Puts `new` there if it holds `old`, else says what it holds.
    ///
    /// # Errors
    /// What it holds.
    fn exchange(&self, old: u64, new: u64, order: Ordering) -> Result<u64, u64>;
}

impl Word for AtomicU64 {
    fn new(value: u64) -> Self {
        Self::new(value)
    }
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.swap(value, order)
    }
    fn exchange(&self, old: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        self.compare_exchange(old, new, order, Ordering::Relaxed)
    }
}

/// What has to be done about the owner after a push.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "an owner that is away does not look by itself"]
pub enum Owner {
    /// It will look, or has been interrupted by somebody else.
    Looks,
    /// It has to be interrupted.
    IsAway,
}

/// An inbox. Its owner is away at first.
pub struct Inbox<W: Word = AtomicU64> {
    head: W,
}

impl Inbox {
    /// An empty one.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is part of a static")]
    pub const fn new() -> Self {
        Self { head: AtomicU64::new(AWAY) }
    }
}

impl<W: Word> Inbox<W> {
    /// An empty one around a word of a model's.
    #[must_use]
    pub fn with_word() -> Self {
        Self { head: W::new(AWAY) }
    }

    /// Leaves `request` to the owner; `link` is the request's.
    pub fn push(&self, request: u64, link: &W) -> Owner {
        debug_assert!(request > AWAY);
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // Whoever takes the request follows the link.
            link.store(if head == AWAY { LOOKING } else { head }, Ordering::Relaxed);
            match self.head.exchange(head, request, Ordering::Release) {
                Ok(_) => return if head == AWAY { Owner::IsAway } else { Owner::Looks },
                // Somebody else's push, or the owner: there are not many of them.
                Err(found) => head = found,
            }
        }
    }

    /// The owner takes all there is: the first that was pushed, 0 if there is none. The links
    /// (`link_of` a request) lead to the later ones, and end with 0. From here on the owner
    /// looks by itself.
    pub fn take<'a>(&self, link_of: impl Fn(u64) -> &'a W) -> u64
    where
        W: 'a,
    {
        let head = self.head.swap(LOOKING, Ordering::Acquire);
        let mut next = if head == AWAY { LOOKING } else { head };
        let mut first = 0;
        while next != LOOKING {
            let link = link_of(next);
            let before = link.load(Ordering::Relaxed);
            link.store(first, Ordering::Relaxed);
            (first, next) = (next, before);
        }
        first
    }

    /// The owner does not look any more: whoever comes has to interrupt it. `false` if somebody
    /// has come meanwhile.
    #[must_use]
    pub fn leave(&self) -> bool {
        match self.head.exchange(LOOKING, AWAY, Ordering::Relaxed) {
            Ok(_) => true,
            Err(found) => found == AWAY,
        }
    }

    /// Whether there is anything to be taken; for an owner that looks.
    #[must_use]
    pub fn holds_any(&self) -> bool {
        self.head.load(Ordering::Relaxed) > AWAY
    }
}
