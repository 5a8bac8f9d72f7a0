//! Tasks and threads of a simulated machine, made as the kernel makes them, and what
//! the tests do with them.

use abi::id::USER_BASE;
use abi::syscall::Call;
use abi::{Fpage, Rights, ThreadId, utcb};
use kernel::arch::cpu;
use kernel::call::dispatch;
use kernel::control::lifecycle;
use kernel::ipc;
use kernel::mem::RootWord;
use kernel::space::spaces;
use kernel::space::{SpaceRef, space_control};
use kernel::thread::{TcbRef, current, own, set_current};
use kernel::usermem::Utcb;

use super::Machine;

/// Where every space has its UTCBs.
pub const UTCBS: u64 = 0xBF00_0000;
/// A line without a handler: an interrupt that only preempts.
pub const QUIET_LINE: u32 = 5;

/// Places the KIP and the UTCBs of a space.
pub fn initialise(space: SpaceRef) {
    let kip = Fpage::memory(0xBFF0_0000, 12, Rights::NONE);
    let utcbs = Fpage::memory(UTCBS, 18, Rights::NONE);
    space_control::initialise(space, kip, utcbs).expect("quota suffices");
}

/// An idle processor and `tasks` tasks; the first space may do everything.
pub fn machine(tasks: u32) -> (Machine, Vec<SpaceRef>) {
    let machine = Machine::new(tasks, 64, false);
    set_current(own::make_idle(RootWord::default()));
    machine.spaces.iter().for_each(|space| spaces().insert(*space));
    machine.spaces[0].task.privileged.set(true);
    let spaces = machine.spaces[1..].to_vec();
    spaces.iter().copied().for_each(initialise);
    (machine, spaces)
}

/// A thread that runs in `space`, with UTCB `slot`.
pub fn make(id: ThreadId, space: SpaceRef, slot: u32, pager: ThreadId) -> TcbRef {
    let thread = lifecycle::create(id, space, id).expect("quota suffices");
    let location = UTCBS + u64::from(slot) * utcb::SIZE;
    lifecycle::place_utcb(thread, location).expect("the location is good");
    lifecycle::activate_running(thread, pager, 0x1000, 0x2000);
    thread
}

/// Thread `index` of all, ready, in `space`.
pub fn thread(space: SpaceRef, index: u32, pager: ThreadId) -> TcbRef {
    make(ThreadId::global(USER_BASE + 3 + index, 1), space, index, pager)
}

/// `thread` calls Ipc; returns who runs next.
pub fn ipc(thread: TcbRef, to: ThreadId, from: ThreadId) -> TcbRef {
    set_current(thread);
    ipc::syscall::ipc(thread, to, from, 0)
}

/// `caller` makes a system call; returns who runs next.
pub fn system_call(caller: TcbRef, number: Call, arguments: [u64; 5]) -> TcbRef {
    kernel::sched::requeue(current());
    set_current(caller);
    caller.frame().make_call((number as u64).wrapping_neg(), arguments);
    dispatch(caller, caller.frame())
}

/// `next` is about to run: what has been noted is handled first. Who runs then.
pub fn way_out(next: TcbRef) -> TcbRef {
    kernel::resume::way_out(next)
}

/// The message registers and the rest of a thread's UTCB.
pub fn registers(thread: TcbRef) -> Utcb {
    Utcb::of(thread).expect("it is active")
}

/// Whether the scheduler will find `thread`.
pub fn is_schedulable(thread: TcbRef) -> bool {
    thread.is_ready() && (current() == thread || cpu().scheduler.ready.contains(thread))
}

/// Windows for interrupts that `work` takes.
pub fn windows(work: impl FnOnce()) -> u32 {
    cpu().interrupt.set(Some((u32::MAX, QUIET_LINE)));
    work();
    let (left, _) = cpu().interrupt.take().expect("it never came");
    u32::MAX - left
}
