//! The client's side: a request from values, a result from the answer, and what can go wrong
//! between them.

use core::any::Any;

use abi::{IpcError, MsgTag, Time, Timeouts};

use crate::Caller;
use crate::bind::Whereabouts;
use crate::message::{self, Flat, Message, SHAPE_AND_LABEL, body_len, body_of, string_after};
use crate::wire::{Body, Bytes, Malformed, TooLong, Wire};

/// Words of an answer that every carrier brings in registers.
pub const SHORT: usize = 7;

/// What brings a request to a server and its answer back.
pub trait Carrier {
    /// What it carries.
    type Message: Message;

    /// Sends `request` and waits for the answer, of which no more than [`SHORT`] words are going to be read; neither
    /// has a string. If the tag of what comes back says that it failed, [`Carrier::error`] says why.
    fn exchange(&self, request: Self::Message, timeouts: Timeouts) -> Self::Message;

    /// [`Carrier::exchange`] of a request and for an answer of at most one word each.
    #[inline(always)]
    fn exchange_one(&self, request: Self::Message, timeouts: Timeouts) -> Self::Message {
        self.exchange(request, timeouts)
    }

    /// [`Carrier::exchange`] whose answer is read to its end.
    #[inline(always)]
    fn exchange_long(&self, request: Self::Message, timeouts: Timeouts) -> Self::Message {
        self.exchange(request, timeouts)
    }

    /// The same with `body` behind the words of the request. What the words of the answer behind the first `flat` hold
    /// goes to `room` if there is room for it; [`result_behind`] finds it there.
    #[inline(always)]
    fn exchange_with(
        &self,
        request: Self::Message,
        body: &[u8],
        (flat, room): (usize, &mut [u8]),
        timeouts: Timeouts,
    ) -> Self::Message {
        let answer = self.exchange_long(request.with_body(body), timeouts);
        if !room.is_empty() && !answer.tag().is_error() {
            let _ = body_of(&answer, flat, room);
        }
        answer
    }

    /// Why the last exchange of this thread failed.
    fn error(&self) -> Error;

    /// [`Carrier::exchange`] with its failure as an error.
    ///
    /// # Errors
    /// When the server cannot be reached, or not in time.
    #[inline(always)]
    fn call(&self, request: Self::Message, timeouts: Timeouts) -> Result<Self::Message, Error> {
        let answer = self.exchange_long(request, timeouts);
        if answer.tag().is_error() { Err(self.error()) } else { Ok(answer) }
    }

    /// The same, with `body` as the request's string unless it is empty, and `room` for the
    /// answer's.
    ///
    /// # Errors
    /// As [`Carrier::call`], and when the answer's string is longer than `room`.
    fn call_with(
        &self,
        request: Self::Message,
        body: Option<&[u8]>,
        room: &mut [u8],
        timeouts: Timeouts,
    ) -> Result<Self::Message, Error>;

    /// The server, which has just been asked whether it fits, can be reached by procedure calls, too.
    fn offered(&self) {}

    /// The server has just said that it fits, and where it is.
    fn fits(&self, place: Whereabouts) {
        let _ = place;
    }

    /// Who calls, if this can lead to servers of the own task as calls of functions.
    #[inline(always)]
    fn caller(&self) -> Option<Caller> {
        None
    }

    /// Leaves the server in `place` if calls are to go to it so ([`crate::Inside`]).
    fn find_inside(&self, place: &mut dyn Any) {
        let _ = place;
    }

    /// Sends `request` and waits for nothing but that the server takes it.
    ///
    /// # Errors
    /// As [`Carrier::call`].
    fn send(
        &self,
        request: Self::Message,
        body: Option<&[u8]>,
        timeouts: Timeouts,
    ) -> Result<(), Error>;
}

/// What is carried for a client that only borrows its carrier.
impl<C: Carrier> Carrier for &C {
    type Message = C::Message;

    #[inline(always)]
    fn exchange(&self, request: Self::Message, timeouts: Timeouts) -> Self::Message {
        (**self).exchange(request, timeouts)
    }

    #[inline(always)]
    fn exchange_long(&self, request: Self::Message, timeouts: Timeouts) -> Self::Message {
        (**self).exchange_long(request, timeouts)
    }

