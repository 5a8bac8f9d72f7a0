//! What server and client share: the stubs of `wit/carried.wit`.
#![no_std]
#![forbid(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
