//! The list of scenarios.

use runtime::kip;

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
    /// Its threads make calls, which the first processor carries out, wherever they live.
    pub calls: bool,
    /// They are on all processors. Who waits for somebody on another one waits there for a turn each time, so
    /// those that hand each other much are on one, and whoever is to do as much as it can is on the first.
    pub is_spread: bool,
}

impl Scenario {
    /// The processor of its first thread: one after the other. Who lives elsewhere than the kernel gets little
    /// from it in a turn beside others, so what is to be used up is taken on the first.
    pub fn seat(&self, life: u32) -> u32 {
        if self.refused || !self.is_spread { 0 } else { life % kip::get().processors() }
    }
}

const USUAL: Scenario = Scenario {
    name: "",
    priority: hostile::PRIORITY,
    quota: 2_500,
    body: hostile::spin,
    span_us: 0,
    gets: true,
    refused: false,
    calls: true,
    is_spread: true,
};

/// What every scenario but the hogs takes, µs.
fn span_us(length: Length) -> u64 {
    match length {
        Length::Short => 250_000 * sharers(length),
        Length::Long | Length::AtOnce => 2_000_000 * sharers(length),
    }
}

/// Where processors take turns time is that of all together.
fn sharers(length: Length) -> u64 {
    if length == Length::AtOnce { 1 } else { kip::get().processors().into() }
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
            span_us: if length == Length::AtOnce { 3 * span_us } else { span_us.max(1_500_000) },
            ..usual
        },
        Scenario { name: "tasks", body: resources::tasks, refused: true, ..usual },
        Scenario {
            name: "mappings",
            body: resources::mappings,
            is_spread: false,
            refused: true,
            ..usual
        },
        Scenario {
            name: "tree",
            body: resources::tree,
            is_spread: false,
            span_us: 2 * span_us,
            ..usual
        },
        Scenario { name: "chain", body: resources::chain, is_spread: false, quota: 4_000, ..usual },
        Scenario { name: "timers", body: resources::timers, ..usual },
        Scenario { name: "messages", body: messages::messages, span_us: span_us * 2, ..usual },
        Scenario { name: "interrupts", body: interrupts::storm, is_spread: false, ..usual },
    ]
}

/// A hog at `priority`.
pub fn hog(priority: u8, length: Length) -> Scenario {
    let span_us = if length == Length::AtOnce { 2_000_000 } else { 95_000 };
    let span_us = span_us * sharers(length);
    Scenario { name: "hog", priority, span_us, gets: false, calls: false, quota: 0, ..USUAL }
}

/// Distance of the priorities at which there is a hog: one after the other on each processor, and several take longer.
pub fn hog_step(length: Length) -> usize {
    match (length, kip::get().processors() as usize) {
        (Length::Short, 1) => 54,
        (Length::Short, _) => 108,
        (Length::AtOnce, _) => 36,
        (Length::Long, 1) => 1,
        (Length::Long, count) => count + 1,
    }
}

/// How many tasks are made and deleted.
pub fn tasks(length: Length) -> u64 {
    let count = match length {
        Length::Short => 1_500,
        Length::Long => 100_000,
        Length::AtOnce => 6_000,
    };
    count / u64::from(kip::get().processors())
}
