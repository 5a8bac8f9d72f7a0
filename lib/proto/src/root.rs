//! The root task's interface: names, threads, tasks, resources.

pub use interfaces::images::label::{BAD_FAULT, OF as TASK_IMAGE, POOL_BYTES};
pub use interfaces::names::label::{CLIENT, LOOKUP, REGISTER};
pub use interfaces::parent::label::{
    ARGUMENTS, ATTACH_INTERRUPT as IRQ, CREATE_SPACE, CREATE_THREAD, DELETE_THREAD, DRAINED, EXIT,
    IS_ALIVE, LOG, SET_PRIORITY as PRIORITY,
};
pub use interfaces::tasks::State;
pub use interfaces::tasks::label::{
    DESCRIBE, HALT, INSPECT, KILL, MEMORY_USE, RESTART, START, WAIT,
};

const BASE: u64 = 0x100;

/// MR1 first port, MR2 count. Reply: map items with the I/O flexpages.
pub const PORTS: u64 = BASE + 2;
/// MR1 log2 size, MR2 physical address or [`ANYWHERE`]. Reply: MR1 physical
/// address, MR2 1 if ordinary memory holds what this task left in it before it was
/// started again (0: it is zeroed), map item with the memory.
pub const MEMORY: u64 = BASE + 4;
/// MR1, MR2 name of a boot module (a raw file) that the task uses, MR3 an offset in bytes. Reply: MR1 its
/// size, MR2 its physical address, MR3 how many bytes from the offset's page on the
/// reply's map items cover (read-only; each at its physical address in the window).
pub const MODULE: u64 = BASE + 12;
/// Reply: MR1 to MR5 the boot loader's framebuffer ([`abi::Framebuffer::words`]), map items with its pages
/// (each at its physical address in the window), for the task whose description names it.
pub const FRAMEBUFFER: u64 = BASE + 14;

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
