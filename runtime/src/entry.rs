//! Program start and end.
//!
//! `_start` (entry.S) provides a stack and calls `baton_main`, which the entry
//! macros define. Called once per task, before any other thread exists.

use core::arch::global_asm;

use abi::ThreadId;

use crate::{heap, kernel, layout, root, thread, utcb, window};

global_asm!(include_str!("entry.S"));

/// Prepares an ordinary task: its faults are reported to the root task, its
/// heap lies in the region that its pager fills on demand.
pub fn start_task() {
    declare_registers();
    utcb::set_exception_handler(ThreadId::ROOT);
    let here = 0_u8;
    layout::learn(core::ptr::from_ref(core::hint::black_box(&here)) as u64);
    heap::init(layout::heap_at(layout::chance()), layout::HEAP_BYTES);
}

/// Prepares an initial server, which has neither heap nor exception handler.
pub fn start_boot() {
    declare_registers();
    window::initial_server();
    utcb::set_exception_handler(ThreadId::NIL);
}

/// This runtime's target has no vector registers.
fn declare_registers() {
    // Refused, it would only be slower.
    let _ = kernel::use_no_vector_registers();
}

/// Ends this task: asks the root task to take it away.
///
/// `code` 0 means success; the root task reports any other.
pub fn exit(code: u64) -> ! {
    root::exit(code);
    thread::park()
}
