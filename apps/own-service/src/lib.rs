//! What server and client share: the stubs of the interface in `wit/own-service.wit`, and the
//! board itself, which needs no machine and is tested on the host.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod board;

pub use board::Board;

include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
