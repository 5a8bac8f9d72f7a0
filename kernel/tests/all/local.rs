//! Threads of one space that may exchange messages in user mode: who waits in public, and whose
//! wait comes back into the kernel (decision 0044).

use abi::syscall::exregs;
use abi::{ThreadId, utcb};
use kernel::space::spaces;
use kernel::thread::{TcbRef, own, registry, set_current};

use crate::common::tasks::{initialise, ipc, registers, thread};
use crate::common::{Machine, tasks};
use kernel::check;
use kernel::control::arm;
use kernel::control::exregs::{Registers, exchange_registers};
use kernel::control::lifecycle;
use kernel::ipc::wait::waits;
use kernel::ipc::{sweep, wait};
use kernel::local;
use kernel::mem::RootWord;
use kernel::space::SpaceRef;
use kernel::thread::rendezvous::{self, DEAD_OPEN, Waits};
use kernel::thread::tcb::USES_VECTOR;

/// As many as may be armed in a space.
const MOST: usize = 64;

/// A thread that waits for `from`, and that no message has reached yet.
fn waiting(space: SpaceRef, index: u32, from: ThreadId) -> TcbRef {
    let waiter = thread(space, index, ThreadId::NIL);
    let _ = ipc(waiter, ThreadId::NIL, from);
    waiter
}

fn arm(caller: TcbRef, partner: TcbRef) {
    set_current(caller);
    arm::arm(caller, ThreadId(partner.utcb.get()));
}

/// One task with `pages` pages.
fn rich(pages: u64) -> (Machine, SpaceRef) {
    let machine = Machine::new(2, pages, false);
    set_current(own::make_idle(RootWord::default()));
    machine.spaces.iter().for_each(|space| spaces().insert(*space));
    let space = machine.spaces[1];
    initialise(space);
    (machine, space)
}

#[test]
fn only_an_armed_thread_grows_weary() {
    let (_machine, spaces) = tasks::machine(2);
    let caller = thread(spaces[0], 0, ThreadId::NIL);
    let server = waiting(spaces[0], 1, ThreadId::ANY);
    arm(caller, server);
    let calls = (1..=300).find(|_| local::grow_weary(caller));
    assert_eq!(calls, Some(32));
    assert!(!caller.is_armed());
    // More calls than the count could hold, as of a thread elsewhere.
    assert!((0..300).all(|_| !local::grow_weary(caller)));
}

#[test]
fn a_partner_that_waits_without_registers_can_be_reached_at_once() {
    let (_machine, spaces) = tasks::machine(2);
    let caller = thread(spaces[0], 0, ThreadId::NIL);
    let server = thread(spaces[0], 1, ThreadId::NIL);
    for user in [caller, server] {
        user.set_special(USES_VECTOR, true);
    }
    let _ = ipc(server, ThreadId::NIL, ThreadId::ANY);
    wait::seal(server);
    assert_eq!(server.rendezvous.get(), server.id.get().0 ^ DEAD_OPEN << 32);
    arm(caller, server);
    assert!(server.is_armed() && rendezvous::is_published(server));
    assert_eq!(registers(server).word(utcb::LIPC_WAIT), utcb::lipc_open(0));
}

#[test]
fn a_deletion_ends_the_public_waits_for_that_thread_and_no_others() {
    let (_machine, spaces) = tasks::machine(2);
    let caller = thread(spaces[0], 0, ThreadId::NIL);
    let gone = thread(spaces[0], 1, ThreadId::NIL);
    let for_gone = waiting(spaces[0], 2, gone.id.get());
    let for_caller = waiting(spaces[0], 3, caller.id.get());
    let for_any = waiting(spaces[0], 4, ThreadId::ANY);
    for waiter in [for_gone, for_caller, for_any] {
        arm(caller, waiter);
        assert!(rendezvous::is_published(waiter));
    }
    assert_eq!(check::violations(), 0);
    let _ = lifecycle::delete(gone);
    assert!(for_gone.is_ready(), "nobody has told it");
    assert!(rendezvous::is_published(for_caller) && rendezvous::is_published(for_any));
    assert!(!registry().sweep.is_under_way());
    sweep::id_lost();
    assert!(rendezvous::is_published(for_caller) && rendezvous::is_published(for_any));
    assert_eq!(waits(for_caller), Waits::Busy(rendezvous::Busy::Waiting));
    assert_eq!(for_caller.partner.get(), caller.id.get());
    assert_eq!(check::violations(), 0);
}

