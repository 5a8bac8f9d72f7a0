//! Errands: what the first processor asks of another
//! (docs/decisions/0131-what-is-seldom-done-for-others-is-here-once.md).
//!
//! One word is what it has asked, one what has been done last. The first one asks, for one thing at a time, and looks
//! whether it has been done, but not for ever: it may ask again. The other takes what it finds and answers
//! with the same word. What the first one has written before it asked is there for whoever takes the errand, and what
//! that one has written before it answered for the first one.
//!
//! That there is something to be taken an interrupt says; one that comes late, or again, finds nothing.

use core::sync::atomic::{AtomicU64, Ordering};

use super::Word;

/// Nothing.
const NONE: u64 = 0;
/// The bits of a word that say what; the others number the errands.
const WHAT: u64 = 3;

/// What the first processor asks of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Errand {
    /// Nothing but an answer.
    Hello = 1,
    /// To look whether it is as the kernel has set it up.
    Check = 2,
}

/// An errand that has been asked. No two are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked(u64);

impl Asked {
    /// Whether it is `errand`.
    #[must_use]
    pub fn is(self, errand: Errand) -> bool {
        self.0 & WHAT == errand as u64
    }

    /// The how manyth it is.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0 / (WHAT + 1)
    }
}

/// What the first processor and another one tell each other of errands. None has been asked at first.
pub struct Errands<W: Word = AtomicU64> {
    /// What is asked, until it is done.
    asked: W,
    /// What has been done last.
    done: W,
}

impl Errands {
    /// None.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "they are part of a static")]
    pub const fn new() -> Self {
        Self { asked: AtomicU64::new(NONE), done: AtomicU64::new(NONE) }
    }
}

impl<W: Word> Errands<W> {
    /// None, in words of a model's.
    #[must_use]
    pub fn with_words() -> Self {
        Self { asked: W::new(NONE), done: W::new(NONE) }
    }

    /// The first processor asks for `errand`; what it asked before is either done or given up. The other one has to
    /// be interrupted.
    #[must_use = "whether it is done has to be asked"]
    pub fn ask(&self, errand: Errand) -> Asked {
        // No two are the same word: whoever answers late answers what it was asked. If that has just been
        // taken away the answer is there.
        let latest = match self.asked.load(Ordering::Acquire) {
            NONE => self.done.load(Ordering::Relaxed),
            late => late,
        };
        let asked = (latest & !WHAT).wrapping_add(WHAT + 1) | errand as u64;
        self.asked.store(asked, Ordering::Release);
        Asked(asked)
    }

    /// Whether what has been `asked` is done.
    #[must_use]
    pub fn is_done(&self, asked: Asked) -> bool {
        self.done.load(Ordering::Acquire) == asked.0
    }

    /// Whether something is asked, for the other processor.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) != NONE
    }

    /// What the other processor has to do, and to answer.
    #[must_use]
    pub fn take(&self) -> Option<Asked> {
        let asked = self.asked.load(Ordering::Acquire);
        (asked != NONE).then_some(Asked(asked))
    }

    /// It has done what it was `asked`.
    pub fn answer(&self, asked: Asked) {
        self.done.store(asked.0, Ordering::Release);
        // Unless the next one is there already.
        let _ = self.asked.exchange(asked.0, NONE, Ordering::Release);
    }
}
