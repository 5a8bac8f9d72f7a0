//! A thread is deleted in the middle of its Unmap: whoever deletes it, perhaps at a much
//! higher priority, does not carry out what is left of it. Its length was the thread's
//! choice: 64 flexpages, each with all that the task has ever handed on.

use crate::common::tasks::{QUIET_LINE, machine, registers, thread, way_out};
use crate::common::{RAM, marker};
use abi::syscall::Call;
use abi::{Ceilings, Fpage, MapItem, Numbers, Rights, ThreadId};
use kernel::arch::{cpu, entry};
use kernel::ipc::{kernel_message, syscall};
use kernel::mem::{MapJob, SpaceRef};
use kernel::sched::{self, grant_slice, make_ready};
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, lookup, set_current};
use kernel::{call, check, irq, unmap};

/// Where pages are mapped.
const PLACE: u64 = 0x40_0000;
/// Unmap's control word: all 64 flexpages, without flush.
const ALL: u64 = 63;
/// Chances for interrupts that a deletion may take, whatever its thread was doing.
const WINDOWS: u32 = 8;

/// Another of the pager's pages.
const ANOTHER: u64 = PLACE + (1 << 17);

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

/// A client has shared its page with another task many times over: its pager's Unmap, and its
/// answer when the client asks for another page there.
struct Sharer {
    _machine: crate::common::Machine,
    pager: TcbRef,
    client: TcbRef,
    /// Of other tasks, more urgent than the client may be, and not.
    others: [TcbRef; 2],
}

fn sharer() -> Sharer {
    let (machine, spaces) = machine(5);
    let [own, client, friend, above, below] = spaces[..] else { panic!("five spaces") };
    for (space, priority) in [(client, 100), (friend, 120)] {
        space.task.limits.ceilings.set(Ceilings { priority, ..Ceilings::NONE });
    }
    hand_on(machine.sigma0(), own, RAM);
    let item = MapItem::map(Fpage::memory(RAM + (1 << 17), 17, Rights::RWX), ANOTHER);
    MapJob::new(machine.sigma0(), own, item, Fpage::COMPLETE, marker()).finish().expect("quota");
    hand_on(own, client, PLACE);
    for times in 0..4 {
        let item = MapItem::map(Fpage::memory(PLACE, 17, Rights::RWX), times << 17);
        MapJob::new(client, friend, item, Fpage::COMPLETE, marker())
            .finish()
            .expect("there is room");
    }
    let pager = thread(own, 0, ThreadId::NIL);
    let others = [thread(above, 1, ThreadId::NIL), thread(below, 2, ThreadId::NIL)];
    let client = thread(client, 3, pager.id.get());
    for (thread, priority) in [(pager, 200), (others[0], 101), (others[1], 100), (client, 100)] {
        cpu().scheduler.ready.remove(thread);
        thread.priority.set(priority);
    }
    make_ready(client);
    set_current(pager);
    grant_slice(pager);
    registers(pager).set_mr(0, Fpage::memory(PLACE, 17, Rights::RWX).0);
    Sharer { _machine: machine, pager, client, others }
}

/// Decision 0057: until the next interrupt, and only who is above the client's ceiling.
#[test]
fn who_is_more_urgent_than_a_client_goes_before_its_pagers_unmap() {
    for (index, first) in [(0, true), (1, false)] {
        // Each thread of the host is a machine of its own.
        let run = std::thread::spawn(move || unmap_beside(index, first));
        assert!(run.join().is_ok());
    }
}

