//! Messages between threads of one space without the kernel (Wenske 2002; decision 0044): what
//! the kernel does so that it learns of them afterwards.
//!
//! *Armed* threads may take part. One that waits for nothing but a plain message *publishes* its
//! wait: its rendezvous word is a code that only says so, and whom it waits for stands in its
//! UTCB, where the stubs' path finds and changes it. Whoever wants to know more in the kernel
//! decodes the rendezvous word first ([`rendezvous::waits`]), and that *reclaims* its wait:
//! it comes back into the tcb, and user mode finds it no more until it waits anew. Threads that live on the
//! same other processor do so there (decision 0088); what differs for them is in [`there`].
//!
//! The words in a UTCB are the program's to write. The kernel reads each once, and takes it for
//! what the program would have said in a call of its own.

use abi::{ThreadId, utcb};

use crate::arch::machine::{USER_FLAGS, USER_FLAGS_MASK};
use crate::arch::{self, cpu};
use crate::space::SpaceRef;
use crate::thread::rendezvous::{self, Busy};
use crate::thread::tcb::{ARMED, Resume};
use crate::thread::{Kind, TcbRef};
use crate::usermem::Utcb;
use crate::{sched, techniques, thread};

pub mod there;

/// Flags with which a thread may wait in public: what a program's arithmetic leaves, and
/// interrupts on. A path in user mode restores none.
const ORDINARY_FLAGS: u64 = USER_FLAGS_MASK | USER_FLAGS;

/// How one waits in public on the first processor.
const OPEN_HERE: u64 = utcb::lipc_open(0);
/// The same, for threads of the space.
const OPEN_LOCAL_HERE: u64 = utcb::lipc_open_local(0);

/// Lets the stubs know of `thread` what `state` says.
pub fn tell(thread: TcbRef, state: u64) {
    if let Some(utcb) = Utcb::of(thread) {
        utcb.set_word(utcb::LIPC_STATE, state);
    }
}

/// Whether `thread`, which does not run, is in a system call that promises it its vector
/// registers: a message in user mode would take them away.
#[must_use]
pub fn keeps_vector(thread: TcbRef) -> bool {
    let may_keep = thread.uses_vector() && thread.resume.get() != Resume::Frame;
    may_keep
        && if thread.is_elsewhere() { there::keeps(thread) } else { thread::keeps_vector(thread) }
}

/// The IPC that `thread`, which is armed and runs, begins promises it its vector registers: it
/// is no partner for messages in user mode until it asks again.
pub fn keep_vector(thread: TcbRef) {
    start_anew(thread);
    tell(thread, utcb::LIPC_KEEPS);
}

/// Kernel IPCs in a row after which a thread is taken for one that needs user mode no more:
/// they cost an armed thread many times what they cost others, and to be armed again one call.
const IN_A_ROW: u8 = 32;

/// `thread` calls the kernel for an IPC. Disarms it if it is armed and has done
/// nothing else for a while; then the result is true.
pub fn grow_weary(thread: TcbRef) -> bool {
    // One whose user code runs elsewhere comes the same way.
    if !thread.is_armed() {
        return false;
    }
    let calls = thread.kernel_ipcs.get() + 1;
    thread.kernel_ipcs.set(calls);
    let is_weary = calls >= IN_A_ROW;
    if is_weary {
        start_anew(thread);
    }
    is_weary
}

/// `thread` takes no part any more: it is deleted.
pub fn disarm(thread: TcbRef) {
    if thread.is_armed() {
        start_anew(thread);
    }
}

/// Whether `thread` can take part has changed: its next partner asks.
pub fn start_anew(thread: TcbRef) {
    if rendezvous::is_public(thread) {
        reclaim(thread);
    } else if rendezvous::is_armed(thread) {
        rendezvous::withdraw(thread);
    }
    if let Some(space) = thread.space().filter(|_| thread.is_armed()) {
        space.task.armed.remove(thread);
        space.task.armed_count.set(space.task.armed_count.get() - 1);
        thread.set_special(ARMED, false);
    }
    if let Some(utcb) = Utcb::of(thread) {
        utcb.set_word(utcb::LIPC_WAIT, utcb::LIPC_RUNS);
        utcb.set_word(utcb::LIPC_STATE, utcb::LIPC_UNKNOWN);
    }
}