#[test]
fn so_many_and_no_more_are_armed_in_a_space() {
    let (_machine, space) = rich(512);
    let caller = thread(space, 0, ThreadId::NIL);
    let others: Vec<TcbRef> =
        (1..=MOST as u32).map(|index| waiting(space, index, ThreadId::ANY)).collect();
    others.iter().for_each(|other| arm(caller, *other));
    assert_eq!(others.iter().filter(|other| other.is_armed()).count(), MOST - 1);
    assert_eq!(registers(others[MOST - 1]).word(utcb::LIPC_STATE), utcb::LIPC_REFUSED);
    assert_eq!(check::violations(), 0);
    // Who goes leaves his place to the next one who asks.
    let _ = lifecycle::delete(others[0]);
    let next = waiting(space, MOST as u32 + 1, ThreadId::ANY);
    arm(caller, next);
    assert!(next.is_armed());
    assert_eq!(check::violations(), 0);
}

/// A flag that is no ordinary one (AC of x86-64, and a user may have it elsewhere): who waits
/// with it can't be woken in user mode.
const UNUSUAL: u64 = 1 << 18;

#[test]
fn who_user_mode_cannot_wake_waits_for_other_armed_threads() {
    let (_machine, spaces) = tasks::machine(2);
    let caller = thread(spaces[0], 0, ThreadId::NIL);
    let waiter = |index, from| {
        let waiter = waiting(spaces[0], index, from);
        waiter.flags.set(waiter.flags.get() | UNUSUAL);
        arm(caller, waiter);
        waiter
    };
    let (open, closed) = (waiter(1, ThreadId::ANY), waiter(2, caller.id.get()));
    assert!(rendezvous::is_armed(open) && rendezvous::is_armed(closed));
    assert_eq!(rendezvous::armed_wait(open), Some(ThreadId::ANY));
    assert_eq!(rendezvous::armed_wait(closed), Some(caller.id.get()));
    assert_eq!(check::violations(), 0);
    // Whoever asks in the kernel may act on it: then it is an ordinary wait, and armed.S finds none.
    assert_eq!(waits(open), Waits::Busy(rendezvous::Busy::Waiting));
    assert_eq!((open.partner.get(), rendezvous::armed_wait(open)), (ThreadId::ANY, None));
    assert!(!rendezvous::is_armed(open));
    // Its partner goes: the sweep finds it.
    let other = thread(spaces[1], 3, ThreadId::NIL);
    set_current(other);
    let _ = lifecycle::delete(caller);
    assert!(closed.is_ready(), "nobody has told it");
    assert_eq!(rendezvous::armed_wait(closed), None);
    assert_eq!(check::violations(), 0);
}

/// Who may not change a thread does not end its public wait by asking, nor one in the kernel.
#[test]
fn a_stranger_takes_nobody_out_of_its_wait() {
    let (_machine, spaces) = tasks::machine(2);
    let caller = thread(spaces[0], 0, ThreadId::NIL);
    let waiters = [waiting(spaces[0], 1, ThreadId::ANY), waiting(spaces[0], 2, ThreadId::ANY)];
    waiters[1].flags.set(waiters[1].flags.get() | UNUSUAL);
    waiters.iter().for_each(|waiter| arm(caller, *waiter));
    let stranger = thread(spaces[1], 3, ThreadId::NIL);
    set_current(stranger);
    for waiter in waiters {
        let registers = Registers { control: exregs::DELIVER, ..Registers::default() };
        assert!(exchange_registers(stranger, waiter.id.get(), &registers).is_none());
    }
    assert!(rendezvous::is_published(waiters[0]) && rendezvous::is_armed(waiters[1]));
    assert_eq!(check::violations(), 0);
}

#[test]
fn who_is_disarmed_waits_as_others_do() {
    let (_machine, spaces) = tasks::machine(2);
    let caller = thread(spaces[0], 0, ThreadId::NIL);
    let waiter = waiting(spaces[0], 1, ThreadId::ANY);
    waiter.flags.set(waiter.flags.get() | UNUSUAL);
    arm(caller, waiter);
    assert!(rendezvous::is_armed(waiter));
    local::start_anew(waiter);
    assert_eq!(rendezvous::peek(waiter), Waits::Busy(rendezvous::Busy::Waiting));
    assert_eq!((waiter.partner.get(), rendezvous::armed_wait(waiter)), (ThreadId::ANY, None));
    assert_eq!(check::violations(), 0);
}
