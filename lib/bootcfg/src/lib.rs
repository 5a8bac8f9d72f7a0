//! What the boot loader left: the bootinfo's records (X.2 6.11) and the task
//! descriptions in their command lines.
//!
//! No allocation: the root task reads this before there is any memory to
//! allocate. [`records`] walks words that somebody else maps; [`Spec::parse`]
//! reads `name key=value ...`.
#![no_std]
#![forbid(unsafe_code)]

mod spec;
mod walk;

pub use spec::{Mistake, Spec};
pub use walk::{BadBootinfo, Kind, LINE_BYTES, Record, records};
