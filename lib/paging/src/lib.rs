//! What a task may touch, and which frame backs it.
//!
//! Policy and bookkeeping of the pager, and of the root task where it pages
//! tasks itself. [`place`] decides what belongs at a faulting address;
//! [`Frames`] is an inverted page table: one entry per frame of a pool, found by
//! hashing (task, page). The entries lie in the pool itself, so that a pager
//! that is started afresh finds what its predecessor knew.
#![no_std]
#![forbid(unsafe_code)]

mod frames;
mod place;

pub use frames::{Entry, Frames, Storage};
pub use place::{Image, Page, Refusal, place};
