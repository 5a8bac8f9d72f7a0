//! The root task's interface: names, threads, tasks, resources.

pub use interfaces::names::label::{CLIENT, LOOKUP, REGISTER};
pub use interfaces::tasks::State;
pub use interfaces::tasks::label::{
    DESCRIBE, HALT, INSPECT, KILL, MEMORY_USE, RESTART, START, WAIT,
};

const BASE: u64 = 0x100;

/// MR1 first port, MR2 count. Reply: map items with the I/O flexpages.
pub const PORTS: u64 = BASE + 2;
/// MR1 line: interrupts of that line become messages to the sender. Reply: empty.
pub const IRQ: u64 = BASE + 3;
/// MR1 log2 size, MR2 physical address or [`ANYWHERE`]. Reply: MR1 physical
/// address, MR2 1 if ordinary memory holds what this task left in it before it was
/// started again (0: it is zeroed), map item with the memory.
pub const MEMORY: u64 = BASE + 4;
/// Reply: MR1 id, MR2 index of a new thread in the sender's space.
pub const CREATE_THREAD: u64 = BASE + 5;
/// Reply: MR1 id, MR2 index of a new thread in a space of its own; its pager is
/// the sender, which starts it.
pub const CREATE_SPACE: u64 = BASE + 6;
/// MR1 id of a thread of the sender's task. Reply: empty (none if it was the sender).
pub const DELETE_THREAD: u64 = BASE + 7;
/// MR1 id of a thread of the sender's task. Reply: MR1 1 if it exists, else 0.
pub const IS_ALIVE: u64 = BASE + 8;
/// MR1 code: the sender's task is over. No reply.
pub const EXIT: u64 = BASE + 9;
/// MR1 bytes, then text: shown on the root task's own console line. Reply: empty.
pub const LOG: u64 = BASE + 10;
/// MR1, MR2 name of this task's argument line. MR1 offset. Reply: MR1 bytes
/// left from there, then text.
pub const ARGUMENTS: u64 = BASE + 11;

/// MR1, MR2 name of a boot module (a raw file) that the task uses, MR3 an offset in bytes. Reply: MR1 its
/// size, MR2 its physical address, MR3 how many bytes from the offset's page on the
/// reply's map items cover (read-only; each at its physical address in the window).
pub const MODULE: u64 = BASE + 12;

/// From the console's driver: it has sent all that it had (its answer to
/// [`crate::console::DRAIN`]). No reply.
pub const DRAINED: u64 = BASE + 14;
/// Sets the priority of the thread MR1 of the caller's task to MR2, at most that of the task.
/// Only a thread's scheduler may do so itself (X.2 5.7), and that is the root task.
pub const PRIORITY: u64 = BASE + 15;

/// From the pager: MR1 thread. Reply: MR1 physical start, MR2 virtual start,
/// MR3 text, MR4 data, MR5 bss bytes, MR6 limit in pages, MR7 generation, MR8 the thread
/// numbers of the task whose faults the pager answers ([`abi::Numbers`]).
pub const TASK_IMAGE: u64 = BASE + 48;
/// From the pager: MR1 thread, MR2 address, MR3 IP, MR4 access, MR5 reason (a
/// code of `paging::Refusal`). No reply to the faulting thread: it is ended.
pub const BAD_FAULT: u64 = BASE + 49;
/// From the pager. Reply: MR1 bytes of its pool.
pub const POOL_BYTES: u64 = BASE + 50;

/// For [`HALT`]: all went well (the emulator leaves with status 33).
pub const SUCCESS: u64 = 0x10;
/// The code of failure.
pub const FAILURE: u64 = 0x11;

/// For [`MEMORY`]: any physical address will do.
pub const ANYWHERE: u64 = !0;

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
