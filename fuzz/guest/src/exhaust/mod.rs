//! Exhaustion: one task after the other takes all it can get of one kind: threads, tasks,
//! mappings, timers, messages, interrupts, time. Beside it a canary of its priority counts
//! its share of the processor, and one of higher priority how late it wakes. Afterwards
//! the hostile task is deleted, the kernel's checker looks, and every frame has to be back.
//!
//! This thread is the root task: pager of all at the highest priority. While a scenario is
//! measured nobody faults, so it sleeps.

mod canaries;
mod hostile;
mod interrupts;
mod judge;
mod messages;
mod pager;
mod resources;
mod rivals;
mod scenarios;
mod turns;

pub use judge::run;

/// How much is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// For every day.
    Short,
    /// What the published figures come from.
    Long,
    /// The same where processors run at once and not in turns: fewer and longer measurements, for
    /// the emulator may be kept from its processors at any time.
    AtOnce,
}
