//! I/O ports: the processor has none, so nobody gets any. Asking for one is refused, as if
//! the memory for its bitmap were lacking; there is nothing to close, to free or to check.

use crate::mem::{NoMemory, SpaceRef, Step};

/// No space gets a bitmap.
pub(crate) fn prepare(_space: SpaceRef) -> Result<Step, NoMemory> {
    Err(NoMemory)
}

/// No port is opened.
pub(crate) fn allow(_space: SpaceRef, _start: u64, _bits: u32) {}

/// No port is open.
pub(crate) fn forbid(_space: SpaceRef, _start: u64, _bits: u32) {}

/// No space has a bitmap.
pub(crate) fn release(_space: SpaceRef) {}

/// No space has a bitmap.
pub(crate) fn is_own(_space: SpaceRef) -> bool {
    false
}

/// No port is open.
#[must_use]
pub fn is_open(_space: SpaceRef, _port: u16) -> bool {
    false
}

/// No space has a bitmap.
pub(crate) fn for_each_frame(_space: SpaceRef, _each: impl FnMut(u64)) {}
