//! The way out of the kernel on the first of several processors, and the time that passes.

use kernel::arch::clock;
use kernel::elsewhere;
use kernel::resume;
use kernel::thread::{TcbRef, current, set_current};

/// The kernel is left for `next`, or whoever runs in its place (`arch::x86_64::entry::switch`).
pub fn leave(next: TcbRef) -> TcbRef {
    leave_by(next, elsewhere::left)
}

/// The same; `left` is what happens behind a switch.
pub fn leave_by(mut next: TcbRef, left: impl Fn(TcbRef)) -> TcbRef {
    let mut turns = 0;
    loop {
        let wanted = resume::way_out(next);
        next = elsewhere::leave(wanted);
        let before = current();
        set_current(next);
        let leaves = next != wanted || next != before && before.is_elsewhere();
        if leaves {
            left(before);
        }
        if !leaves || resume::leaves(next, &mut turns) {
            return next;
        }
    }
}

/// Time passes, µs, on all machines of the tests.
pub fn later(us: u64) {
    clock::PAGE.offset_us.fetch_add(us, std::sync::atomic::Ordering::Relaxed);
}
