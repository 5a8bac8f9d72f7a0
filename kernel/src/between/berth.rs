//! A berth: where another processor has the one thread whose user code it runs, as a visitor
//! (docs/decisions/0055-user-code-runs-elsewhere.md).
//!
//! One word says who it is and how far it has come. The first processor, whose thread it is,
//! offers one and takes it back; the other accepts it and gives it back. Between the acceptance
//! and the return the thread's registers are the other's, and at all other times the first's:
//! whoever changes the word says with it that what it has written of the thread is there.
//!
//! Whoever is there can also be stopped for a moment, without coming back: until it is let go on, its
//! processor uses no tables of its space (docs/decisions/0108-a-visitor-stands-still-while-tables-change.md).
//!
//! The same word says whether either side looks at it by itself, for a while, so that it need not be
//! interrupted (docs/decisions/0068-who-idles-looks-first.md): there is no second word
//! whose order against the first would matter.

use core::sync::atomic::Ordering;

use super::Word;

/// Nobody is here.
const EMPTY: u64 = 0;
/// It may come.
const OFFERED: u64 = 1;
/// It is here.
const HERE: u64 = 2;
/// It is here, and is to stop where it is.
const STOPPING: u64 = 3;
/// It may be fetched.
const RETURNED: u64 = 4;
/// It is here, and stands still.
const STOPPED: u64 = 5;
/// It is here, and wanted back: its owner waits for it.
const CALLED: u64 = 6;
/// Whoever was to stop does not run, if it has not been called: [`RETURNED`] or [`STOPPED`].
const STANDS: u64 = 4;
/// What of the word says how far it has come; visitors are named by multiples of 32.
const STATE: u64 = 7;
/// The processor looks at the word; while nobody is here.
const LOOKS: u64 = 1 << 3;
/// The owner looks at the word.
const OWNER_LOOKS: u64 = 1 << 4;
/// Both.
const BOTH: u64 = LOOKS | OWNER_LOOKS;

/// What has to be done about the other side, behind a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "who does not look has to be interrupted"]
pub enum OtherSide {
    /// It looks by itself.
    Looks,
    /// It has to be interrupted.
    IsAway,
}

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

/// What a visitor does that has been stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "who is called has to be given back"]
pub enum Stand {
    /// It stands still.
    Still,
    /// It goes on.
    GoesOn,
    /// It is wanted back.
    IsCalled,
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

    /// Changes the word by `change` until nobody else has meanwhile; what it was. Or `change` leaves it as it is: that is
    /// the error. Both sides together change it a bounded number of times for each visit.
    #[inline(always)]
    fn change(&self, order: Ordering, change: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        let mut word = self.word.load(Ordering::Acquire);
        while let Some(next) = change(word) {
            match self.word.exchange(word, next, order) {
                Ok(_) => return Ok(word),
                Err(found) => word = found,
            }
        }
        Err(word)
    }

    /// The same for a `change` that does not.
    fn always(&self, order: Ordering, change: impl Fn(u64) -> u64) -> u64 {
        let (Ok(word) | Err(word)) = self.change(order, |word| Some(change(word)));
        word
    }

    /// The owner of `visitor` lets it come; nobody is here.
    pub fn offer(&self, visitor: u64) -> OtherSide {
        debug_assert!(visitor & (STATE | BOTH) == 0 && visitor != 0);
        let word = self.always(Ordering::Release, |word| visitor | OFFERED | word & BOTH);
        debug_assert!(word & STATE == EMPTY);
        if word & LOOKS != 0 { OtherSide::Looks } else { OtherSide::IsAway }
    }

    /// The owner wants the visitor back.
    pub fn call_back(&self) -> Call {
        let (Ok(word) | Err(word)) = self.change(Ordering::Relaxed, |word| match word & STATE {
            OFFERED => Some(EMPTY | word & BOTH),
            HERE | STOPPING | STOPPED => Some(word & !STATE | CALLED),
            _ => None,
        });
        match word & STATE {
            OFFERED => Call::NotCome,
            HERE | CALLED | STOPPING | STOPPED => Call::Here,
            RETURNED => Call::Returned,
            _ => Call::Empty,
        }
    }

    /// The owner wants the visitor to stop where it is; whether it is here, and its processor has to be
    /// interrupted.
    #[must_use]
    pub fn stop(&self) -> bool {
        let stop = |word| (word & STATE == HERE).then_some(word & !STATE | STOPPING);
        self.change(Ordering::Relaxed, stop).is_ok()
    }

