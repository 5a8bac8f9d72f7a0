//! The processor's half of `elsewhere`: other processors, and who is there.

pub mod processors;
pub mod replica;
pub mod seats;
pub mod visits;
