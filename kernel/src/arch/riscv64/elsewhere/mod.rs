//! The processor's half of `elsewhere`: other processors, and who is there.

pub mod visits;
