//! What stands in for the tcb of a thread that exchanges messages in user mode (`entry::armed`), or of a
//! visitor that is alone (`entry::visitors`), while that runs: entries store there what they know. Each
//! processor has its own; interrupts are off.

use core::cell::Cell;
use core::mem::{offset_of, size_of};

use abi::ThreadId;

use super::tcbs::TcbRef;
use crate::arch::x86_64::frame::{FRAME_SIZE, Frame, TrapFrame, USER_CS, USER_SS};
use crate::thread::tcb::{TCB_SIZE, Tcb};

/// Bytes of stack below the pad's tcb; together they end before the page does, so that no
/// frame on the pad is taken for one below a tcb.
const STACK: usize = 4096 - TCB_SIZE - 64;
const _: () = assert!(STACK.is_multiple_of(64));
/// A handler that nobody is: entries of a thread with a handler leave the common way.
pub const NOBODY: ThreadId = ThreadId(0x40);

/// What stands in for the tcb of an armed thread while that runs.
#[repr(C, align(4096))]
pub struct Pad {
    stack: Cell<[u8; STACK]>,
    tcb: [Cell<u64>; size_of::<Tcb>() / 8],
    /// Who runs, unless somebody has taken its place in user mode; none on other processors than
    /// the first.
    pub thread: Cell<Option<TcbRef>>,
    /// Where the current word of its space is in the kernel's map of physical memory.
    pub word: Cell<u64>,
}

/// Offset of the pad's tcb.
pub const PAD_TCB: usize = offset_of!(Pad, tcb);
/// Offset of the thread that runs.
pub const PAD_THREAD: usize = offset_of!(Pad, thread);
/// Offset of where its space's current word is.
pub const PAD_WORD: usize = offset_of!(Pad, word);
const _: () = assert!(size_of::<Tcb>() <= TCB_SIZE && !(PAD_TCB + TCB_SIZE).is_multiple_of(4096));

// SAFETY: the processor's own, used with interrupts off.
unsafe impl Sync for Pad {}

/// The processor's pad.
pub static PAD: Pad = Pad {
    stack: Cell::new([0; STACK]),
    tcb: [const { Cell::new(0) }; size_of::<Tcb>() / 8],
    thread: Cell::new(None),
    word: Cell::new(0),
};

/// The address of the pad's page.
#[must_use]
pub fn page() -> u64 {
    &raw const PAD as u64
}

/// Prepares this processor's pad.
pub fn init() {
    PAD.tcb[offset_of!(Tcb, handler) / 8].set(NOBODY.0);
    let at = offset_of!(Tcb, stands_in);
    PAD.tcb[at / 8].set(1 << (at % 8 * 8));
    let frame = frame();
    frame.cs.set(u64::from(USER_CS));
    frame.ss.set(u64::from(USER_SS));
}

/// The register frame of an entry on the pad.
#[must_use]
pub fn frame() -> Frame {
    let tcb = &raw const PAD.tcb as u64;
    // SAFETY: the frame lies in the pad's stack, aligned.
    unsafe { &*((tcb - FRAME_SIZE as u64) as *const TrapFrame) }
}
