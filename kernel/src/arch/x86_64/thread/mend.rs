//! A thread that was interrupted in a path of local IPC begins it anew, or has gone through it (`local_paths`).

use abi::layout::stub_address;

use super::tcbs::TcbRef;
use crate::arch::x86_64::frame::Frame;
use crate::arch::x86_64::local_paths::{Hands, LOCAL_PATHS, LocalPath, is_behind_trap};

/// Vector of a single step.
const DEBUG: u64 = 1;

/// If `thread`, whose registers are in `frame`, was interrupted in a path of local IPC, in which nothing counts before
/// the forward point and all behind it (2002, 4.3): back to the restart point, or on to the completion point.
/// A single step goes on in the kernel, or it would never get further.
#[inline(always)]
pub fn mend(frame: Frame, thread: TcbRef) {
    let ip = frame.ip.get();
    if ip >= stub_address(0) && !is_behind_trap(ip) {
        mend_in_stubs(frame, thread, ip);
    }
}

#[inline(never)]
fn mend_in_stubs(frame: Frame, thread: TcbRef, ip: u64) {
    for path in &LOCAL_PATHS {
        if path.is_before(ip) {
            let stepped = frame.vector.get() == DEBUG;
            frame.ip.set(if stepped { path.slow() } else { path.restart() });
        } else if path.is_behind(ip) {
            complete(frame, thread, path);
        }
    }
}

/// Takes `thread`, if `path` has handed over to it, to the completion point.
fn complete(frame: Frame, thread: TcbRef, path: &LocalPath) {
    let utcb = thread.utcb.get();
    let receiver = match path.hands {
        Hands::Message => &frame.rsi,
        Hands::Work => &frame.rbp,
        Hands::End => &frame.rbx,
    };
    if receiver.get() != utcb {
        return;
    }
    match path.hands {
        Hands::Message => {
            frame.rsi.set(frame.rdi.get());
            frame.rdi.set(utcb);
        }
        Hands::Work => {}
        Hands::End => frame.r9.set(0),
    }
    frame.sp.set(thread.public_sp());
    frame.ip.set(path.done());
}
