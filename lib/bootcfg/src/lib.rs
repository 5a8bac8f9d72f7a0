//! What the boot loader left: the bootinfo's records (X.2 6.11) and the task
//! descriptions in their command lines.
//!
//! No allocation: the root task reads this before there is any memory to
//! allocate. [`records`] walks words that somebody else maps; [`Spec::parse`]
//! reads `name key=value ...`; [`claims`] says which devices it may name; [`places`] what changes in a
//! program that moves.
#![no_std]
#![forbid(unsafe_code)]

pub mod claims;
mod names;
pub mod places;
mod ranges;
mod spec;
mod walk;

pub use names::{DEFAULT_USES, Names, PROVIDES, USES};
pub use ranges::{LIST, Ranges};
pub use spec::{ALL, ARGS_BYTES, FRAMEBUFFER, Mistake, Screen, Spec, Trusted};
pub use walk::{BadBootinfo, Kind, LINE_BYTES, Record, records};