/// `thread` is about to lose its id, or to move to another processor. Whoever waits for it in public names it by
/// its local id, which another thread may have soon, or meets it no more: these waits come back into the
/// kernel, where the sweep finds them. Nobody is elsewhere who could end them: `thread` has been fetched.
pub fn reclaim_waits_for(thread: TcbRef, space: SpaceRef) {
    let local = thread.utcb.get();
    space.task.armed.each(|armed| {
        let waits = |utcb: Utcb| utcb.word(utcb::LIPC_WAIT) == local;
        if rendezvous::is_public(armed) && Utcb::of(armed).is_some_and(waits) {
            reclaim(armed);
        }
    });
}

/// The thread of the space of `running` that runs, if `current` says so in the space's current
/// word: one that waits in public.
#[must_use]
pub fn claimed(running: TcbRef, current: ThreadId) -> Option<TcbRef> {
    thread::in_space(running.space()?, current).filter(|thread| rendezvous::is_published(*thread))
}

/// User mode has handed the processor from `from` to `to`, which [`claimed`] has found, on the
/// slice that was running (1993, 5.3.5).
pub fn handed_over(from: TcbRef, to: TcbRef, done: u64) {
    let scheduler = &cpu().scheduler;
    rendezvous::set_busy(to, Busy::Ready);
    passed(from, to, done);
    rendezvous::set_published(from);
    if from.uses_vector() {
        // What is in the registers is the receiver's; the control words are everybody's.
        thread::abandon_vector(from);
    }
    if !techniques::LAZY_SCHEDULING {
        scheduler.ready.remove(from);
        scheduler.ready.insert(to);
    }
    if !from.senders.is_empty() {
        receives(from);
    }
}

/// `from` has handed the processor to `to`, and waits at `done`.
#[inline(always)]
fn passed(from: TcbRef, to: TcbRef, done: u64) {
    from.kernel_ipcs.set(0);
    to.kernel_ipcs.set(0);
    from.ip.set(done);
    from.flags.set(USER_FLAGS);
    from.resume.set(Resume::Ipc);
    from.kind.set(Kind::User);
}

/// `thread`, which is published, has not looked at what the kernel told it, that somebody waits to send to it: it
/// looks when it runs.
fn receives(thread: TcbRef) {
    reclaim(thread);
    if thread.partner.get().is_nil() {
        return;
    }
    thread.then_from.set(thread.partner.get());
    thread.timeouts.set(0);
    thread.resume.set(Resume::Receive);
    sched::make_ready(thread);
}

/// Publishes the wait of `thread`, which is armed and about to leave the processor, or waits
/// already, if it waits plainly. If that can't be, its word is one that only `armed.S` serves, or
/// no fast path at all.
pub fn publish(thread: TcbRef) {
    let is_ordinary = rendezvous::is_unsealed(thread) && !keeps_vector(thread);
    let Some(from) = rendezvous::plain_wait(thread) else { return };
    thread.partner.set(from);
    match (public_word(thread, from), Utcb::of(thread)) {
        (Some(word), Some(utcb)) => {
            utcb.set_word(utcb::LIPC_SP, thread.sp.get());
            utcb.set_word(utcb::LIPC_WAIT, word);
            if !techniques::PENDING_SEND {
                utcb.set_word(utcb::LIPC_WAITED, word);
            }
            // It may be woken in user mode, where the kernel does not `show` it anything.
            utcb.set_word(utcb::LIPC_STATE, way(thread));
            rendezvous::set_published(thread);
            count(thread, 1);
        }
        _ if thread.is_elsewhere() => there::publish(thread, from),
        _ if is_ordinary => rendezvous::set_armed_wait(thread, from),
        _ => rendezvous::set_busy(thread, Busy::Waiting),
    }
}

