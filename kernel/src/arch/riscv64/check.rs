//! The processor's half of the checker.

use core::fmt::Arguments;

/// Nothing of the processor is set up that could be otherwise.
pub fn check(_note: &mut dyn FnMut(Arguments<'_>)) {}
