//! Runs what `build` has invented: every value has to come through the stubs unchanged, and
//! whatever else comes must be answered with an error and have no other effect.
#![forbid(unsafe_code)]

pub mod carry;
pub mod relay;

#[allow(clippy::all, clippy::pedantic, dead_code)]
mod stubs {
    include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
}

#[cfg(test)]
#[allow(clippy::all, clippy::pedantic, unused_variables, unused_mut)]
mod trials {
    use service::List;

    use super::carry::{Inside, Near, Nonsense, garbage_to_server};
    use super::relay::{Liar, Relay, Through, garbage_to_both, same_end};
    use super::stubs::*;

    include!(concat!(env!("OUT_DIR"), "/trials.rs"));
}
