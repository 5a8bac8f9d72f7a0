//! How a value becomes words of a message and bytes of its body, and comes back checked.
//!
//! Every type has a fixed number of *flat* words. What has no fixed size, the contents of strings
//! and lists, stands in the *body*, in the order of the words that say how much there is. An
//! element of a list lies in the body: numbers as they are, all else as its flat words, then its
//! own body. All numbers are little-endian. Reading believes nothing: a word that is no value of
//! its type is an error.

/// The message is not one of this function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// A string or list is longer than there is room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong;

/// Flat words, one after the other. As many as the type has were counted before.
pub trait Words {
    /// The next one.
    fn next(&mut self) -> u64;
}

/// Flat words that lie in a body.
struct Stored<'a>(&'a [u8]);

impl Words for Stored<'_> {
    fn next(&mut self) -> u64 {
        match self.0.split_first_chunk::<8>() {
            Some((word, rest)) => {
                self.0 = rest;
                u64::from_le_bytes(*word)
            }
            None => 0,
        }
    }
}

/// What is left of a body that is being read.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// All of `body`.
    #[must_use]
    pub const fn new(body: &'a [u8]) -> Self {
        Self(body)
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn take(&mut self, len: u64) -> Result<&'a [u8], Malformed> {
        let len = usize::try_from(len).map_err(|_| Malformed)?;
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next bytes, as many as `N`.
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// How many are left.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is left.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.0
    }
}

/// A body that is being written.
#[derive(Debug)]
pub struct Body<'b> {
    room: &'b mut [u8],
    len: usize,
}

impl<'b> Body<'b> {
    /// An empty one in `room`.
    #[must_use]
    pub const fn new(room: &'b mut [u8]) -> Self {
        Self { room, len: 0 }
    }

    /// Adds `bytes`.
    ///
    /// # Errors
    /// When there is no room for them.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let room = self.room.get_mut(self.len..).and_then(|room| room.get_mut(..bytes.len()));
        room.ok_or(TooLong)?.copy_from_slice(bytes);
        self.len += bytes.len();
        Ok(())
    }

    /// What was written.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        &self.room[..self.len]
    }
}

/// A type of an interface. `'a` is how long the bytes live that a value refers to.
pub trait Wire<'a>: Copy {
    /// Its flat words.
    const FLAT: usize;

    /// Gives the flat words to `put`, all [`Wire::FLAT`] of them.
    fn flat(&self, put: &mut impl FnMut(u64));

    /// Adds the contents of its strings and lists to `body`.
    ///
    /// # Errors
    /// When there is no room.
    fn body(&self, body: &mut Body<'_>) -> Result<(), TooLong> {
        let _ = body;
        Ok(())
    }

    /// Reads a value: [`Wire::FLAT`] words, and from `body` what they announce.
    ///
    /// # Errors
    /// When a word is no value of the type, or the body is too short.
    fn take(words: &mut impl Words, body: &mut Bytes<'a>) -> Result<Self, Malformed>;

    /// Adds an element of a list to `body`.
    ///
    /// # Errors
    /// When there is no room.
    fn put_element(&self, body: &mut Body<'_>) -> Result<(), TooLong> {
        let mut outcome = Ok(());
        self.flat(&mut |word| outcome = outcome.and_then(|()| body.put(&word.to_le_bytes())));
        outcome?;
        self.body(body)
    }

    /// Reads an element of a list.
    ///
    /// # Errors
    /// As [`Wire::take`].
    fn take_element(body: &mut Bytes<'a>) -> Result<Self, Malformed> {
        let mut words = Stored(body.take(8 * Self::FLAT as u64)?);
        Self::take(&mut words, body)
    }
}

/// Passes over `words` words that the case at hand does not use.
#[inline(always)]
pub fn skip(words: &mut impl Words, unused: usize) {
    for _ in 0..unused {
        let _ = words.next();
    }
}

/// Whether a string or list of `len` is within its bound.
///
/// # Errors
/// When it is longer.
#[inline(always)]
pub const fn at_most(len: usize, bound: usize) -> Result<(), Malformed> {
    if len <= bound { Ok(()) } else { Err(Malformed) }
}

/// Numbers: a word that holds the value, sign-extended; in lists, as they are.
macro_rules! numbers {
    ($($type:ty, $wide:ty);* $(;)?) => { $(
        impl<'a> Wire<'a> for $type {
            const FLAT: usize = 1;

            #[inline(always)]
            fn flat(&self, put: &mut impl FnMut(u64)) {
                put(<$wide>::from(*self) as u64);
            }

            #[inline(always)]
            fn take(words: &mut impl Words, _: &mut Bytes<'a>) -> Result<Self, Malformed> {
                Self::try_from(words.next() as $wide).map_err(|_| Malformed)
            }

            fn put_element(&self, body: &mut Body<'_>) -> Result<(), TooLong> {
                body.put(&self.to_le_bytes())
            }

            fn take_element(body: &mut Bytes<'a>) -> Result<Self, Malformed> {
                Ok(Self::from_le_bytes(body.array()?))
            }
        }
    )* };
}

numbers! { u8, u64; u16, u64; u32, u64; u64, u64; i8, i64; i16, i64; i32, i64; i64, i64 }

