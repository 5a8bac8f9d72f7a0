//! A thread is deleted in the middle of its Unmap: whoever deletes it, perhaps at a much
//! higher priority, does not carry out what is left of it. Its length was the thread's
//! choice: 64 flexpages, each with all that the task has ever handed on.

mod common;

use abi::syscall::Call;
use abi::{Fpage, MapItem, Numbers, Rights, ThreadId};
use common::tasks::{QUIET_LINE, machine, registers, thread};
use common::{RAM, marker};
use kernel::arch::{TcbRef, cpu, set_current};
use kernel::mem::{MapJob, SpaceRef};
use kernel::thread::lookup;
use kernel::thread::tcb::Resume;
use kernel::{call, check, unmap};

/// Where pages are mapped.
const PLACE: u64 = 0x40_0000;
/// Unmap's control word: all 64 flexpages, without flush.
const ALL: u64 = 63;
/// Chances for interrupts that a deletion may take, whatever its thread was doing.
const WINDOWS: u32 = 8;

fn hand_on(from: SpaceRef, to: SpaceRef, source: u64) {
    let item = MapItem::map(Fpage::memory(source, 17, Rights::RWX), PLACE);
    MapJob::new(from, to, item, Fpage::COMPLETE, marker()).finish().expect("quota suffices");
}

/// Does `work`; an interrupt comes after so many windows.
fn interrupted_after(windows: u32, work: impl FnOnce()) {
    cpu().interrupt.set(Some((windows, QUIET_LINE)));
    work();
    cpu().interrupt.set(None);
}

/// `worker` looks at all that it handed on, 64 times, until it is interrupted.
fn begin(worker: TcbRef) {
    for index in 0..=ALL as usize {
        registers(worker).set_mr(index, Fpage::memory(PLACE, 17, Rights::NONE).0);
    }
    set_current(worker);
    interrupted_after(1, || {
        let _ = unmap::unmap(worker, ALL);
    });
    assert_eq!(worker.resume.get(), Resume::Unmap, "it was preempted");
}

#[test]
fn who_deletes_a_thread_does_not_do_its_unmap() {
    let (machine, spaces) = machine(4);
    let [own, first, second, chief] = spaces[..] else { panic!("four spaces") };
    own.task.chief.set(Some(chief));
    own.task.depth.set(1);
    chief.task.limits.numbers.set(Numbers::ALL);
    hand_on(machine.sigma0(), own, RAM);
    hand_on(own, first, PLACE);
    hand_on(first, second, PLACE);
    let _stays = thread(own, 0, ThreadId::NIL);
    let worker = thread(own, 1, ThreadId::NIL);
    let killer = thread(chief, 2, ThreadId::NIL);
    let id = worker.id.get();
    begin(worker);
    let frame = killer.frame();
    frame.reset();
    frame.make_call((Call::ThreadControl as u64).wrapping_neg(), [id.0, 0, 0, 0, !0]);
    set_current(killer);
    killer.resume.set(Resume::Frame);
    interrupted_after(WINDOWS, || {
        let _ = call::dispatch(killer, frame);
    });
    assert_eq!(frame.results()[0], 1, "the call succeeds");
    assert!(lookup(id).is_none(), "it is gone at once");
    assert_eq!(killer.resume.get(), Resume::Frame, "nothing is left to do");
    assert_eq!(check::violations(), 0);
}
