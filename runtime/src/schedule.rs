//! Priorities and the processor.

use abi::{CallError, ThreadId, Time};

use crate::{syscall, utcb};

const UNCHANGED: u64 = !0;

/// Sets a thread's priority (0 to 255, 255 highest).
///
/// Allowed to its scheduler, and never above the caller's own priority unless
/// the caller is privileged.
pub fn set_priority(thread: ThreadId, priority: u8) -> Result<(), CallError> {
    let (state, _) =
        syscall::schedule(thread.0, UNCHANGED, UNCHANGED, u64::from(priority), UNCHANGED);
    outcome(state)
}

/// What the state says that Schedule answers.
fn outcome(state: u64) -> Result<(), CallError> {
    if state != 0 {
        return Ok(());
    }
    Err(CallError::decode(utcb::error_code()).unwrap_or(CallError::InvalidParameter))
}

/// Sets a thread's priority, and how long its turns are.
///
/// Allowed as [`set_priority`] is; neither may be above what the thread's task may have.
pub fn set_turns(thread: ThreadId, priority: u8, turn: Time) -> Result<(), CallError> {
    let time = u64::from(turn.0) << 16 | u64::from(Time::NEVER.0);
    let (state, _) = syscall::schedule(thread.0, time, UNCHANGED, u64::from(priority), UNCHANGED);
    outcome(state)
}

/// Gives up the rest of the time slice.
pub fn yield_now() {
    syscall::thread_switch(0);
}

/// Gives the rest of the time slice to `thread`.
pub fn yield_to(thread: ThreadId) {
    syscall::thread_switch(thread.0);
}

/// Lets a thread's user code run on processor `number`, as the interface page counts them.
pub fn set_processor(thread: ThreadId, number: u32) -> Result<(), CallError> {
    let (state, _) =
        syscall::schedule(thread.0, UNCHANGED, u64::from(number), UNCHANGED, UNCHANGED);
    outcome(state)
}

/// Changes nothing. A thread whose user code runs on another processor comes back from there, and goes on: its
/// processor has executed a full barrier.
pub fn bring_back(thread: ThreadId) -> Result<(), CallError> {
    let (state, _) = syscall::schedule(thread.0, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED);
    outcome(state)
}
