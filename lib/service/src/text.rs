//! Strings and plain bytes: a word with the length, the bytes in the body.

use crate::wire::{Body, Bytes, Malformed, TooLong, Wire, Words};

impl<'a> Wire<'a> for &'a [u8] {
    const FLAT: usize = 1;

    #[inline(always)]
    fn flat(&self, put: &mut impl FnMut(u64)) {
        put(self.len() as u64);
    }

    fn body(&self, body: &mut Body<'_>) -> Result<(), TooLong> {
        body.put(self)
    }

    fn take(words: &mut impl Words, body: &mut Bytes<'a>) -> Result<Self, Malformed> {
        body.take(words.next())
    }
}

impl<'a> Wire<'a> for &'a str {
    const FLAT: usize = 1;

    #[inline(always)]
    fn flat(&self, put: &mut impl FnMut(u64)) {
        put(self.len() as u64);
    }

    fn body(&self, body: &mut Body<'_>) -> Result<(), TooLong> {
        body.put(self.as_bytes())
    }

    fn take(words: &mut impl Words, body: &mut Bytes<'a>) -> Result<Self, Malformed> {
        core::str::from_utf8(body.take(words.next())?).map_err(|_| Malformed)
    }
}
