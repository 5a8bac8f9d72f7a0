//! The host tool behind `./baton`: builds kernel and programs, lays out boot
//! images, starts the emulator, runs the tests, checks the house rules.
#![forbid(unsafe_code)]

pub mod bench;
pub mod build;
pub mod cli;
pub mod compose;
pub mod debug;
pub mod fuzz;
pub mod image;
pub mod iso;
pub mod lint;
pub mod linux;
pub mod machine;
pub mod session;
pub mod system;
pub mod test;
pub mod ui;
pub mod workspace;
