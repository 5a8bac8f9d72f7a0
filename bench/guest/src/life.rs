//! Threads and tasks, made and deleted; the timer tick. Rows of the suites `ops`
//! and, among many others of their kind, `growth`.

use core::fmt::Display;

use abi::ThreadId;
use abi::layout::INITIAL_UTCB_AREA;
use runtime::{clock, kernel};

use crate::marks::{begin, end, note, sample};
use crate::partner::{Result, fresh_id, space, why};
use crate::{Samples, row};

const ROUNDS: u64 = 4;
/// A UTCB of the root task's area that no partner gets.
const LOCATION: u64 = INITIAL_UTCB_AREA + 255 * 1024;
const UTCB_BITS: u32 = 14;

/// Rows `thread-create` (active, in an existing space, with an id that nobody has had) and
/// `thread-delete`;
/// `parameters` are appended.
pub fn threads(suite: &str, parameters: impl Display) -> Result<()> {
    let (id, root) = (fresh_id(), ThreadId::ROOT);
    kernel::create_active(id, root, root, root, LOCATION).map_err(why)?;
    kernel::delete(id).map_err(why)?;
    let samples = Samples::start();
    for version in 2..2 + ROUNDS as u32 {
        let id = ThreadId::global(id.number(), version);
        sample(|| kernel::create_active(id, root, root, root, LOCATION)).map_err(why)?;
        sample(|| kernel::delete(id)).map_err(why)?;
    }
    samples.row(format_args!("{suite}/thread-create{parameters}"), 0, 2);
    samples.row(format_args!("{suite}/thread-delete{parameters}"), 1, 2);
    Ok(())
}

/// Rows `task-create` (space, quota, areas, an active thread) and `task-delete`.
pub fn tasks(suite: &str, parameters: impl Display) -> Result<()> {
    let id = fresh_id();
    let samples = Samples::start();
    for version in 2..2 + ROUNDS as u32 {
        let id = ThreadId::global(id.number(), version);
        sample(|| space(id, UTCB_BITS, 64)).map_err(why)?;
        sample(|| kernel::delete(id)).map_err(why)?;
    }
    samples.row(format_args!("{suite}/task-create{parameters}"), 0, 2);
    samples.row(format_args!("{suite}/task-delete{parameters}"), 1, 2);
    Ok(())
}

/// Row `timer-tick`: samples that are interrupted once each (more or less; the
/// host takes those with exactly one kernel entry).
pub fn ticks(suite: &str, parameters: impl Display, count: u64) {
    let samples = Samples::start();
    for _ in 0..count {
        wait_for_tick();
    }
    row!(samples, "{suite}/timer-tick{parameters}");
}

/// Row `sweeping/timer-tick`: the same, while those are looked for who wait for a thread
/// that has just been deleted.
pub fn sweeping_ticks(suite: &str, parameters: impl Display, count: u64) {
    let samples = Samples::start();
    for _ in 0..count {
        wait_for_tick();
    }
    row!(samples, "{suite}/sweeping/timer-tick{parameters}");
}

/// One sample that is longer than the time from tick to tick, and shorter than two.
pub fn wait_for_tick() {
    /// Nanoseconds, that is instructions, of the loop below.
    const SPAN: u64 = 1_050_000;
    let from = clock::ticks();
    begin();
    while clock::ticks().wrapping_sub(from) < SPAN {
        core::hint::spin_loop();
    }
    end();
    note(1);
}
