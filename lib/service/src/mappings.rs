//! Answers that map: pages of memory, or ports, which the kernel maps as the answer comes to where its receiver accepts them.

use abi::MapItem;

use crate::answer::Answer;
use crate::call::{Carrier, Error, no_result};
use crate::message::{Flat, Message, label};
use crate::wire::{Bytes, TooLong, Wire};

/// Most of an answer.
pub const MAX_MAPPINGS: usize = 24;

/// What an answer maps.
#[derive(Debug)]
pub struct Mappings {
    items: [[u64; 2]; MAX_MAPPINGS],
    count: usize,
}

impl Mappings {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { items: [[0; 2]; MAX_MAPPINGS], count: 0 }
    }

    /// One more.
    ///
    /// # Errors
    /// When there are [`MAX_MAPPINGS`].
    pub fn map(&mut self, item: MapItem) -> Result<(), TooLong> {
        *self.items.get_mut(self.count).ok_or(TooLong)? = item.words();
        self.count += 1;
        Ok(())
    }
}

impl Default for Mappings {
    fn default() -> Self {
        Self::new()
    }
}

/// An answer of words that maps, behind `message`, which has no word yet.
pub fn answer_mapped<'a, M: Message, T: Wire<'a>>(
    result: &T,
    mut message: M,
    mappings: &Mappings,
) -> Answer<M> {
    result.flat(&mut |word| message = message.push(word));
    Answer::Words(
        mappings.items[..mappings.count].iter().fold(message, |all, item| all.item(*item)),
    )
}

/// The result in the answer of an exchange that may have mapped something.
///
/// # Errors
/// When there is none.
pub fn result_mapped<'a, C: Carrier, T: Wire<'a>>(
    carrier: &C,
    answer: &C::Message,
) -> Result<T, Error> {
    let tag = answer.tag();
    if tag.is_error() || tag.label() != label::OK || tag.untyped() != T::FLAT {
        return Err(no_result(carrier, tag));
    }
    Ok(T::take(&mut Flat::new(answer), &mut Bytes::new(&[]))?)
}
