//! What the kernel's tests share: a simulated machine, tasks on it, a generator of
//! random numbers, and the models.

pub mod clan;
pub mod exit;
pub mod fastpath;
pub mod hidden;
pub mod ipcmodel;
pub mod model;
pub mod modelled;
pub mod players;
pub mod ports;
pub mod shrink;
pub mod tasks;
pub mod there;

use kernel::mem::check::{Removals, Violation, check};
use kernel::mem::{AddressSpace, MarkerRef, Quota, SpaceRef, frames, reserved};

/// Where the tests' physical memory begins; σ0 has it, the kernel's pool is below.
pub const RAM: u64 = 0x1000_0000;

/// End of the kernel's pool.
const POOL_END: u64 = 0x200_0000;

/// One simulated machine.
pub struct Machine {
    pub bank: Quota,
    pub spaces: Vec<SpaceRef>,
    /// For one job at a time.
    pub marker: MarkerRef,
    /// Free frames when only σ0 existed.
    pub free_at_start: u64,
}

impl Machine {
    /// A machine with σ0 and `others` further spaces with `pages` of quota each.
    /// `hole`: the kernel keeps one page of each 2 MiB, so that σ0's pages are small.
    pub fn new(others: u32, pages: u64, hole: bool) -> Self {
        frames::init(0x1000, RAM);
        let info = frames::info_bytes(RAM);
        frames::add_region(0x1000 + info, POOL_END);
        assert!(reserved::add_ram(0, 1 << 32));
        assert!(reserved::add_reserved(0, RAM));
        if hole {
            for chunk in 0..4 {
                let end = RAM + (chunk + 1) * (1 << 21);
                assert!(reserved::add_reserved(end - 0x1000, end));
            }
        }
        let bank = Quota::new(frames::free());
        let sigma0 = AddressSpace::create(1, &bank, 1024).expect("σ0 fits");
        sigma0.make_sigma0();
        let free_at_start = frames::free();
        let mut machine = Self { bank, spaces: vec![sigma0], marker: marker(), free_at_start };
        for id in 0..others {
            let space = AddressSpace::create(2 + id, &machine.bank, pages).expect("quota suffices");
            machine.spaces.push(space);
        }
        machine
    }

    pub fn sigma0(&self) -> SpaceRef {
        self.spaces[0]
    }

    /// All violations of the kernel's own checker.
    pub fn violations(&self, jobs_under_way: bool) -> Vec<Violation> {
        let removals = if jobs_under_way { Removals::UnderWay } else { Removals::Done };
        let mut found = Vec::new();
        for space in &self.spaces {
            check(*space, removals, &mut |violation| found.push(violation));
        }
        found
    }
}

/// Runs `test` on a machine of its own.
pub fn apart(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| scope.spawn(test).join()).expect("it holds");
}

/// A marker for a job of its own.
pub fn marker() -> MarkerRef {
    MarkerRef::of(Box::leak(Box::default()))
}

/// xorshift64*: small, and the same on every machine.
pub struct Random(u64);

impl Random {
    /// Seeded by `BATON_SEED` or `default`; says which.
    pub fn seeded(default: u64) -> Self {
        let seed = std::env::var("BATON_SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or(default);
        println!("seed {seed} (BATON_SEED={seed} repeats this run)");
        Self::new(seed)
    }

    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 16) % limit
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
