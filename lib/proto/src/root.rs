//! The root task's interface: names, threads, tasks, resources.

pub use interfaces::images::label::{BAD_FAULT, OF as TASK_IMAGE, POOL_BYTES};
pub use interfaces::names::label::{CLIENT, LOOKUP, REGISTER};
pub use interfaces::parent::label::{
    ARGUMENTS, ATTACH_INTERRUPT as IRQ, CREATE_SPACE, CREATE_THREAD, DELETE_THREAD, DRAINED, EXIT,
    FILE, FRAMEBUFFER, IS_ALIVE, LOG, MEMORY, PORTS, SET_PRIORITY as PRIORITY,
};
pub use interfaces::tasks::State;
pub use interfaces::tasks::label::{
    DESCRIBE, HALT, INSPECT, KILL, MEMORY_USE, RESTART, START, WAIT,
};

/// For [`HALT`]: all went well (the emulator leaves with status 33).
pub const SUCCESS: u64 = 0x10;
/// The code of failure.
pub const FAILURE: u64 = 0x11;

/// The version of a task's thread: `31..16` generation of the task, `15..1` how
/// many threads it had before in that generation, `0` 1, so that it is legal.
#[must_use]
pub const fn version_of(generation: u64, births: u16) -> u32 {
    (generation as u32 & 0xFFFF) << 16 | (births as u32 & 0x7FFF) << 1 | 1
}

/// The generation of a task whose threads have this version.
#[must_use]
pub const fn generation_of(version: u32) -> u64 {
    (version >> 16) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_legal_and_tell_generations_and_threads_apart() {
        for generation in [0, 1, 2, 0xFFFF] {
            for births in [0, 1, 31, 32, 0x7FFF] {
                let version = version_of(generation, births);
                assert_ne!(version & 0x3F, 0);
                assert_eq!(generation_of(version), generation);
                assert_ne!(version, version_of(generation, births ^ 1));
            }
        }
    }
}
