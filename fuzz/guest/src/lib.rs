//! What hostile threads do, for every program that lets them loose: random calls with
//! structure (`hostile`), the memory in which they are (`den`), random numbers (`rng`), and
//! the unsafe floor below (`machine`, `call`); and what bystanders check of their registers.
//!
//! Who uses it says where dens are: it defines `fuzz_live`, which a hostile thread runs
//! first, and calls [`hostile::live`] with the thread's den.
#![no_std]

pub mod call;
pub mod den;
pub mod hostile;
pub mod machine;
pub mod registers;
pub mod rng;

/// Ports without effect that some of the hostile are given: DMA page registers.
pub const HARMLESS_PORTS: (u16, u32) = (0x80, 4);
/// Log2 size of the memory that the hostile map to and fro: two large pages.
pub const PLAYGROUND_BITS: u32 = 22;
