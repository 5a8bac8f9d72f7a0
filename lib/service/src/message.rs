//! What carries a call: a label, up to 63 words, and perhaps one string.

use abi::{Item, MsgTag, StringItem};

use crate::body::Scratch;

/// Words of a message.
pub const MAX_WORDS: usize = 63;

/// Labels of answers. Those of requests are hashes of their functions, from 2^30 on.
pub mod label {
    /// The function was carried out; its result follows.
    pub const OK: u64 = 0;
    /// The server has no such function, or not of this type.
    pub const UNKNOWN: u64 = 2;
    /// The request is not one of the function.
    pub const MALFORMED: u64 = 3;
    /// The server has more to say than the interface allows.
    pub const TOO_LONG: u64 = 4;
    /// From a proxy: the server has ended, or was lost, in the middle of the call.
    pub const LOST: u64 = 5;
    /// From a proxy: the server could not be reached.
    pub const NOT_REACHED: u64 = 6;
}

/// A message that stubs can write and read.
///
/// The words may lie where the next message will: what is read from one is read before
/// another is begun.
pub trait Message: Copy {
    /// An empty one.
    fn new(label: u64) -> Self;

    /// An empty one that may keep what the words of this one hold, as long as it goes to the
    /// sender of this one and nobody else.
    #[must_use]
    #[inline(always)]
    fn emptied(self, label: u64) -> Self {
        Self::new(label)
    }

    /// The same with one more word; at most [`MAX_WORDS`].
    #[must_use]
    fn push(self, word: u64) -> Self;

    /// The same with one more typed item behind its words and items.
    #[must_use]
    fn item(self, words: [u64; 2]) -> Self;

    /// The same with `body` behind its words, eight bytes a word, the last one filled up with zeros.
    #[must_use]
    #[inline]
    fn with_body(self, body: &[u8]) -> Self {
        let (whole, last) = body.as_chunks::<8>();
        let push = |message: Self, chunk: &[u8; 8]| message.push(u64::from_le_bytes(*chunk));
        let message = whole.iter().fold(self, push);
        if last.is_empty() {
            return message;
        }
        let mut bytes = [0; 8];
        bytes[..last.len()].copy_from_slice(last);
        message.push(u64::from_le_bytes(bytes))
    }

    /// The words from `first` on as bytes, as many as `room` takes; each is read once.
    #[inline]
    fn copy_body(&self, first: usize, room: &mut [u8]) {
        for (index, chunk) in room.chunks_mut(8).enumerate() {
            chunk.copy_from_slice(&self.get(first + index).to_le_bytes()[..chunk.len()]);
        }
    }

    /// The same in a place that the message has for that, or in `scratch`; at most `N` bytes.
    #[inline(always)]
    fn body<'a, const N: usize>(
        &'a self,
        first: usize,
        len: usize,
        scratch: &'a mut Scratch<N>,
    ) -> &'a [u8] {
        let room = scratch.bytes(len);
        self.copy_body(first, room);
        room
    }

    /// The tag.
    fn tag(&self) -> MsgTag;

    /// Word `index`, counted from 0.
    fn get(&self, index: usize) -> u64;
}

/// The number of words and of words of typed items: what the low bits of a tag say.
const SHAPE: u64 = 0xFFF;

/// What tells messages apart in a tag: all but the flags of those that arrived.
pub const SHAPE_AND_LABEL: u64 = !(MsgTag::XCPU | MsgTag::REDIRECTED | MsgTag::PROPAGATED);

/// Whether `message` has `words` words and no item.
#[inline(always)]
pub(crate) fn is_plain(message: &impl Message, words: usize) -> bool {
    message.tag().0 & SHAPE == words as u64
}

/// The length of the string of a message that has `words` words, one string, and nothing else.
pub(crate) fn string_after(message: &impl Message, words: usize) -> Option<usize> {
    let has_item = message.tag().0 & SHAPE == 2 << 6 | words as u64;
    if !has_item || words + 2 > MAX_WORDS {
        return None;
    }
    match Item::decode(message.get(words), message.get(words + 1)) {
        Item::String(item)
            if item.substrings() == 1 && !item.is_continued() && !item.has_more() =>
        {
            usize::try_from(StringItem::len(item)).ok()
        }
        _ => None,
    }
}

/// The words of a message from `at` on.
pub(crate) struct Flat<'m, M>(&'m M, usize);

impl<'m, M: Message> Flat<'m, M> {
    #[inline(always)]
    pub(crate) const fn new(message: &'m M) -> Self {
        Self(message, 0)
    }
}

impl<M: Message> crate::wire::Words for Flat<'_, M> {
    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.1 += 1;
        self.0.get(self.1 - 1)
    }
}

/// How many bytes the words of a message with this tag are, behind the first `flat`, in a room of
/// `room` bytes: up to seven more than the body. `None` if they cannot be one.
#[inline(always)]
#[must_use]
pub fn body_len(tag: MsgTag, flat: usize, room: usize) -> Option<usize> {
    let words = tag.untyped().checked_sub(flat).filter(|_| tag.typed() == 0)?;
    // The room is as long as the longest body; its last word may have less than eight bytes.
    if words > room.div_ceil(8) { None } else { Some(room.min(words * 8)) }
}

/// The body that lies in the words of `message` behind the first `flat`, copied into `room`; with
/// up to seven bytes too many. `None` if it cannot be one.
#[inline(always)]
pub(crate) fn body_of<'a>(
    message: &impl Message,
    flat: usize,
    room: &'a mut [u8],
) -> Option<&'a [u8]> {
    let room = room.get_mut(..body_len(message.tag(), flat, room.len())?)?;
    message.copy_body(flat, room);
    Some(room)
}
