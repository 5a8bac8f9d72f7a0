//! The host tool behind `./baton`: builds kernel and programs, lays out boot
//! images, starts the emulator, runs the tests, checks the house rules.
#![forbid(unsafe_code)]

pub mod image;
