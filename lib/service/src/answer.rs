//! The server's side: arguments from a request, an answer from a result.

use core::fmt::Write as _;

use crate::Caller;
use crate::body::Scratch;
use crate::list::List;
use crate::message::{Flat, Message, SHAPE_AND_LABEL, body_len, is_plain, label, string_after};
use crate::wire::{Body, Bytes, Malformed, TooLong, Wire};

/// What a request comes to.
#[must_use = "a caller that gets no answer waits"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer<M> {
    /// This goes back now.
    Words(M),
    /// This goes back now, with so many bytes of the room for answers as its string.
    String(M, usize),
    /// Nothing goes back: none is expected, or it comes later.
    Nothing,
    /// The interface has no such function.
    Unknown,
}

impl<M: Message> Answer<M> {
    /// The request makes no sense.
    #[cold]
    pub fn malformed() -> Self {
        Self::Words(M::new(label::MALFORMED))
    }

    /// The message that goes back, of a function whose answer has no string.
    #[inline(always)]
    #[must_use]
    pub fn words(self) -> M {
        match self {
            Self::Words(message) => message,
            _ => M::new(label::MALFORMED),
        }
    }

    /// The message that goes back, and how many bytes of the room for answers with it.
    #[inline(always)]
    #[must_use]
    pub fn message(self) -> Option<(M, Option<usize>)> {
        match self {
            Self::Words(message) => Some((message, None)),
            Self::String(message, len) => Some((message, Some(len))),
            Self::Nothing => None,
            Self::Unknown => Some((M::new(label::UNKNOWN), None)),
        }
    }
}

/// `condition`, which most requests fulfil: what is done then stands first.
#[inline(always)]
#[must_use]
pub const fn likely(condition: bool) -> bool {
    if !condition {
        core::hint::cold_path();
    }
    condition
}

/// What a server's loop does with an answer. Not a closure, so that it can be inlined for sure.
pub trait Next<M> {
    /// What comes of it.
    type Request;

    /// The flags that a request's tag may have.
    const FLAGS: u64 = !SHAPE_AND_LABEL;
    /// Words that it has at hand: requests and answers with more are none of [`Dispatch::quick`]'s.
    const WORDS: usize = crate::MAX_WORDS;

    /// Sends the answer and waits for the next request.
    fn request(&self, answer: M) -> Self::Request;
}

/// Something that answers requests: generated for each interface, and for two of them in one.
pub trait Dispatch {
    /// Whether any function's answer can come later than the function returns.
    const LATER: bool = false;
    /// Whether any function's answer maps something: only IPC brings that.
    const MAPS: bool = false;

    /// What [`Dispatch::dispatch`] does, for functions whose request and answer are words and no
    /// more: the message stays in registers, and what `next` does stands behind each of them.
    ///
    /// # Errors
    /// The request, if it is for [`Dispatch::dispatch`], as all mistakes are.
    #[inline(always)]
    fn quick<M: Message, N: Next<M>>(
        &self,
        caller: Caller,
        request: M,
        next: &N,
    ) -> Result<N::Request, M> {
        let _ = (caller, next);
        Err(request)
    }

    /// The same for functions of which an argument or the result is a text or a run of bytes that travels in words.
    ///
    /// # Errors
    /// As [`Dispatch::quick`].
    #[inline(always)]
    fn quick_bytes<M: Message, N: Next<M>>(
        &self,
        caller: Caller,
        request: M,
        room: &mut [u8],
        next: &N,
    ) -> Result<N::Request, M> {
        let _ = (caller, room, next);
        Err(request)
    }

    /// Answers `request` of `caller`, whose string, if it had one, is in `input`. What the
    /// server makes for its results goes into `room`, the string of the answer into `output`.
    fn dispatch<M: Message>(
        &self,
        caller: Caller,
        request: &M,
        input: &[u8],
        room: &mut [u8],
        output: &mut [u8],
    ) -> Answer<M>;
}

/// Both: what the first does not know is for the second.
impl<A: Dispatch, B: Dispatch> Dispatch for (A, B) {
    const LATER: bool = A::LATER || B::LATER;
    const MAPS: bool = A::MAPS || B::MAPS;

    #[inline(always)]
    fn dispatch<M: Message>(
        &self,
        caller: Caller,
        request: &M,
        input: &[u8],
        room: &mut [u8],
        output: &mut [u8],
    ) -> Answer<M> {
        match self.0.dispatch(caller, request, input, room, output) {
            Answer::Unknown => self.1.dispatch(caller, request, input, room, output),
            answer => answer,
        }
    }
}

/// The arguments in a request that has no body.
///
/// # Errors
/// When the request is none of the function.
#[inline(always)]
pub fn read_words<'a, T: Wire<'a>>(request: &impl Message) -> Result<T, Malformed> {
    if !is_plain(request, T::FLAT) {
        return Err(Malformed);
    }
    T::take(&mut Flat::new(request), &mut Bytes::new(&[]))
}

/// [`read_words`] of a request whose tag was compared as a whole.
///
/// # Errors
/// As [`read_words`].
#[inline(always)]
pub fn quick_arguments<'a, T: Wire<'a>>(request: &impl Message) -> Result<T, Malformed> {
    T::take(&mut Flat::new(request), &mut Bytes::new(&[]))
}