    #[inline(always)]
    fn exchange_with(
        &self,
        request: Self::Message,
        body: &[u8],
        result: (usize, &mut [u8]),
        timeouts: Timeouts,
    ) -> Self::Message {
        (**self).exchange_with(request, body, result, timeouts)
    }

    #[cold]
    fn error(&self) -> Error {
        (**self).error()
    }

    fn call_with(
        &self,
        request: Self::Message,
        body: Option<&[u8]>,
        room: &mut [u8],
        timeouts: Timeouts,
    ) -> Result<Self::Message, Error> {
        (**self).call_with(request, body, room, timeouts)
    }

    fn offered(&self) {
        (**self).offered();
    }

    fn fits(&self, place: Whereabouts) {
        (**self).fits(place);
    }

    #[inline(always)]
    fn exchange_one(&self, request: C::Message, timeouts: Timeouts) -> C::Message {
        (**self).exchange_one(request, timeouts)
    }

    #[inline(always)]
    fn caller(&self) -> Option<Caller> {
        (**self).caller()
    }

    fn find_inside(&self, place: &mut dyn Any) {
        (**self).find_inside(place);
    }

    fn send(
        &self,
        request: Self::Message,
        body: Option<&[u8]>,
        timeouts: Timeouts,
    ) -> Result<(), Error> {
        (**self).send(request, body, timeouts)
    }
}

/// Why a call has no result. What the interface itself may answer is not among these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// There is no server.
    NoServer,
    /// The message did not arrive, or no answer came.
    Ipc(IpcError),
    /// The server has no such function, or not of this type: it is older, or another.
    Unknown,
    /// The server says that the request makes no sense.
    Malformed,
    /// An argument is longer than the interface allows, or the result than the room for it.
    TooLong,
    /// The answer is none of this function.
    BadAnswer,
    /// The server failed while it ran the function, or the caller was taken back: the function may have been carried
    /// out, or not.
    Lost,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoServer => f.write_str("there is no such server; it may not have started yet"),
            Self::Ipc(error) => {
                write!(f, "the server could not be reached: {:?} in phase {:?}", error.kind, error.phase)
            }
            Self::Unknown => f.write_str(
                "the server does not know this function, or with other types; build both from one interface",
            ),
            Self::Malformed => f.write_str("the server says that the request makes no sense"),
            Self::TooLong => f.write_str("a text or list is longer than the interface or the room for it allows"),
            Self::BadAnswer => f.write_str("the server's answer makes no sense"),
            Self::Lost => f.write_str("the server ended in the middle of the call; it may have been carried out"),
        }
    }
}

impl core::error::Error for Error {}

impl From<TooLong> for Error {
    fn from(_: TooLong) -> Self {
        Self::TooLong
    }
}

/// Timeouts of a call: until the server takes it, and for its answer. None: as long as it takes.
#[must_use]
pub const fn timeouts(send_us: Option<u64>, answer_us: Option<u64>) -> Timeouts {
    const fn time(us: Option<u64>) -> Time {
        match us {
            Some(us) => Time::micros(us),
            None => Time::NEVER,
        }
    }
    Timeouts::new(time(send_us), time(answer_us))
}

/// A request that needs no body.
#[inline(always)]
pub fn request_words<'a, M: Message, T: Wire<'a>>(label: u64, values: &T) -> M {
    let mut message = M::new(label);
    values.flat(&mut |word| message = message.push(word));
    message
}

/// A request whose body, at most `room` long, goes in words.
///
/// # Errors
/// When it is longer.
pub fn request_inline<'a, M: Message, T: Wire<'a>>(
    label: u64,
    values: &T,
    room: &mut [u8],
) -> Result<M, Error> {
    let mut body = Body::new(room);
    values.body(&mut body)?;
    let request: M = request_words(label, values);
    Ok(request.with_body(body.written()))
}

/// A request whose body goes as a string: the words, and how much of `room` is the body.
///
/// # Errors
/// When it is longer than `room`.
pub fn request_string<'a, 'r, M: Message, T: Wire<'a>>(
    label: u64,
    values: &T,
    room: &'r mut [u8],
) -> Result<(M, &'r [u8]), Error> {
    let mut body = Body::new(room);
    values.body(&mut body)?;
    let len = body.written().len();
    Ok((request_words(label, values), &room[..len]))
}

