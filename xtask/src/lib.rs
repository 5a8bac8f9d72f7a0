//! The host tool behind `./baton`, the half that a first system needs: builds kernel and
//! programs, lays out boot images, starts the emulator. `xtask/lab` has the other verbs.
#![forbid(unsafe_code)]

pub mod bochs;
pub mod build;
pub mod cli;
pub mod compose;
pub mod debug;
pub mod image;
pub mod iso;
pub mod linux;
pub mod machine;
pub mod session;
pub mod system;
pub mod ui;
pub mod workspace;
