//! Arguments and environment on their way from the old program to the new one.

use alloc::vec::Vec;

use crate::call::Cx;
use crate::errno::Errno;

/// Longest single string, with its zero.
const STRING_MAX: usize = 32 * 4096;
/// A stack's part for strings and pointers: at least this, at most three quarters of the
/// usual stack.
const TOTAL: (u64, u64) = (32 * 4096, (8 << 20) / 4 * 3);

/// Strings, one after the other, each with its zero.
#[derive(Clone, Default)]
pub struct Strings {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How many strings.
    pub count: usize,
}

impl Strings {
    /// Adds a string.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn push(&mut self, text: &[u8]) -> Result<(), Errno> {
        self.bytes.try_reserve(text.len() + 1).map_err(|_| Errno::ENOMEM)?;
        self.bytes.extend_from_slice(text);
        self.bytes.push(0);
        self.count += 1;
        Ok(())
    }

    /// These strings.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn of(texts: &[&[u8]]) -> Result<Self, Errno> {
        let mut strings = Self::default();
        texts.iter().try_for_each(|text| strings.push(text))?;
        Ok(strings)
    }

    /// Puts strings before the first one.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn prepend(&mut self, texts: &[&[u8]]) -> Result<(), Errno> {
        let mut all = Self::of(texts)?;
        all.bytes.try_reserve(self.bytes.len()).map_err(|_| Errno::ENOMEM)?;
        all.bytes.append(&mut self.bytes);
        all.count += self.count;
        *self = all;
        Ok(())
    }

    /// Takes the first string away.
    pub fn remove_first(&mut self) {
        if let Some(end) = self.bytes.iter().position(|byte| *byte == 0) {
            self.bytes.drain(..=end);
            self.count -= 1;
        }
    }

    /// Reads the strings that a list of pointers at `address` leads to; `left` is how many
    /// bytes strings and pointers may still take.
    ///
    /// # Errors
    /// `EFAULT`, `E2BIG`.
    pub fn read(cx: &Cx, address: u64, left: &mut u64) -> Result<Self, Errno> {
        let mut strings = Self::default();
        if address == 0 {
            return Ok(strings);
        }
        let user = cx.user();
        let mut at = address;
        loop {
            let pointer: u64 = user.read(at)?;
            if pointer == 0 {
                return Ok(strings);
            }
            let text = user.read_string(pointer, STRING_MAX, Errno::E2BIG)?;
            let cost = text.len() as u64 + 1 + size_of::<u64>() as u64;
            *left = left.checked_sub(cost).ok_or(Errno::E2BIG)?;
            strings.push(&text)?;
            at = at.checked_add(size_of::<u64>() as u64).ok_or(Errno::EFAULT)?;
        }
    }
}

/// How many bytes strings and pointers may take under this limit of the stack.
#[must_use]
pub fn total(stack_limit: u64) -> u64 {
    (stack_limit / 4).min(TOTAL.1).max(TOTAL.0)
}
