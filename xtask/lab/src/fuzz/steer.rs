//! Steering: a hill climb over the weights of the actions. Weights that reached new
//! blocks of the kernel are kept and varied; others are dropped for the best so far.

/// The guest's own weights (fuzz/guest/src/hostile/mod.rs), but for those of the actions that
/// are for the system with real servers.
const DEFAULT: [u64; 22] = [10, 6, 8, 12, 14, 10, 6, 3, 4, 4, 1, 3, 3, 6, 4, 2, 2, 2, 6, 2, 6, 4];

/// The state of the search.
pub struct Steering {
    seed: u64,
    random: u64,
    best: Vec<u64>,
    now: Vec<u64>,
}

impl Steering {
    /// Begins at `seed` with the guest's own weights.
    pub const fn new(seed: u64) -> Self {
        Self { seed, random: seed | 1, best: Vec::new(), now: Vec::new() }
    }

    /// The seed of the round at hand.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The weights of the round at hand; none: the guest's own.
    pub fn weights(&self) -> Vec<u64> {
        self.now.clone()
    }

    /// The round reached `fresh` new blocks: its weights are worth keeping if any. The
    /// next round varies the best.
    pub fn learn(&mut self, fresh: usize) {
        if fresh > 0 {
            self.best = if self.now.is_empty() { DEFAULT.to_vec() } else { self.now.clone() };
        }
        self.now = if self.best.is_empty() { DEFAULT.to_vec() } else { self.best.clone() };
        for _ in 0..4 {
            let at = self.word() as usize % self.now.len();
            let factor = self.word() % 6;
            self.now[at] = (self.now[at] * factor / 2).clamp(1, 60);
        }
    }

    /// On to the next seed.
    pub const fn next(&mut self) {
        self.seed = self.seed.wrapping_add(1);
    }

    const fn word(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reached_something_new_is_varied_further() {
        let mut steering = Steering::new(3);
        assert!(steering.weights().is_empty(), "the first round is the guest's own");
        steering.learn(5);
        let second = steering.weights();
        assert_eq!(second.len(), DEFAULT.len());
        assert_ne!(second, DEFAULT);
        steering.next();
        assert_eq!(steering.seed(), 4);
        steering.learn(1);
        assert_eq!(steering.best, second, "a round that reached something is the best so far");
        steering.learn(0);
        assert_eq!(steering.best, second, "one that did not is dropped");
        assert!(steering.weights().iter().all(|weight| (1..=60).contains(weight)));
    }
}
