//! The messages between the tasks of a Baton system, and where things are in a
//! task's address space.
//!
//! Plain constants and encodings: servers and clients share them, the kernel
//! knows none of this. An interface is a range of labels; a request is a label
//! and words, a reply has label [`OK`] or [`REFUSED`] (MR1: a [`Refusal`]).
//! `docs/user-level.md` describes every message.
#![no_std]
#![forbid(unsafe_code)]

pub mod console;
pub mod layout;
pub mod name;
pub mod pager;
pub mod root;
pub mod unix;

pub use name::Name;

/// Label of a reply to a request that was carried out.
pub const OK: u64 = 0;
/// Label of a reply to a request that was refused; MR1 says why.
pub const REFUSED: u64 = 1;

/// Why a server refused a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Refusal {
    /// The task's description does not allow it.
    NotAllowed = 1,
    /// There is nothing of that name or number.
    Unknown = 2,
    /// The memory, the threads or the table entries are used up.
    Exhausted = 3,
    /// Somebody else has it.
    Taken = 4,
    /// The arguments make no sense.
    BadArgument = 5,
    /// The kernel refused the call that it takes.
    Kernel = 6,
    /// The server did not answer in time.
    NoAnswer = 7,
    /// Others depend on it.
    Needed = 8,
    /// It does not run.
    Idle = 9,
}

impl Refusal {
    /// Decodes the word of a refusing reply.
    #[must_use]
    pub const fn decode(word: u64) -> Self {
        match word {
            1 => Self::NotAllowed,
            2 => Self::Unknown,
            3 => Self::Exhausted,
            4 => Self::Taken,
            5 => Self::BadArgument,
            7 => Self::NoAnswer,
            8 => Self::Needed,
            9 => Self::Idle,
            _ => Self::Kernel,
        }
    }
}

impl From<interfaces::common::Refusal> for Refusal {
    fn from(refusal: interfaces::common::Refusal) -> Self {
        Self::decode(refusal as u64 + 1)
    }
}

impl From<Refusal> for interfaces::common::Refusal {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotAllowed => Self::NotAllowed,
            Refusal::Unknown => Self::Unknown,
            Refusal::Exhausted => Self::Exhausted,
            Refusal::Taken => Self::Taken,
            Refusal::BadArgument => Self::BadArgument,
            Refusal::Kernel => Self::Kernel,
            Refusal::NoAnswer => Self::NoAnswer,
            Refusal::Needed => Self::Needed,
            Refusal::Idle => Self::Idle,
        }
    }
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NotAllowed => "the task's description does not allow it; add the key to its line",
            Self::Unknown => "there is nothing of that name; `tasks` lists what there is",
            Self::Exhausted => {
                "there is no room left; give the task a larger limit or end something"
            }
            Self::Taken => "somebody else has it; end that task first",
            Self::BadArgument => "the arguments make no sense",
            Self::Kernel => "the kernel refused; its quota may be used up",
            Self::Needed => "running tasks depend on it; restart it, or end them first",
            Self::Idle => "it does not run; `start` starts it",
            Self::NoAnswer => "the server does not answer; it may be gone or waiting",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[test]
    fn refusals_are_the_same_in_both_forms() {
        for word in 1..=9 {
            let refusal = Refusal::decode(word);
            assert_eq!(refusal as u64, word);
            assert_eq!(Refusal::from(interfaces::common::Refusal::from(refusal)), refusal);
        }
    }
}
