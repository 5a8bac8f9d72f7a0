//! The port mappings of a space against their trees and the hardware's bitmap.

use super::Rule;
use crate::mem::io;
use crate::mem::ports;
use crate::mem::space::SpaceRef;

/// Checks the port mappings.
pub(super) fn check(space: SpaceRef, report: &mut impl FnMut(u64, Rule)) {
    if space.port_ranges() != io::of(space).count() as u64 {
        report(0, Rule::Counters);
    }
    for node in io::of(space) {
        let (low, high) = (io::start(node), io::end(node));
        let held = node.parent().is_none_or(|up| io::start(up) <= low && high <= io::end(up));
        if !held || (node.parent().is_none() && !space.is_sigma0()) {
            report(low, Rule::ParentHasPage);
        }
    }
    if !ports::is_own(space) {
        return;
    }
    let mut port = 0;
    while port < 1 << io::ALL_BITS {
        // Whole ranges at once: what a node covers is open, what lies between two is not.
        let found = io::find(space, port);
        let next = match found {
            Some(node) => io::end(node),
            None => {
                io::first_in(space, port, 1 << io::ALL_BITS).map_or(1 << io::ALL_BITS, io::start)
            }
        };
        if (port..next).any(|at| ports::is_open(space, at as u16) != found.is_some()) {
            report(port, Rule::Bitmap);
        }
        port = next;
    }
}
