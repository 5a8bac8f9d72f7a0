//! ArmLocal: two threads of a space take part in messages without the kernel from now on ([`crate::local`]).

use abi::{ThreadId, utcb};

use crate::elsewhere;
use crate::ipc::wait;
use crate::space::SpaceRef;
use crate::thread::tcb::ARMED;
use crate::thread::{TcbRef, rendezvous};
use crate::usermem::Utcb;
use crate::{local, lrpc, techniques, thread};

/// Armed threads of a space, at most: each deletion in it looks at them all.
const MOST: u32 = 64;

/// ArmLocal: `caller` would like to exchange messages in user mode with the thread of its space
/// whose local id is `partner`. Who can't take part learns it from its UTCB, and nobody asks
/// about it again; one that can is asked about by its next partner.
pub fn arm(caller: TcbRef, partner: ThreadId) {
    let Some(space) = caller.space().filter(|_| techniques::LOCAL_IPC) else { return };
    let is_near = |it: &TcbRef| *it != caller && it.processor.get() == caller.processor.get();
    let Some(partner) = thread::in_space(space, partner).filter(is_near) else { return };
    fetch(partner);
    let fits = |thread: TcbRef| thread.is_armed() || fits(space, thread);
    let pair = [caller, partner];
    let new = pair.into_iter().filter(|thread| !thread.is_armed()).count() as u32;
    let are_too_many = space.task.armed_count.get() + new > MOST;
    if are_too_many || !pair.into_iter().all(fits) || caller.uses_vector() != partner.uses_vector()
    {
        // Of two that could take part, but not with each other, the one that is asked may not.
        let refused = if fits(caller) { partner } else { caller };
        return local::tell(refused, utcb::LIPC_REFUSED);
    }
    if !partner.is_armed() && local::keeps_vector(partner) {
        return local::tell(partner, utcb::LIPC_KEEPS);
    }
    space.task.current_word.place(caller.utcb.get(), caller.utcb_k.get());
    pair.into_iter().for_each(arm_one);
    thread::update_special(caller);
}

/// Whether `thread` may join the armed threads of `space`. They share the vector registers, whose
/// owner the kernel knows only when it is entered; so nobody may be among them who has declared that
/// there is nothing in them.
fn fits(space: SpaceRef, thread: TcbRef) -> bool {
    let first = space.task.armed.first();
    !thread.is_foreign()
        && thread.utcb.get() >= utcb::LIPC_LEAST_ID
        && first.is_none_or(|armed| armed.uses_vector() == thread.uses_vector())
        && space.task.armed_count.get() < MOST
}

/// `thread` may be about to take part, and may be elsewhere.
fn fetch(thread: TcbRef) {
    if thread.is_elsewhere() && !thread.is_armed() {
        elsewhere::recall(thread);
    }
}

fn arm_one(thread: TcbRef) {
    let (Some(utcb), Some(space)) = (Utcb::of(thread), thread.space()) else { return };
    if thread.is_armed() {
        return;
    }
    utcb.set_word(utcb::LIPC_STATE, utcb::LIPC_CLOSED);
    for word in [utcb::LIPC_WAIT, utcb::LIPC_WAITED] {
        utcb.set_word(word, utcb::LIPC_RUNS);
    }
    thread.kernel_ipcs.set(0);
    rendezvous::forbid_armed(thread);
    lrpc::becomes_special(thread);
    thread.set_special(ARMED, true);
    space.task.armed.append(thread);
    space.task.armed_count.set(space.task.armed_count.get() + 1);
    wait::seal(thread);
}
