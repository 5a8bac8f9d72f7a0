//! Seeded random numbers (xorshift64*), so that every run is the same.

/// The state; never 0.
pub struct Rng(u64);

impl Rng {
    /// A generator that starts from `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// The next word.
    pub fn word(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `limit` > 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.word() >> 16) % limit
    }

    /// Whether an event of one in `n` happens.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `list`, which is not empty.
    pub fn pick(&mut self, list: &[u64]) -> u64 {
        list[self.below(list.len() as u64) as usize]
    }
}