/// Floating-point numbers: their bits, as a number of the same size.
macro_rules! floats {
    ($($type:ty, $bits:ty);*) => { $(
        impl<'a> Wire<'a> for $type {
            const FLAT: usize = 1;

            #[inline(always)]
            fn flat(&self, put: &mut impl FnMut(u64)) {
                self.to_bits().flat(put);
            }

            #[inline(always)]
            fn take(words: &mut impl Words, body: &mut Bytes<'a>) -> Result<Self, Malformed> {
                <$bits>::take(words, body).map(Self::from_bits)
            }

            fn put_element(&self, body: &mut Body<'_>) -> Result<(), TooLong> {
                self.to_bits().put_element(body)
            }

            fn take_element(body: &mut Bytes<'a>) -> Result<Self, Malformed> {
                <$bits>::take_element(body).map(Self::from_bits)
            }
        }
    )* };
}

floats! { f32, u32; f64, u64 }

impl<'a> Wire<'a> for bool {
    const FLAT: usize = 1;

    #[inline(always)]
    fn flat(&self, put: &mut impl FnMut(u64)) {
        put(u64::from(*self));
    }

    #[inline(always)]
    fn take(words: &mut impl Words, _: &mut Bytes<'a>) -> Result<Self, Malformed> {
        match words.next() {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    fn put_element(&self, body: &mut Body<'_>) -> Result<(), TooLong> {
        body.put(&[u8::from(*self)])
    }

    fn take_element(body: &mut Bytes<'a>) -> Result<Self, Malformed> {
        match body.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Malformed),
        }
    }
}

impl<'a> Wire<'a> for char {
    const FLAT: usize = 1;

    #[inline(always)]
    fn flat(&self, put: &mut impl FnMut(u64)) {
        put(u64::from(u32::from(*self)));
    }

    #[inline(always)]
    fn take(words: &mut impl Words, body: &mut Bytes<'a>) -> Result<Self, Malformed> {
        Self::from_u32(u32::take(words, body)?).ok_or(Malformed)
    }

    fn put_element(&self, body: &mut Body<'_>) -> Result<(), TooLong> {
        u32::from(*self).put_element(body)
    }

    fn take_element(body: &mut Bytes<'a>) -> Result<Self, Malformed> {
        Self::from_u32(u32::take_element(body)?).ok_or(Malformed)
    }
}

/// A thread's global id, or an interrupt line's.
impl<'a> Wire<'a> for abi::ThreadId {
    const FLAT: usize = 1;

    #[inline(always)]
    fn flat(&self, put: &mut impl FnMut(u64)) {
        put(self.0);
    }

    #[inline(always)]
    fn take(words: &mut impl Words, _: &mut Bytes<'a>) -> Result<Self, Malformed> {
        Ok(Self(words.next()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::List;

    /// The value of these words and this body, or the error.
    fn take<'a, T: Wire<'a>>(words: &[u64], body: &'a [u8]) -> Result<T, Malformed> {
        struct Given<'w>(core::slice::Iter<'w, u64>);
        impl Words for Given<'_> {
            fn next(&mut self) -> u64 {
                *self.0.next().unwrap()
            }
        }
        T::take(&mut Given(words.iter()), &mut Bytes::new(body))
    }

    #[test]
    fn a_word_that_is_no_value_of_its_type_is_an_error() {
        assert_eq!(take::<bool>(&[2], &[]), Err(Malformed));
        assert_eq!(take::<u8>(&[256], &[]), Err(Malformed));
        assert_eq!(take::<u32>(&[1 << 32], &[]), Err(Malformed));
        assert_eq!(take::<i8>(&[0x80], &[]), Err(Malformed), "not sign-extended");
        assert_eq!(take::<i8>(&[-128_i64 as u64], &[]), Ok(-128));
        for no_character in [0xD800, 0xDFFF, 0x11_0000, u64::MAX] {
            assert_eq!(take::<char>(&[no_character], &[]), Err(Malformed));
        }
        assert_eq!(take::<f32>(&[1 << 32], &[]), Err(Malformed));
        assert_eq!(take::<Option<u8>>(&[2, 0], &[]), Err(Malformed));
        assert_eq!(
            take::<Option<u8>>(&[0, 999], &[]),
            Ok(None),
            "what is not used is not looked at"
        );
        assert_eq!(take::<Result<u8, ()>>(&[2, 0], &[]), Err(Malformed));
    }

    #[test]
    fn a_length_that_the_body_does_not_have_is_an_error() {
        for len in [4, 1 << 32, u64::MAX] {
            assert_eq!(take::<&[u8]>(&[len], b"abc"), Err(Malformed));
            assert_eq!(take::<&str>(&[len], b"abc"), Err(Malformed));
            assert!(take::<List<'_, u8>>(&[len], b"abc").is_err());
        }
        // An element has eight bytes, and its own text.
        let element = [2, 0, 0, 0, 0, 0, 0, 0, b'h', b'i', 1];
        let list = take::<List<'_, &str>>(&[1], &element).unwrap();
        assert!(list.iter().eq(["hi"]));
        assert!(take::<List<'_, &str>>(&[2], &element).is_err());
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error() {
        for bytes in [&[0xC3][..], &[0xED, 0xA0, 0x80], &[0xFF, b'a'], &[0xC0, 0x80]] {
            assert_eq!(take::<&str>(&[bytes.len() as u64], bytes), Err(Malformed));
        }
        // In a list, too, where each element is read again.
        let element = [1, 0, 0, 0, 0, 0, 0, 0, 0xFF];
        assert!(take::<List<'_, &str>>(&[1], &element).is_err());
        assert!(take::<List<'_, bool>>(&[2], &[1, 2]).is_err());
    }
}
