//! The thread that runs on this processor: the stack pointer of the task state segment is its tcb.

use core::arch::asm;

use super::tcbs::TcbRef;
use crate::arch::cpu;
use crate::arch::x86_64::asm::baton_resume;

/// The thread that runs on this processor.
#[must_use]
pub fn current() -> TcbRef {
    // SAFETY: `rsp0` points at a live tcb from the moment the idle thread is
    // installed; `activate` is its only writer besides the fast path, and both
    // write addresses of live tcbs.
    unsafe { TcbRef::from_address(cpu().tss.rsp0.get()) }
}

/// Makes `thread` the first current thread; afterwards `switch::activate` and the
/// fast path do that.
pub fn set_current(thread: TcbRef) {
    cpu().tss.rsp0.set(thread.address());
}

/// Leaves the kernel for `thread`.
pub fn leave(thread: TcbRef) -> ! {
    // SAFETY: `baton_resume` takes the next thread in RAX and resets the stack.
    unsafe { asm!("jmp {}", sym baton_resume, in("rax") thread.address(), options(noreturn)) }
}
