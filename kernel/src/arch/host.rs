//! The host in the processor's place, for tests.

pub mod memory;
