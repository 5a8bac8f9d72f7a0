//! The ways into the kernel: none from user mode yet.

use crate::resume;
use crate::thread::TcbRef;

/// Goes on with what `current` was doing; returns who runs next.
#[must_use]
pub fn resume(current: TcbRef) -> TcbRef {
    resume::resume(current, entered)
}

/// No thread makes an entry elsewhere.
#[must_use]
fn entered(thread: TcbRef) -> TcbRef {
    thread
}
