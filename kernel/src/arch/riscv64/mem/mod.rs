//! The processor's half of memory: what a space is for it, and what it has to be told.

pub mod ports;
pub mod root;
pub mod tlb;
