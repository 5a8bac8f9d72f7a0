//! What a chief gives a task (Baton's TaskControl): thread numbers, and ceilings of time.

use crate::Time;
use crate::id::{THREAD_BITS, USER_BASE};

/// A word of TaskControl that changes nothing.
pub const UNCHANGED: u64 = !0;

/// Contiguous thread numbers. As a word: `63..32` how many, `31..0` the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Numbers {
    /// The first.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl Numbers {
    /// None.
    pub const NONE: Self = Self { first: 0, count: 0 };
    /// All that are not the kernel's.
    pub const ALL: Self = Self { first: USER_BASE, count: (1 << THREAD_BITS) - USER_BASE };

    /// The word.
    #[must_use]
    pub const fn word(self) -> u64 {
        (self.count as u64) << 32 | self.first as u64
    }

    /// Decodes a word.
    #[must_use]
    pub const fn decode(word: u64) -> Self {
        Self { first: word as u32, count: (word >> 32) as u32 }
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.count == 0
    }

    /// Number behind the last.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.first as u64 + self.count as u64
    }

    /// Whether `number` is one of them.
    #[must_use]
    pub const fn contains(self, number: u32) -> bool {
        number >= self.first && (number as u64) < self.end()
    }

    /// Whether all of `other` are among them.
    #[must_use]
    pub const fn includes(self, other: Self) -> bool {
        other.is_empty() || other.first >= self.first && other.end() <= self.end()
    }
}

/// The most that a task's threads may have. As a word: `63..48` delay, `47..32` slice,
/// `31..16` quantum, `7..0` priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ceilings {
    /// Priority, also the sensitive one.
    pub priority: u8,
    /// Time slice, a period.
    pub slice: Time,
    /// Total quantum between two decisions of a chief, a period.
    pub quantum: Time,
    /// Delay of a preemption, µs.
    pub delay_us: u16,
}

impl Default for Ceilings {
    fn default() -> Self {
        Self::NONE
    }
}

impl Ceilings {
    /// No limit.
    pub const NONE: Self =
        Self { priority: u8::MAX, slice: Time::NEVER, quantum: Time::NEVER, delay_us: u16::MAX };

    /// The word.
    #[must_use]
    pub const fn word(self) -> u64 {
        (self.delay_us as u64) << 48
            | (self.slice.0 as u64) << 32
            | (self.quantum.0 as u64) << 16
            | self.priority as u64
    }

    /// Decodes a word; `None` if it names points in time, or has bits without a meaning.
    #[must_use]
    pub const fn decode(word: u64) -> Option<Self> {
        let ceilings = Self {
            priority: word as u8,
            slice: Time((word >> 32) as u16),
            quantum: Time((word >> 16) as u16),
            delay_us: (word >> 48) as u16,
        };
        let clean = word & 0xFF00 == 0;
        if clean && !ceilings.slice.is_point() && !ceilings.quantum.is_point() {
            Some(ceilings)
        } else {
            None
        }
    }

    /// Longest time slice in µs; `u64::MAX` is infinite.
    #[must_use]
    pub const fn slice_us(self) -> u64 {
        length_us(self.slice)
    }

    /// Largest total quantum in µs; `u64::MAX` is infinite.
    #[must_use]
    pub const fn quantum_us(self) -> u64 {
        length_us(self.quantum)
    }

    /// The lower ceiling of each kind.
    #[must_use]
    pub const fn min(self, other: Self) -> Self {
        Self {
            priority: if other.priority < self.priority { other.priority } else { self.priority },
            slice: if other.slice_us() < self.slice_us() { other.slice } else { self.slice },
            quantum: if other.quantum_us() < self.quantum_us() {
                other.quantum
            } else {
                self.quantum
            },
            delay_us: if other.delay_us < self.delay_us { other.delay_us } else { self.delay_us },
        }
    }

    /// Whether no ceiling is higher than the same of `other`.
    #[must_use]
    pub const fn within(self, other: Self) -> bool {
        self.priority <= other.priority
            && self.slice_us() <= other.slice_us()
            && self.quantum_us() <= other.quantum_us()
            && self.delay_us <= other.delay_us
    }
}

const fn length_us(time: Time) -> u64 {
    match time.period_us() {
        Some(us) => us,
        None => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        let numbers = Numbers { first: 4096, count: 16384 };
        assert_eq!(Numbers::decode(numbers.word()), numbers);
        let ceilings = Ceilings {
            priority: 100,
            slice: Time::micros(10_000),
            quantum: Time::NEVER,
            delay_us: 50,
        };
        assert_eq!(Ceilings::decode(ceilings.word()), Some(ceilings));
        assert_eq!(Ceilings::decode(Ceilings::NONE.word()), Some(Ceilings::NONE));
        assert_ne!(Ceilings::NONE.word(), UNCHANGED);
        assert_eq!(Ceilings::decode(1 << 8), None);
        assert_eq!(Ceilings::decode(0x8000 << 32), None);
    }

    #[test]
    fn numbers_do_not_wrap() {
        let wrapping = Numbers { first: u32::MAX, count: 2 };
        assert!(!Numbers::ALL.includes(wrapping) && !wrapping.contains(0));
        assert!(Numbers::ALL.includes(Numbers { first: USER_BASE, count: 1 }));
        assert!(!Numbers::ALL.includes(Numbers { first: USER_BASE - 1, count: 2 }));
        assert!(!Numbers::ALL.includes(Numbers { first: (1 << THREAD_BITS) - 1, count: 2 }));
        assert!(Numbers::ALL.contains((1 << THREAD_BITS) - 1) && !Numbers::NONE.contains(0));
    }

    #[test]
    fn never_is_the_highest() {
        let short = Ceilings { slice: Time::micros(10), ..Ceilings::NONE };
        assert!(short.within(Ceilings::NONE) && !Ceilings::NONE.within(short));
        assert_eq!(short.min(Ceilings::NONE), short);
        assert_eq!(Ceilings::NONE.min(short), short);
    }
}
