//! Deterministic mutations: the same seed gives the same inputs on every machine.

/// Longest input, bytes.
const MAX_BYTES: usize = 1 << 16;

/// xorshift64*.
pub struct Random(u64);

impl Random {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Any number.
    pub fn word(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        ((self.word() >> 16) % limit as u64) as usize
    }

    /// Numbers that break arithmetic: small, page-sized, huge, at the edges.
    pub fn awkward(&mut self) -> u64 {
        match self.below(6) {
            0 => self.word() & 0xF,
            1 => self.word() & 0xFF_F000,
            2 => 1 << self.below(64),
            3 => u64::MAX - (self.word() & 0x3FFF),
            4 => (1 << self.below(64)) - 1,
            _ => self.word(),
        }
    }
}

/// Makes inputs out of others.
pub struct Mutator<'a> {
    random: Random,
    seeds: &'a [Vec<u8>],
    words: &'a [&'a str],
}

impl<'a> Mutator<'a> {
    /// Inputs like `seeds`, with `words` in them.
    ///
    /// # Panics
    /// Without seeds.
    #[must_use]
    pub fn new(seed: u64, seeds: &'a [Vec<u8>], words: &'a [&'a str]) -> Self {
        assert!(!seeds.is_empty(), "mutations need something to begin with");
        Self { random: Random::new(seed), seeds, words }
    }

    /// The next input: one of the seeds with up to four changes.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.seeds[self.random.below(self.seeds.len())].clone();
        for _ in 0..=self.random.below(4) {
            self.change(&mut input);
        }
        input.truncate(MAX_BYTES);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let len = input.len();
        if len == 0 {
            input.push(self.random.word() as u8);
            return;
        }
        let at = self.random.below(len);
        match self.random.below(14) {
            0 => input[at] ^= 1 << self.random.below(8),
            1 => input[at] = self.random.word() as u8,
            2..=5 => self.number(input, at),
            6 | 7 => self.digit(input, at),
            8 => self.word(input, at),
            9 => {
                let count = self.random.below(len - at) + 1;
                input.drain(at..at + count.min(1 << self.random.below(10)));
            }
            10 => {
                let count = (self.random.below(len - at) + 1).min(1 << self.random.below(10));
                let piece = input[at..at + count].to_vec();
                let to = self.random.below(len + 1);
                input.splice(to..to, piece);
            }
            11 => input.truncate(at),
            12 => {
                let other = &self.seeds[self.random.below(self.seeds.len())];
                input.truncate(at);
                input.extend(other.iter().skip(self.random.below(other.len() + 1)));
            }
            _ => {
                let bytes = (self.random.word().to_le_bytes(), self.random.below(9));
                input.splice(at..at, bytes.0.into_iter().take(bytes.1));
            }
        }
    }

    /// Puts an awkward number there, or adds a little to the one that is there.
    fn number(&mut self, input: &mut [u8], at: usize) {
        let width = 1 << self.random.below(4);
        let at = at / width * width;
        let Some(place) = input.get_mut(at..at + width) else { return };
        let mut old = [0; 8];
        old[..width].copy_from_slice(place);
        let near = u64::from_le_bytes(old).wrapping_add(self.random.word() & 0x1F).wrapping_sub(16);
        let new = if self.random.below(3) == 0 { near } else { self.random.awkward() };
        place.copy_from_slice(&new.to_le_bytes()[..width]);
    }

    /// Changes a digit, if there is one from there on, or the whole number that it begins.
    fn digit(&mut self, input: &mut Vec<u8>, at: usize) {
        let Some(start) = input[at..].iter().position(u8::is_ascii_hexdigit) else { return };
        let start = at + start;
        let is_number = |byte: &&u8| byte.is_ascii_hexdigit() || **byte == b'x';
        let digits = input[start..].iter().take_while(is_number).count();
        if self.random.below(2) == 0 {
            input[start] = b"0123456789abcdefF"[self.random.below(17)];
            return;
        }
        let number = self.random.awkward();
        let text =
            if self.random.below(2) == 0 { format!("{number}") } else { format!("{number:#x}") };
        input.splice(start..start + digits, text.into_bytes());
    }

    /// Puts a word over what is there, or between.
    fn word(&mut self, input: &mut Vec<u8>, at: usize) {
        let Some(word) = self.words.get(self.random.below(self.words.len().max(1))) else { return };
        let end = if self.random.below(2) == 0 { at } else { (at + word.len()).min(input.len()) };
        input.splice(at..end, word.bytes());
    }
}
