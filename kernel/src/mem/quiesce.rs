//! Tables that are about to change while threads of their space run on other processors. Memory says so before it
//! changes them ([`quiet`], [`vacate`]); who has let threads go there is above it, and says here what is done then,
//! once for all processors. There is one implementation, and the call is a direct one.

use super::SpaceRef;
use crate::arch::{Cpu, cpu};

/// What a processor does on which others have guests. It changes no tables, and takes no memory.
pub trait Quiesce {
    /// Nobody of `space` runs elsewhere until this processor leaves the kernel.
    fn quiet(space: SpaceRef);
    /// Nobody of `space` is elsewhere.
    fn vacate(space: SpaceRef);
}

/// An entry of the tables of `space` is about to be taken, changed or freed: no other processor
/// uses them until this one leaves the kernel.
#[inline(always)]
pub fn quiet(space: SpaceRef) {
    if !cpu().guests.is_empty() {
        <Cpu as Quiesce>::quiet(space);
    }
}

/// The root of `space` is about to be another than that with which others have come to their processors:
/// nobody of it is there.
pub fn vacate(space: SpaceRef) {
    if !cpu().guests.is_empty() {
        <Cpu as Quiesce>::vacate(space);
    }
}
