//! The stubs of the interfaces of a Baton system.
//!
//! `stubs.in` is made from `interfaces/*.wit` by `baton-idl` and checked in, so that building a
//! system does not take building the compiler; `./baton idl --accept` makes it, a test compares. `docs/services.md` tells how to use stubs.
#![no_std]
#![forbid(unsafe_code)]
#![allow(
    clippy::needless_lifetimes,
    clippy::let_unit_value,
    clippy::unit_arg,
    clippy::type_complexity
)]

include!("stubs.in");