/// The pager's Unmap is interrupted while `others[index]` is ready, which goes `first` or does not.
fn unmap_beside(index: usize, first: bool) {
    let Sharer { _machine, pager, others, .. } = sharer();
    let other = others[index];
    make_ready(other);
    // In the middle of the walk over what the client has shared.
    cpu().interrupt.set(Some((2, QUIET_LINE)));
    let next = unmap::unmap(pager, 0);
    assert_eq!(pager.resume.get(), Resume::Unmap, "it was preempted");
    let expected = if first { other } else { pager };
    assert_eq!(next.id.get(), expected.id.get(), "priority {}", other.priority.get());
    if first {
        set_current(other);
        assert!(irq::interrupt(other, QUIET_LINE) == pager, "until the next interrupt");
    }
    set_current(pager);
    assert!(unmap::resume(pager) == pager && pager.resume.get() == Resume::Ipc, "it ends");
    others.into_iter().for_each(sched::requeue);
    assert_eq!(check::violations(), 0);
}

/// An interrupt that is noted only on the way out is handled as those before it.
#[test]
fn an_interrupt_on_the_way_out_costs_nobody_a_tick() {
    let Sharer { _machine, pager, others, .. } = sharer();
    let other = others[0];
    cpu().interrupt.set(Some((2, QUIET_LINE)));
    assert!(unmap::unmap(pager, 0) == pager, "nobody else is ready");
    make_ready(other);
    cpu().pending_lines.set(1 << QUIET_LINE);
    sched::requeue(pager);
    assert!(kernel::resume::interrupted(pager) == other);
    set_current(other);
    assert!(irq::interrupt(other, QUIET_LINE) == pager);
    set_current(pager);
    assert!(unmap::resume(pager) == pager && pager.resume.get() == Resume::Ipc, "it ends");
    others.into_iter().for_each(sched::requeue);
    assert_eq!(check::violations(), 0);
}

/// Decision 0061: the same while the pager gives its client another page in the place of one that
/// the client has shared.
#[test]
fn who_is_more_urgent_than_a_client_goes_before_its_pagers_answer() {
    for (index, first) in [(0, true), (1, false)] {
        for windows in 1..20 {
            let run = std::thread::spawn(move || answer_beside(index, first, windows));
            assert!(run.join().is_ok(), "interrupted after {windows} windows");
        }
    }
}

fn answer_beside(index: usize, first: bool, windows: u32) {
    let Sharer { _machine, pager, client, others } = sharer();
    let other = others[index];
    let asked = asks(pager, client);
    assert!(asked == pager, "the client's fault is the pager's business");
    make_ready(other);
    cpu().interrupt.set(Some((windows, QUIET_LINE)));
    let next = way_out(ipc_with_items(pager, client.id.get()));
    assert_eq!(pager.resume.get(), Resume::Transfer, "it was preempted");
    let expected = if first { other } else { pager };
    assert_eq!(next.id.get(), expected.id.get(), "priority {}", other.priority.get());
    if first {
        set_current(other);
        assert!(irq::interrupt(other, QUIET_LINE) == pager, "until the next interrupt");
    }
    set_current(pager);
    let next = entry::resume(pager);
    assert!(pager.transfer.part.get().is_none() && client.is_ready(), "it ends");
    assert_eq!(next.id.get(), pager.id.get(), "the most urgent of all");
    others.into_iter().chain([client]).for_each(sched::requeue);
    assert_eq!(check::violations(), 0);
}

/// `pager` waits, and `client` touches a page that it lacks: who runs then.
fn asks(pager: TcbRef, client: TcbRef) -> TcbRef {
    let _ = crate::common::tasks::ipc(pager, ThreadId::NIL, ThreadId::ANY);
    set_current(client);
    client.resume.set(Resume::Frame);
    let next = kernel_message::page_fault(client, 0x5000, Rights::R, 0x1234);
    let item = MapItem::map(Fpage::memory(ANOTHER, 17, Rights::RWX), PLACE).words();
    registers(pager).set_mr(0, 2 << 6);
    registers(pager).set_mr(1, item[0]);
    registers(pager).set_mr(2, item[1]);
    next
}

fn ipc_with_items(pager: TcbRef, to: ThreadId) -> TcbRef {
    set_current(pager);
    syscall::ipc_with_items(pager, to, ThreadId::NIL, 0)
}
