//! Schedule with a processor: where a thread's user code runs from now on.

use crate::elsewhere::{leave_seat, visits};
use crate::ipc::wait;
use crate::sched::leaving::wants_to_leave;
use crate::thread::TcbRef;
use crate::thread::tcb::{ELSEWHERE, Resume};
use crate::usermem::Utcb;
use crate::{local, lrpc, thread};

/// The user code of `thread`, which [`crate::elsewhere::recall`] has fetched, runs on processor `number` from now on.
pub fn set_processor(thread: TcbRef, number: u32) {
    local::start_anew(thread);
    leave_seat(thread);
    if let Some(space) = thread.space().filter(|space| space.task.entangled.get() != 0) {
        local::reclaim_waits_for(thread, space);
    }
    thread.processor.set(number as u8);
    lrpc::becomes_special(thread);
    thread.set_special(ELSEWHERE, number != 0);
    if let Some(utcb) = Utcb::of(thread) {
        utcb.set_word(abi::utcb::PROCESSOR_NO, number.into());
    }
    if number != 0 {
        thread.visitor.set(visits::name(thread));
        wait::wait_for_the_complete_path(thread);
        wants_to_leave(thread);
    }
    if thread == thread::current() {
        thread::update_special(thread);
        if number != 0 {
            // It goes there when the call returns.
            thread.resume.set(Resume::Anew);
        }
    }
}
