//! x86-64.

pub mod boot;
pub mod cpu;
pub mod features;
pub mod pic;
pub mod serial;
pub mod stubs;
pub mod tables;
pub mod timer;

pub use cpu::{exit, ticks};
pub use serial::write as console_write;
