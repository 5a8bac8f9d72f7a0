//! Versions, which make ids unique in time (X.2 1.2): an unprivileged task gives a thread
//! number only versions that it never had. The initial servers may do what X.2 lets them.
//!
//! The last version is in the tcb array's own tables (`thread::last_version`): nobody pays
//! for it, and nobody can use it up.

use abi::{CallError, ThreadId};

use crate::space::SpaceRef;
use crate::thread::{last_version, set_last_version};

/// How far a version may be above the last one: so nobody jumps to the highest, after
/// which a number would have no new one for those who get it later. The lowest six bits of
/// a version are not all zero, so the next one is within reach from everywhere.
pub const STEP: u32 = 128;

/// Whether `own` may make a thread with the id `id` now; the last version of its number.
pub fn check(own: SpaceRef, id: ThreadId) -> Result<u32, CallError> {
    let last = last_version(id.number());
    let newer = id.version() > last && id.version() - last <= STEP;
    if own.is_privileged() || newer { Ok(last) } else { Err(CallError::InvalidThread) }
}

/// A thread that exists has got `id`; a new one has it from `thread::install`.
pub fn note(id: ThreadId) {
    if id.version() > last_version(id.number()) {
        // There is a table: the thread is in it.
        let kept = set_last_version(id.number(), id.version());
        debug_assert!(kept.is_some());
    }
}

/// The thread `id` was never there: its number's last version is `version` again.
pub fn restore(id: ThreadId, version: u32) {
    if last_version(id.number()) != version {
        // There is a table: the thread was in it.
        let kept = set_last_version(id.number(), version);
        debug_assert!(kept.is_some());
    }
}
