//! Seeded random numbers (xorshift64*), the same in every run.

/// The state; never 0.
#[derive(Clone, Copy)]
pub struct Rng(u64);

impl Rng {
    /// Goes on from `state`.
    #[must_use]
    pub const fn new(state: u64) -> Self {
        Self(if state == 0 { 0x9E37_79B9_7F4A_7C15 } else { state })
    }

    /// The state, to go on from.
    #[must_use]
    pub const fn state(&self) -> u64 {
        self.0
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

    /// A number below `rare` once in `n` times, else below `usual`.
    pub fn below_either(&mut self, n: u64, rare: u64, usual: u64) -> u64 {
        let limit = if self.one_in(n) { rare } else { usual };
        self.below(limit)
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

/// Independent seeds from one.
#[must_use]
pub const fn mix(seed: u64, index: u64) -> u64 {
    let mut word = seed ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ word >> 31
}