/// What says in user mode that `thread` waits for `from`; `None` if it can't be woken there.
fn public_word(thread: TcbRef, from: ThreadId) -> Option<u64> {
    // Halted, or elsewhere.
    if thread.unusual.get() || !is_plain(thread) {
        return None;
    }
    match from {
        ThreadId::ANY_LOCAL if arch::is_for_work(thread.ip.get()) => Some(utcb::LIPC_SECTION),
        ThreadId::ANY => Some(utcb::lipc_open(0)),
        ThreadId::ANY_LOCAL => Some(utcb::lipc_open_local(0)),
        from => {
            let partner = thread::lookup(from).filter(|partner| partner.same_space(thread))?;
            Some(partner.utcb.get()).filter(|local| *local != 0 && !partner.is_elsewhere())
        }
    }
}

/// Whether `thread`, which waits and is not halted, can be woken in user mode.
#[inline(always)]
fn is_plain(thread: TcbRef) -> bool {
    thread.kind.get() == Kind::User
        && thread.resume.get() == Resume::Ipc
        && thread.wake_at_us.get() == 0
        && thread.senders.is_empty()
        && thread.flags.get() & !ORDINARY_FLAGS == 0
        && arch::returns_at_once(thread.ip.get())
}

/// Whether `thread` waits for a message of its own choice, with nothing between it and user mode but
/// the return of a system call.
#[must_use]
pub fn waits_in_ipc(thread: TcbRef) -> bool {
    let is_own = thread.kind.get() == Kind::User && thread.resume.get() == Resume::Ipc;
    is_own && rendezvous::plain_wait(thread).is_some()
}

/// One thread more of the task of `thread` waits in public, or one less.
fn count(thread: TcbRef, more: i64) {
    if let Some(space) = thread.space() {
        let entangled = &space.task.entangled;
        entangled.set(entangled.get().wrapping_add_signed(more));
    }
}

/// Brings the wait of `thread`, which is published, back into the kernel.
pub fn reclaim(thread: TcbRef) {
    rendezvous::set_busy(thread, Busy::Waiting);
    count(thread, -1);
    let Some(utcb) = Utcb::of(thread) else { return };
    let word = utcb.word(utcb::LIPC_WAIT);
    utcb.set_word(utcb::LIPC_WAIT, utcb::LIPC_RUNS);
    thread.sp.set(thread.public_sp());
    let named = |local| thread.space().and_then(|space| thread::in_space(space, local));
    thread.partner.set(match word {
        OPEN_HERE => ThreadId::ANY,
        OPEN_LOCAL_HERE | utcb::LIPC_SECTION => ThreadId::ANY_LOCAL,
        word if there::is_open(thread, word) => ThreadId::ANY,
        word if there::is_open_local(thread, word) => ThreadId::ANY_LOCAL,
        // For nobody who could send, if the program has written nonsense there.
        local => named(ThreadId(local)).map_or(ThreadId::NIL, |partner| partner.id.get()),
    });
}

/// Whether `thread` may hand over in user mode: nobody waits to send to it (4.6.1), and nobody
/// waits whom a switch could pass over.
fn way(thread: TcbRef) -> u64 {
    let quiet = thread.senders.is_empty() && !cpu().look_first.get();
    if quiet { OPEN_HERE } else { utcb::LIPC_CLOSED }
}

/// `thread`, which is armed, is about to run in user mode: what its UTCB and its space's
/// current word have to say.
pub fn show(thread: TcbRef) {
    let (Some(utcb), Some(space)) = (Utcb::of(thread), thread.space()) else { return };
    utcb.set_word(utcb::LIPC_STATE, way(thread));
    utcb.set_word(utcb::LIPC_WAIT, utcb::LIPC_RUNS);
    space.task.current_word.write(ThreadId(thread.utcb.get()));
}