    /// Whether the visitor, which was to stop, stands still, or has come back by itself.
    #[must_use]
    pub fn stands_still(&self) -> bool {
        self.word.load(Ordering::Acquire) & STANDS != 0
    }

    /// The owner lets the visitor go on, if it stands still; whether it may be fetched instead.
    #[must_use]
    pub fn go_on(&self) -> bool {
        let go_on = |word| (word & STATE == STOPPED).then_some(word & !STATE | HERE);
        self.change(Ordering::Release, go_on).is_err_and(|word| word & STATE == RETURNED)
    }

    /// Whether the owner has to look at the berth before it leaves the kernel: somebody has come back, or
    /// stands still.
    #[must_use]
    pub fn needs_a_look(&self) -> bool {
        self.word.load(Ordering::Relaxed) & STATE >= STOPPING
    }

    /// The owner fetches the visitor, if it may; whether it has, and nobody is here any more.
    #[must_use]
    pub fn fetch(&self) -> bool {
        let fetch = |word| (word & STATE == RETURNED).then_some(word & BOTH);
        self.change(Ordering::Acquire, fetch).is_ok()
    }

    /// Whether the owner may fetch the visitor.
    #[must_use]
    pub fn has_returned(&self) -> bool {
        self.word.load(Ordering::Relaxed) & STATE == RETURNED
    }

    /// The owner looks at the word from now on.
    pub fn watch(&self) {
        let _ = self.always(Ordering::Relaxed, |word| word | OWNER_LOOKS);
    }

    /// The owner looks no longer; if the visitor has returned it knows of it now.
    #[must_use]
    pub fn look_away(&self) -> bool {
        let word = self.always(Ordering::Relaxed, |word| word & !OWNER_LOOKS);
        word & STATE == RETURNED
    }

    /// The owner fetches the visitor, if it may, and in any case looks no longer; whether it has, and nobody is
    /// here any more.
    #[must_use]
    pub fn fetch_or_look_away(&self) -> bool {
        let is_back = |word| word & STATE == RETURNED;
        let word = self.always(Ordering::Acquire, |word| {
            if is_back(word) { word & LOOKS } else { word & !OWNER_LOOKS }
        });
        is_back(word)
    }

    /// The processor accepts whoever may come.
    #[must_use]
    pub fn accept(&self) -> Option<u64> {
        let accept = |word| (word & STATE == OFFERED).then_some(word & !(STATE | LOOKS) | HERE);
        self.change(Ordering::Acquire, accept).ok().map(|word| word & !(STATE | BOTH))
    }

    /// Whether somebody may come.
    #[must_use]
    pub fn is_offered(&self) -> bool {
        self.word.load(Ordering::Relaxed) & STATE == OFFERED
    }

    /// Who is here, for the processor that has accepted it.
    #[must_use]
    pub fn visitor(&self) -> u64 {
        self.word.load(Ordering::Relaxed) & !(STATE | BOTH)
    }

    /// Whether the visitor is wanted back, for the processor that has accepted it.
    #[must_use]
    pub fn is_called(&self) -> bool {
        self.word.load(Ordering::Relaxed) & STATE == CALLED
    }

    /// The visitor, which was to stop, does not run, and the processor uses none of its tables, before the first
    /// of these questions: what it does next.
    pub fn stand(&self) -> Stand {
        let (Ok(word) | Err(word)) = self.change(Ordering::Release, |word| {
            (word & STATE == STOPPING).then_some(word & !STATE | STOPPED)
        });
        match word & STATE {
            STOPPING | STOPPED => Stand::Still,
            HERE => Stand::GoesOn,
            _ => Stand::IsCalled,
        }
    }

    /// The processor gives back whom it has accepted, and looks from now on. Whoever has called the visitor
    /// waits for it.
    pub fn give_back(&self) -> OtherSide {
        let word = self.always(Ordering::AcqRel, |word| word & !STATE | RETURNED | LOOKS);
        let looks = word & OWNER_LOOKS != 0 || word & STATE == CALLED;
        if looks { OtherSide::Looks } else { OtherSide::IsAway }
    }

    /// The processor looks no longer; `false` if somebody may come, and it still does.
    #[must_use]
    pub fn leave(&self) -> bool {
        let leave = |word| (word & STATE != OFFERED).then_some(word & !LOOKS);
        self.change(Ordering::Relaxed, leave).is_ok()
    }
}
