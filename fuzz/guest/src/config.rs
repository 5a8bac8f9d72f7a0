//! What the host wants: fuzzing with seed, number of calls and weights, or one of the
//! exhausting scenarios' two lengths. It comes as a raw module of the boot image;
//! without one the fuzzer runs with its defaults.
//!
//! Fuzzing, in words, little endian: magic, seed, calls, calls between two checks,
//! number of weights, weights, by how much times are stretched. Missing weights are those of the default. Exhausting, as
//! text: a line `exhaust!`, then a line `short`, `long` or `at-once`, with a number behind it by how much times are stretched.

use root_harness::file::File;

use crate::exhaust::Length;
use crate::hostile::{ACTIONS, DEFAULT_WEIGHTS};

/// First word of the module for the fuzzer.
const MAGIC: u64 = u64::from_le_bytes(*b"FUZZCONF");
/// First word of the module for the exhausting scenarios.
const EXHAUST: u64 = u64::from_le_bytes(*b"exhaust!");

/// What this program is to do; there is one, and no heap.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Copy, Debug)]
pub enum Task {
    /// Random calls.
    Fuzz(Config),
    /// One kind of exhaustion after the other, and by how much times are stretched.
    Exhaust(Length, u64),
}

/// A fuzzing run's parameters.
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
    /// By how much the times in which something must happen are stretched: where instructions are
    /// not counted, the emulator may be kept from its own processors.
    pub slack: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { seed: 1, calls: 1_000_000, check_every: 50_000, weights: DEFAULT_WEIGHTS, slack: 1 }
    }
}

/// Reads the module.
#[must_use]
pub fn read() -> Task {
    let Some(file) = File::first() else { return Task::Fuzz(Config::default()) };
    match file.word(0) {
        MAGIC => Task::Fuzz(fuzzing(&file)),
        EXHAUST => exhausting(&file),
        _ => Task::Fuzz(Config::default()),
    }
}

fn exhausting(file: &File) -> Task {
    let mut line = [0; 32];
    for (slot, byte) in line.iter_mut().zip(file.bytes().skip(size_of::<u64>() + 1)) {
        *slot = byte;
    }
    let line =
        line.split(|byte| *byte == b'\n').next().and_then(|line| core::str::from_utf8(line).ok());
    let mut words = line.unwrap_or_default().split_ascii_whitespace();
    let length = match words.next() {
        Some("long") => Length::Long,
        Some("at-once") => Length::AtOnce,
        _ => Length::Short,
    };
    Task::Exhaust(length, words.next().and_then(|word| word.parse().ok()).unwrap_or(1).max(1))
}

fn fuzzing(file: &File) -> Config {
    let mut config = Config { seed: file.word(1), calls: file.word(2), ..Config::default() };
    config.check_every = file.word(3).max(1);
    let count = file.word(4).min(1 << 10);
    for (index, weight) in config.weights.iter_mut().enumerate().take(count as usize) {
        *weight = file.word(5 + index as u64);
    }
    config.slack = file.word(5 + count).max(1);
    config
}
