//! What server and client share: the stubs of `wit/carried.wit`, and what its functions do.
#![no_std]
#![forbid(unsafe_code)]

pub mod server;

include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
