//! What a trial came to: a mark for itself, or one for each test that it reports.

use std::collections::BTreeMap;

use crate::linux::guest::{End, Ran};

/// How a test came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It passed.
    Pass,
    /// It says that it cannot be run here.
    Skip,
    /// It failed.
    Fail,
    /// It did not end, or the machine stopped.
    Stopped,
}

impl Mark {
    /// For a table.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Skip => "skip",
            Self::Fail => "FAIL",
            Self::Stopped => "HUNG",
        }
    }
}

/// Marks by the name of the test.
pub type Marks = BTreeMap<String, Mark>;

/// The marks of the trial `name`; `read` knows what the suite prints.
#[must_use]
pub fn marks(name: &str, ran: &Ran, read: fn(&str, &Ran, i32) -> Marks) -> Marks {
    match ran.end {
        End::Status(status) => read(name, ran, status),
        End::Hung | End::Died(_) => one(name, Mark::Stopped),
    }
}

/// A trial that is a single test.
#[must_use]
pub fn one(name: &str, mark: Mark) -> Marks {
    Marks::from([(name.to_owned(), mark)])
}
