//! Lists: a slice on the side that sends, checked bytes on the side that receives.

use crate::wire::{Body, Bytes, Malformed, TooLong, Wire, Words};

/// A list of an interface. Who sends makes it from a slice; who receives iterates.
#[derive(Clone, Copy)]
pub struct List<'a, T>(Items<'a, T>);

#[derive(Clone, Copy)]
enum Items<'a, T> {
    Slice(&'a [T]),
    /// `len` elements that were read once without an error.
    Stored {
        len: usize,
        bytes: &'a [u8],
    },
}

impl<'a, T> List<'a, T> {
    /// The list of these elements.
    #[must_use]
    pub const fn new(elements: &'a [T]) -> Self {
        Self(Items::Slice(elements))
    }

    /// The list of `len` elements that lie in `bytes`.
    pub(crate) const fn stored(len: usize, bytes: &'a [u8]) -> Self {
        Self(Items::Stored { len, bytes })
    }

    /// How many elements it has.
    #[must_use]
    pub const fn len(&self) -> usize {
        match &self.0 {
            Items::Slice(elements) => elements.len(),
            Items::Stored { len, .. } => *len,
        }
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a, T: Wire<'a>> List<'a, T> {
    /// Its elements in order.
    #[must_use]
    pub const fn iter(&self) -> Iter<'a, T> {
        Iter(self.0)
    }
}

/// The elements of a [`List`].
#[derive(Clone, Copy)]
pub struct Iter<'a, T>(Items<'a, T>);

impl<'a, T: Wire<'a>> Iterator for Iter<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            Items::Slice(elements) => {
                let (first, rest) = elements.split_first()?;
                *elements = rest;
                Some(*first)
            }
            Items::Stored { len, bytes } => {
                *len = len.checked_sub(1)?;
                let mut left = Bytes::new(bytes);
                let element = T::take_element(&mut left).ok()?;
                *bytes = left.rest();
                Some(element)
            }
        }
    }
}

impl<'a, T: Wire<'a>> IntoIterator for List<'a, T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T: Wire<'a> + PartialEq> PartialEq for List<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<'a, T: Wire<'a> + core::fmt::Debug> core::fmt::Debug for List<'a, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Wire<'a>> Wire<'a> for List<'a, T> {
    const FLAT: usize = 1;

    #[inline(always)]
    fn flat(&self, put: &mut impl FnMut(u64)) {
        put(self.len() as u64);
    }

    fn body(&self, body: &mut Body<'_>) -> Result<(), TooLong> {
        self.iter().try_for_each(|element| element.put_element(body))
    }

    fn take(words: &mut impl Words, body: &mut Bytes<'a>) -> Result<Self, Malformed> {
        let len = usize::try_from(words.next()).map_err(|_| Malformed)?;
        // Every element takes a byte at least (the compiler refuses others), so this is
        // what bounds the loop.
        if len > body.len() {
            return Err(Malformed);
        }
        let before = body.rest();
        for _ in 0..len {
            T::take_element(body)?;
        }
        let bytes = before.len() - body.len();
        Ok(Self::stored(len, &before[..bytes]))
    }
}