/// What an answer's label says.
#[inline(always)]
fn outcome(label: u64) -> Result<(), Error> {
    if label == message::label::OK { Ok(()) } else { Err(failure(label)) }
}

#[cold]
const fn failure(label: u64) -> Error {
    match label {
        message::label::UNKNOWN => Error::Unknown,
        message::label::MALFORMED => Error::Malformed,
        message::label::TOO_LONG => Error::TooLong,
        message::label::LOST => Error::Lost,
        message::label::NOT_REACHED => Error::NoServer,
        _ => Error::BadAnswer,
    }
}

impl From<Malformed> for Error {
    fn from(_: Malformed) -> Self {
        Self::BadAnswer
    }
}

/// The result in the answer of an exchange, if it has no body.
///
/// # Errors
/// When there is none.
#[inline(always)]
pub fn result_words<'a, C: Carrier, T: Wire<'a>>(
    carrier: &C,
    answer: &C::Message,
) -> Result<T, Error> {
    // The label of success is 0, and a failed exchange has its bit set: one comparison.
    if answer.tag().0 & SHAPE_AND_LABEL == T::FLAT as u64 {
        Ok(T::take(&mut Flat::new(answer), &mut Bytes::new(&[]))?)
    } else {
        Err(no_result(carrier, answer.tag()))
    }
}

#[cold]
pub(crate) fn no_result(carrier: &impl Carrier, tag: MsgTag) -> Error {
    if tag.is_error() {
        return carrier.error();
    }
    outcome(tag.label()).err().unwrap_or(Error::BadAnswer)
}

/// The result in an answer with a body in words, which goes into `room`.
///
/// # Errors
/// When it has none, or `room` is too small.
pub fn result_inline<'a, T: Wire<'a>>(
    answer: &impl Message,
    room: &'a mut [u8],
) -> Result<T, Error> {
    outcome(answer.tag().label())?;
    if answer.tag().untyped() < T::FLAT || answer.tag().typed() != 0 {
        return Err(Error::BadAnswer);
    }
    let mut bytes = Bytes::new(body_of(answer, T::FLAT, room).ok_or(Error::TooLong)?);
    let value = T::take(&mut Flat::new(answer), &mut bytes)?;
    if bytes.len() < 8 { Ok(value) } else { Err(Error::BadAnswer) }
}

/// The result in an answer whose body [`Carrier::exchange_with`] has left in `room`.
///
/// # Errors
/// When it has none, or `room` is too small.
#[inline(always)]
pub fn result_behind<'a, C: Carrier, T: Wire<'a>>(
    carrier: &C,
    answer: &C::Message,
    room: &'a [u8],
) -> Result<T, Error> {
    let tag = answer.tag();
    if tag.is_error() || tag.label() != message::label::OK {
        return Err(no_result(carrier, tag));
    }
    if tag.untyped() < T::FLAT || tag.typed() != 0 {
        return Err(Error::BadAnswer);
    }
    let len = body_len(tag, T::FLAT, room.len()).ok_or(Error::TooLong)?;
    let mut bytes = Bytes::new(room.get(..len).ok_or(Error::TooLong)?);
    let value = T::take(&mut Flat::new(answer), &mut bytes)?;
    if bytes.len() < 8 { Ok(value) } else { Err(Error::BadAnswer) }
}

/// The result in an answer whose body came as a string into `room`.
///
/// # Errors
/// When it has none.
pub fn result_string<'a, T: Wire<'a>>(answer: &impl Message, room: &'a [u8]) -> Result<T, Error> {
    outcome(answer.tag().label())?;
    let len = string_after(answer, T::FLAT).ok_or(Error::BadAnswer)?;
    let mut bytes = Bytes::new(room.get(..len).ok_or(Error::BadAnswer)?);
    let value = T::take(&mut Flat::new(answer), &mut bytes)?;
    if bytes.is_empty() { Ok(value) } else { Err(Error::BadAnswer) }
}
