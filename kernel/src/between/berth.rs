//! A berth: where another processor has the one thread whose user code it runs, as a visitor
//! (docs/decisions/0055-user-code-runs-elsewhere.md).
//!
//! One word says who it is and how far it has come. The first processor, whose thread it is,
//! offers one and takes it back; the other accepts it and gives it back. Between the acceptance
//! and the return the thread's registers are the other's, and at all other times the first's:
//! whoever changes the word says with it that what it has written of the thread is there.

use core::sync::atomic::Ordering;

use super::inbox::Word;

/// Nobody is here.
const EMPTY: u64 = 0;
/// It may come.
const OFFERED: u64 = 1;
/// It is here.
const HERE: u64 = 2;
/// It is here, and wanted back.
const CALLED: u64 = 3;
/// It may be fetched.
const RETURNED: u64 = 4;
/// What of the word says how far it has come; visitors are named by multiples of 8.
const STATE: u64 = 7;

/// What has come of calling a visitor back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "who is here has to be interrupted"]
pub enum Call {
    /// It had not come: it is its owner's again, as it was offered.
    NotCome,
    /// It is here: the processor has to be interrupted, and will give it back.
    Here,
    /// It may be fetched.
    Returned,
    /// There is nobody.
    Empty,
}

/// A berth. Nobody is there at first.
pub struct Berth<W: Word = core::sync::atomic::AtomicU64> {
    word: W,
}

impl Berth {
    /// An empty one.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is part of a static")]
    pub const fn new() -> Self {
        Self { word: core::sync::atomic::AtomicU64::new(EMPTY) }
    }
}

impl<W: Word> Berth<W> {
    /// An empty one around a word of a model's.
    #[must_use]
    pub fn with_word() -> Self {
        Self { word: W::new(EMPTY) }
    }

    /// The owner of `visitor` lets it come; nobody is here. The processor has to be interrupted.
    pub fn offer(&self, visitor: u64) {
        debug_assert!(visitor & STATE == 0 && visitor != 0);
        debug_assert!(self.word.load(Ordering::Relaxed) == EMPTY);
        self.word.store(visitor | OFFERED, Ordering::Release);
    }

    /// The owner wants the visitor back.
    pub fn call_back(&self) -> Call {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let (next, call) = match word & STATE {
                OFFERED => (EMPTY, Call::NotCome),
                HERE => (word & !STATE | CALLED, Call::Here),
                CALLED => return Call::Here,
                RETURNED => return Call::Returned,
                _ => return Call::Empty,
            };
            match self.word.exchange(word, next, Ordering::Relaxed) {
                Ok(_) => return call,
                // The other has accepted it, or given it back: each happens once.
                Err(found) => word = found,
            }
        }
    }

    /// The owner fetches the visitor, if it may; whether it has, and nobody is here any more.
    #[must_use]
    pub fn fetch(&self) -> bool {
        let returned = self.word.load(Ordering::Acquire) & STATE == RETURNED;
        if returned {
            self.word.store(EMPTY, Ordering::Relaxed);
        }
        returned
    }

    /// The processor accepts whoever may come.
    #[must_use]
    pub fn accept(&self) -> Option<u64> {
        let word = self.word.load(Ordering::Relaxed);
        let here = word & !STATE | HERE;
        let offered = word & STATE == OFFERED;
        let accepted = offered && self.word.exchange(word, here, Ordering::Acquire).is_ok();
        accepted.then_some(word & !STATE)
    }

    /// Who is here, for the processor that has accepted it.
    #[must_use]
    pub fn visitor(&self) -> u64 {
        self.word.load(Ordering::Relaxed) & !STATE
    }

    /// The processor gives back whom it has accepted.
    pub fn give_back(&self) {
        let visitor = self.visitor();
        // It may have been called meanwhile: that, too, comes before this.
        let _ = self.word.swap(visitor | RETURNED, Ordering::AcqRel);
    }
}
