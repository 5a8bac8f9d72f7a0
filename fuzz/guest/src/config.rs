//! What the host wants: seed, number of calls, weights. It comes as a raw module of
//! the boot image; without one there is a default.
//!
//! Words, little endian: magic, seed, calls, calls between two checks, number of
//! weights, weights. Missing weights are those of the default.

use bootcfg::{Kind, records};
use runtime::{kip, sigma0};

use crate::hostile::{ACTIONS, DEFAULT_WEIGHTS};

/// First word of the module.
const MAGIC: u64 = u64::from_le_bytes(*b"FUZZCONF");

/// A run's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Everything random follows from it.
    pub seed: u64,
    /// How many calls.
    pub calls: u64,
    /// Calls between two runs of the kernel's checker, on average.
    pub check_every: u64,
    /// How often each action is taken, relatively.
    pub weights: [u64; ACTIONS],
}

impl Default for Config {
    fn default() -> Self {
        Self { seed: 1, calls: 1_000_000, check_every: 50_000, weights: DEFAULT_WEIGHTS }
    }
}

/// Reads the module.
#[must_use]
pub fn read() -> Config {
    module().unwrap_or_default()
}

fn module() -> Option<Config> {
    let at = kip::get().bootinfo();
    let first = at & !0xFFF;
    // Its first page says how many there are.
    let head = sigma0::range(first, first + 4096)?;
    let offset = at - first;
    let size = head.read(offset + 16).min(1 << 16);
    let rest = first + 4096;
    let more = if at + size > rest { sigma0::range(rest, at + size) } else { None };
    let read = |byte: u64| match (offset + byte, &more) {
        (place, _) if place < 4096 => head.read(place),
        (place, Some(window)) if place - 4096 < window.bytes() => window.read(place - 4096),
        _ => 0,
    };
    let mut found = None;
    let walked = records(read, |record| {
        if let Kind::Module { start, size } = record.kind {
            found = found.or(Some((start, size)));
        }
    });
    let (start, size) = walked.ok().and(found)?;
    let page = start & !0xFFF;
    let window = sigma0::range(page, start + size)?;
    let word =
        |index: u64| if index * 8 < size { window.read(start - page + index * 8) } else { 0 };
    if word(0) != MAGIC {
        return None;
    }
    let mut config = Config { seed: word(1), calls: word(2), ..Config::default() };
    config.check_every = word(3).max(1);
    for (index, weight) in config.weights.iter_mut().enumerate().take(word(4) as usize) {
        *weight = word(5 + index as u64);
    }
    Some(config)
}
