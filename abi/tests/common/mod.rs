//! A generator of random numbers: the same on every machine.

// Every test program uses a part of this.
#![allow(dead_code)]

/// xorshift64*.
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number with a random number of bits, so that small ones are as likely as large ones.
    pub fn any_size(&mut self) -> u64 {
        let bits = self.next() >> 58;
        self.next() >> bits
    }
}
