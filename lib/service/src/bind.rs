//! Bindings: a client asks once whether the server has what it is going to use.
//!
//! A request's label is the hash of its function, types included, so that a server never takes
//! one function for another, bound or not. Binding is for the sentence: it says beforehand
//! which function is missing, and which versions the two sides have.

use abi::Timeouts;

use crate::answer::Answer;
use crate::call::{Carrier, Error};
use crate::message::{MAX_WORDS, Message, label};

/// The label of a request to bind: MR1 the hash of the interface's name, MR2 the client's
/// version, then the labels of the functions that it is going to use. Answer: MR1 the server's
/// version, MR2 how many of the labels the server knows before the first that it does not.
pub const BIND: u64 = 0x3FFF_FFFF;

/// In the answer's version: the server can be reached by procedure calls (Bershad et al. 1990).
pub const OFFERS_CALLS: u64 = 1 << 63;

/// Beside it: what answers is a proxy, and the server is somewhere else.
pub const IS_FAR: u64 = 1 << 62;

/// Where a server is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whereabouts {
    /// On this machine.
    Here,
    /// Behind a proxy.
    Far,
}

/// Functions that one message can ask for.
const FUNCTIONS: usize = MAX_WORDS - 2;

/// The version of a package.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    /// What does not fit together differs in this.
    pub major: u16,
    /// Functions were added.
    pub minor: u16,
    /// Nothing that can be told from outside.
    pub patch: u16,
}

impl Version {
    const fn word(self) -> u64 {
        (self.major as u64) << 32 | (self.minor as u64) << 16 | self.patch as u64
    }

    const fn of(word: u64) -> Self {
        Self { major: (word >> 32) as u16, minor: (word >> 16) as u16, patch: word as u16 }
    }
}

impl core::fmt::Display for Version {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// An interface as its stubs know it.
#[derive(Debug)]
pub struct Interface {
    /// Package and name, as in `baton:system/console`.
    pub name: &'static str,
    /// The hash of the name.
    pub id: u64,
    /// The package's version.
    pub version: Version,
    /// Every function's label and name.
    pub functions: &'static [(u64, &'static str)],
}

/// Why a client cannot use a server.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum BindError {
    /// The server could not be asked.
    Call(Error),
    /// It does not serve the interface.
    NotServed {
        /// The client's.
        interface: &'static Interface,
    },
    /// It lacks a function, or has it with other types.
    Incompatible {
        /// The client's.
        interface: &'static Interface,
        /// The function.
        function: &'static str,
        /// The server's version.
        server: Version,
    },
}

impl PartialEq for Interface {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl core::fmt::Display for BindError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Call(error) => error.fmt(f),
            Self::NotServed { interface } => {
                write!(f, "the server does not serve {}", interface.name)
            }
            Self::Incompatible { interface, function, server } => write!(
                f,
                "the client was built for {0}@{1}, the server for {0}@{server}, which has no function \
                 `{function}` of the same types; build both from one interface",
                interface.name, interface.version,
            ),
        }
    }
}

impl core::error::Error for BindError {}

/// Asks the server behind `carrier` whether it has the functions `uses` of `interface`.
///
/// # Errors
/// A sentence that names both sides when it has not.
pub fn check<C: Carrier>(
    carrier: &C,
    interface: &'static Interface,
    uses: &[u64],
    timeouts: Timeouts,
) -> Result<(), BindError> {
    let (mut offered, mut place) = (false, Whereabouts::Here);
    for uses in uses.chunks(FUNCTIONS) {
        let request = C::Message::new(BIND).push(interface.id).push(interface.version.word());
        let request = uses.iter().fold(request, |request, function| request.push(*function));
        let answer = carrier.call(request, timeouts).map_err(BindError::Call)?;
        let tag = answer.tag();
        match (tag.label(), tag.untyped(), tag.typed()) {
            (label::OK, 2, 0) => {}
            (label::UNKNOWN, _, _) => return Err(BindError::NotServed { interface }),
            _ => return Err(BindError::Call(Error::BadAnswer)),
        }
        offered = answer.get(0) & OFFERS_CALLS != 0;
        if answer.get(0) & IS_FAR != 0 {
            place = Whereabouts::Far;
        }
        let known = usize::try_from(answer.get(1)).unwrap_or(usize::MAX);
        if let Some(missing) = uses.get(known) {
            let function = interface.functions.iter().find(|(label, _)| label == missing);
            let function = function.map_or("", |(_, name)| name);
            let server = Version::of(answer.get(0));
            return Err(BindError::Incompatible { interface, function, server });
        }
    }
    carrier.fits(place);
    if offered && place == Whereabouts::Here {
        carrier.offered();
    }
    Ok(())
}

/// The server's answer to [`check`].
#[cold]
pub fn describe<M: Message>(interface: &'static Interface, request: &M) -> Answer<M> {
    let words = request.tag().untyped();
    if words < 2 || request.tag().typed() != 0 {
        return Answer::malformed();
    }
    if request.get(0) != interface.id {
        return Answer::Unknown;
    }
    let has = |label: u64| interface.functions.iter().any(|(known, _)| *known == label);
    let known = (2..words).take_while(|index| has(request.get(*index))).count();
    Answer::Words(request.emptied(label::OK).push(interface.version.word()).push(known as u64))
}