/// The arguments in a request with a body in words, which is copied out of them: they may
/// be gone when the server calls somebody.
///
/// # Errors
/// As [`read_words`].
#[inline(always)]
pub fn read_inline<'a, T: Wire<'a>, const N: usize>(
    request: &'a impl Message,
    scratch: &'a mut Scratch<N>,
) -> Result<T, Malformed> {
    let len = body_len(request.tag(), T::FLAT, N).ok_or(Malformed)?;
    let mut bytes = Bytes::new(request.body(T::FLAT, len, scratch));
    let values = T::take(&mut Flat::new(request), &mut bytes)?;
    if bytes.len() < 8 { Ok(values) } else { Err(Malformed) }
}

/// The arguments in a request whose body came as a string into `input`.
///
/// # Errors
/// As [`read_words`].
pub fn read_string<'a, T: Wire<'a>>(
    request: &impl Message,
    input: &'a [u8],
) -> Result<T, Malformed> {
    let len = string_after(request, T::FLAT).ok_or(Malformed)?;
    let mut bytes = Bytes::new(input.get(..len).ok_or(Malformed)?);
    let values = T::take(&mut Flat::new(request), &mut bytes)?;
    if bytes.is_empty() { Ok(values) } else { Err(Malformed) }
}

/// An answer that has no body, behind `message`, which has no word yet.
#[inline(always)]
pub fn answer_words<'a, M: Message, T: Wire<'a>>(result: &T, mut message: M) -> Answer<M> {
    result.flat(&mut |word| message = message.push(word));
    Answer::Words(message)
}

/// The same as a message that has the form of `request`: words that are not part of the answer
/// stay what the caller sent, which costs nothing and tells it nothing.
#[inline(always)]
pub fn quick_words<'a, M: Message, T: Wire<'a>>(request: M, result: &T) -> M {
    let mut message = request.emptied(label::OK);
    result.flat(&mut |word| message = message.push(word));
    message
}

/// An answer that is one text or one run of at most `bound` bytes, and goes in words, behind `message`.
#[inline]
pub fn answer_bytes<M: Message>(result: &[u8], bound: usize, message: M) -> Answer<M> {
    if result.len() > bound {
        return Answer::Words(M::new(label::TOO_LONG));
    }
    Answer::Words(message.push(result.len() as u64).with_body(result))
}

/// An answer whose body, at most `room` long, goes in words, behind `message`.
pub fn answer_inline<'a, M: Message, T: Wire<'a>>(
    result: &T,
    room: &mut [u8],
    mut message: M,
) -> Answer<M> {
    let mut body = Body::new(room);
    if result.body(&mut body).is_err() {
        return Answer::Words(M::new(label::TOO_LONG));
    }
    result.flat(&mut |word| message = message.push(word));
    Answer::Words(message.with_body(body.written()))
}

/// An answer whose body goes as a string, from `output`; its words stand behind `message`.
pub fn answer_string<'a, M: Message, T: Wire<'a>>(
    result: &T,
    output: &mut [u8],
    mut message: M,
) -> Answer<M> {
    let mut body = Body::new(output);
    if result.body(&mut body).is_err() {
        return Answer::Words(M::new(label::TOO_LONG));
    }
    result.flat(&mut |word| message = message.push(word));
    Answer::String(message, body.written().len())
}

/// Where a server puts what its result refers to and what it does not keep itself.
#[derive(Debug)]
pub struct Room<'r>(&'r mut [u8]);

impl<'r> Room<'r> {
    /// All of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'r mut [u8]) -> Self {
        Self(bytes)
    }

    /// Takes `len` bytes of it; fewer if there are not as many.
    #[must_use]
    pub fn bytes(&mut self, len: usize) -> &'r mut [u8] {
        let bytes = core::mem::take(&mut self.0);
        let (taken, rest) = bytes.split_at_mut(len.min(bytes.len()));
        self.0 = rest;
        taken
    }

    /// A copy of `bytes`, cut where the room ends.
    #[must_use]
    pub fn copy(&mut self, bytes: &[u8]) -> &'r [u8] {
        let room = self.bytes(bytes.len());
        room.copy_from_slice(&bytes[..room.len()]);
        room
    }

    /// A text, cut before the character at which the room ends.
    #[must_use]
    pub fn text(&mut self, text: core::fmt::Arguments<'_>) -> &'r str {
        let mut writer = Writer { room: core::mem::take(&mut self.0), len: 0 };
        let _ = writer.write_fmt(text);
        let (written, rest) = writer.room.split_at_mut(writer.len);
        self.0 = rest;
        core::str::from_utf8(written).unwrap_or("")
    }

    /// The list of these elements.
    ///
    /// # Errors
    /// When there is no room for them.
    pub fn list<T: Wire<'r>>(
        &mut self,
        elements: impl IntoIterator<Item = T>,
    ) -> Result<List<'r, T>, TooLong> {
        let room = core::mem::take(&mut self.0);
        let mut body = Body::new(room);
        let mut count = 0;
        for element in elements {
            element.put_element(&mut body)?;
            count += 1;
        }
        let len = body.written().len();
        let (written, rest) = room.split_at_mut(len);
        self.0 = rest;
        Ok(List::stored(count, written))
    }
}

struct Writer<'r> {
    room: &'r mut [u8],
    len: usize,
}

impl core::fmt::Write for Writer<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = &mut self.room[self.len..];
        let mut len = text.len().min(room.len());
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        room[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len;
        if len == text.len() { Ok(()) } else { Err(core::fmt::Error) }
    }
}
