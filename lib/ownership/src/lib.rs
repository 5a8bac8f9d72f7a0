//! The initial space's book: who owns which memory and which ports.
//!
//! σ0 has every physical page and every port, and gives each out once (X.2 6.7).
//! [`Regions`] is the book for one resource: disjoint regions, sorted, each with
//! one [`Owner`]. [`Book`] answers σ0's messages from two of them and the
//! kernel's memory descriptors; the server around it only sends and receives.
#![no_std]
#![forbid(unsafe_code)]

mod book;
mod regions;

pub use book::{Answer, Book};
pub use regions::{Full, Owner, Regions};
