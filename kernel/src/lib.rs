//! The Baton microkernel: threads, address spaces, IPC, and nothing else.
//!
//! One noun, one file. The processor is chosen in `arch/mod.rs` and nowhere
//! else; on the host, `arch::host` stands in, so that everything that is logic
//! can be tested there.
#![cfg_attr(target_os = "none", no_std)]

pub mod arch;
pub mod between;
pub mod boot;
pub mod kip;
pub mod mem;
pub mod techniques;

pub mod call;
pub mod check;
pub mod control;
pub mod destruction;
pub mod elsewhere;
pub mod inspect;
pub mod ipc;
pub mod irq;
pub mod local;
pub mod lrpc;
pub mod resume;
pub mod ring;
pub mod sched;
pub mod space;
pub mod start;
pub mod thread;
pub mod unmap;
pub mod usermem;
