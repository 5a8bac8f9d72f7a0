//! The list of scenarios.

use super::Length;
use super::{hostile, interrupts, messages, resources};

/// One kind of exhaustion.
pub struct Scenario {
    /// Its name in the report.
    pub name: &'static str,
    /// Priority of the hostile task's first thread; what it makes has the usual one.
    pub priority: u8,
    /// Kernel memory of the task beyond the usual, pages.
    pub quota: i64,
    /// What its first thread does.
    pub body: extern "C" fn(u64) -> !,
    /// How long it is measured, µs.
    pub span_us: u64,
    /// It has to get something, and to be refused something, or it exhausts nothing.
    pub gets: bool,
    pub refused: bool,
}

const USUAL: Scenario = Scenario {
    name: "",
    priority: hostile::PRIORITY,
    quota: 2_500,
    body: hostile::spin,
    span_us: 0,
    gets: true,
    refused: false,
};

/// What every scenario but the hogs takes, µs.
const fn span_us(length: Length) -> u64 {
    match length {
        Length::Short => 250_000,
        Length::Long => 2_000_000,
    }
}

/// All scenarios but the hogs.
pub fn all(length: Length) -> [Scenario; 9] {
    let span_us = span_us(length);
    let usual = Scenario { span_us, ..USUAL };
    [
        Scenario { name: "threads", body: resources::threads, refused: true, ..usual },
        Scenario {
            name: "crowd",
            body: resources::crowd,
            refused: true,
            span_us: span_us.max(1_500_000),
            ..usual
        },
        Scenario { name: "tasks", body: resources::tasks, refused: true, ..usual },
        Scenario { name: "mappings", body: resources::mappings, refused: true, ..usual },
        Scenario { name: "tree", body: resources::tree, span_us: 2 * span_us, ..usual },
        Scenario { name: "chain", body: resources::chain, quota: 4_000, ..usual },
        Scenario { name: "timers", body: resources::timers, ..usual },
        Scenario { name: "messages", body: messages::messages, span_us: span_us * 2, ..usual },
        Scenario { name: "interrupts", body: interrupts::storm, ..usual },
    ]
}

/// A hog at `priority`.
pub fn hog(priority: u8) -> Scenario {
    Scenario { name: "hog", priority, span_us: 95_000, gets: false, quota: 0, ..USUAL }
}

/// Distance of the priorities at which there is a hog.
pub const fn hog_step(length: Length) -> usize {
    match length {
        Length::Short => 54,
        Length::Long => 1,
    }
}

/// How many tasks are made and deleted.
pub const fn tasks(length: Length) -> u64 {
    match length {
        Length::Short => 1_500,
        Length::Long => 100_000,
    }
}
