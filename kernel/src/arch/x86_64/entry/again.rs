//! Entries that threads have made on other processors, and make again on the first one.

use abi::layout::USER_END;

use super::{armed, trap};
use crate::arch::x86_64::asm;
use crate::arch::x86_64::frame::VECTOR_CALL;
use crate::arch::x86_64::percpu::cpu;
use crate::arch::x86_64::thread::tcbs::TcbRef;
use crate::arch::x86_64::vectors::exception;
use crate::control::foreign;
use crate::ipc::kernel_message;
use crate::mem::Access;
use crate::thread::tcb::{Resume, TCB_SIZE};

/// The thread, which is current, makes the entry that it has made elsewhere; returns who runs
/// next.
pub fn entered(thread: TcbRef) -> TcbRef {
    let frame = thread.frame();
    thread.resume.set(Resume::Frame);
    if frame.is_out_of_time() {
        frame.vector.set(VECTOR_CALL);
        return kernel_message::preemption(thread);
    }
    if frame.vector.get() == exception::PAGE_FAULT && is_there(thread) {
        // It has come meanwhile, or its table was not shown there yet.
        return thread;
    }
    if frame.vector.get() != VECTOR_CALL {
        asm::set_fault_address(thread.fault_address.get());
        return trap::from_user(thread.address() + TCB_SIZE as u64);
    }
    cpu().tss.user_rdi.set(frame.rdi.get());
    if thread.is_foreign() { foreign::call(thread) } else { armed::call(thread) }
}

/// Whether the page at which the thread has faulted is there for the access it has made: one of
/// user level that is no fetch of an instruction. Of the processor's own accesses, for a user's
/// instruction, a page that the user may use says nothing: the thread would never get on.
fn is_there(thread: TcbRef) -> bool {
    const WRITE: u64 = 1 << 1;
    const USER: u64 = 1 << 2;
    const FETCH: u64 = 1 << 4;
    let (address, error) = (thread.fault_address.get(), thread.frame().error.get());
    let is_data = error & (USER | FETCH) == USER && address < USER_END;
    let space = thread.space().filter(|_| is_data);
    let access = if error & WRITE != 0 { Access::Write } else { Access::Read };
    space.is_some_and(|space| space.resolve(address, access).is_some())
}
