//! What the fuzzer found: each defect with the test that fails without its repair.

use crate::common::tasks::{QUIET_LINE, ipc, is_schedulable, machine, registers, thread, windows};
use crate::common::{RAM, marker};
use abi::syscall::Call;
use abi::{Fpage, MapItem, Rights, ThreadId, utcb};
use kernel::arch::cpu;
use kernel::control::lifecycle;
use kernel::ipc::kernel_message;
use kernel::mem::{MapJob, STEP_BUDGET, Scope, SpaceRef, Step, UnmapJob};
use kernel::thread::rendezvous::{Busy, set_busy};
use kernel::thread::set_current;
use kernel::thread::tcb::{Job, Resume};
use kernel::{check, irq, sched};

/// Where pages are mapped.
const PLACE: u64 = 0x40_0000;
/// Maps 16 KiB at [`PLACE`] from one space to another.
fn hand_on(from: SpaceRef, to: SpaceRef, source: u64) {
    let item = MapItem::map(Fpage::memory(source, 14, Rights::RWX), PLACE);
    MapJob::new(from, to, item, Fpage::COMPLETE, marker()).finish().expect("quota suffices");
}

/// A thread that is deleted in the middle of a flush leaves no page behind that is
/// marked as going: nobody could ever map such a page on.
#[test]
fn a_flush_that_is_cut_short_leaves_no_dying_page() {
    let (machine, spaces) = machine(4);
    hand_on(machine.sigma0(), spaces[0], RAM);
    for pair in spaces.windows(2) {
        hand_on(pair[0], pair[1], PLACE);
    }
    let _stays = thread(spaces[0], 0, ThreadId::NIL);
    let worker = thread(spaces[0], 1, ThreadId::NIL);
    let killer = thread(spaces[1], 2, ThreadId::NIL);
    let mut job = UnmapJob::new(
        spaces[0],
        Fpage::memory(PLACE, 14, Rights::RWX),
        Scope::Own,
        worker.marker(),
    );
    assert_eq!(job.step(1), Step::More);
    worker.job.set(Some(Job::Unmap(job)));
    worker.resume.set(Resume::Unmap);
    set_current(killer);
    assert!(lifecycle::delete(worker).is_none(), "another thread keeps the space");
    assert_eq!(check::violations(), 0);
}

/// The message about a used-up quantum switches to the scheduler directly: that must
/// not pass over somebody of higher priority whom the same tick has woken.
#[test]
fn a_used_up_quantum_does_not_delay_higher_priorities() {
    let (_machine, spaces) = machine(3);
    let scheduler = thread(spaces[0], 0, ThreadId::NIL);
    let busy = thread(spaces[1], 1, ThreadId::NIL);
    let urgent = thread(spaces[2], 2, ThreadId::NIL);
    let _ = ipc(scheduler, ThreadId::NIL, ThreadId::ANY);
    busy.scheduler.set(scheduler.id.get());
    sched::slice::set_quantum(busy, 0);
    cpu().scheduler.ready.remove(urgent);
    urgent.priority.set(200);
    sched::requeue(urgent);
    set_current(busy);
    cpu().scheduler.slice_owner.set(Some(busy));
    cpu().scheduler.slice_left_us.set(5_000);
    busy.resume.set(Resume::Frame);
    assert!(irq::interrupt(busy, 0) == urgent, "it is more urgent than the message");
    assert!(is_schedulable(busy), "it goes on later, and its message is sent then");
    set_current(busy);
    set_busy(urgent, Busy::Waiting);
    cpu().scheduler.slice_owner.set(Some(busy));
    assert!(irq::interrupt(busy, 0) == scheduler, "now the message is due");
}

#[test]
fn nobody_waits_for_an_interrupt_that_is_none() {
    let (_machine, spaces) = machine(1);
    let waiter = thread(spaces[0], 0, ThreadId::NIL);
    let line = ThreadId::irq(QUIET_LINE);
    let _ = ipc(waiter, ThreadId::NIL, ThreadId::global(line.number(), line.version() + 1));
    assert!(waiter.is_ready(), "no interrupt has that version");
    assert!(abi::MsgTag(registers(waiter).mr(0)).is_error());
    let error = abi::IpcError::decode(registers(waiter).word(utcb::ERROR_CODE));
    let expected = abi::IpcError::new(abi::IpcErrorKind::NonExisting, abi::Phase::Receive);
    assert_eq!(error, Some(expected));
}

#[test]
fn halted_threads_do_not_flood_the_log() {
    let at_once = (0..10_000).filter(|_| kernel_message::may_report(0)).count();
    assert!(at_once <= 64, "{at_once} reports at once");
    let in_ten_seconds = (0..10_000).filter(|at| kernel_message::may_report(at * 1_000)).count();
    assert!((1..=10).contains(&in_ten_seconds), "{in_ten_seconds} reports in ten seconds");
}

/// Whom a tick leaves waiting behind a server of high priority comes before the server's
/// client of low priority, whatever the way back to that one.
#[test]
fn a_direct_switch_passes_over_nobody_whom_a_tick_has_left_waiting() {
    let (_machine, spaces) = machine(4);
    let threads = [0, 1, 2, 3].map(|index| thread(spaces[index as usize], index, ThreadId::NIL));
    let [client, server, helper, urgent] = threads;
    for (thread, priority) in threads.into_iter().zip([100, 250, 230, 200]) {
        cpu().scheduler.ready.remove(thread);
        thread.priority.set(priority);
        thread.resume.set(Resume::Frame);
    }
    let _ = ipc(helper, ThreadId::NIL, ThreadId::ANY);
    let _ = ipc(server, ThreadId::NIL, ThreadId::ANY);
    sched::grant_slice(client);
    assert!(ipc(client, server.id.get(), server.id.get()) == server);
    set_current(server);
    sched::requeue(urgent);
    assert!(irq::interrupt(server, 0) == server, "the server is more urgent");
    let helps = ipc(server, helper.id.get(), helper.id.get());
    assert!(helps == helper, "and so is whom it calls");
    assert!(ipc(helper, server.id.get(), ThreadId::ANY) == server);
    assert!(ipc(server, client.id.get(), ThreadId::ANY) == urgent, "the client is not");
    assert!(is_schedulable(client));
    assert!(!cpu().look_first.get(), "the fast path opens again");
}

/// A call that makes nobody ready changes nothing about who waits: it does not keep the
/// messages that follow out of the fast path.
#[test]
fn calls_do_not_close_the_fast_path() {
    let (_machine, spaces) = machine(2);
    let [caller, other] = [0, 1].map(|index| thread(spaces[index as usize], index, ThreadId::NIL));
    sched::requeue(other);
    sched::grant_slice(caller);
    set_current(caller);
    let frame = caller.frame();
    let own = caller.id.get().0;
    frame.make_call((Call::QuotaControl as u64).wrapping_neg(), [own, 0, 0, 0, 0]);
    assert!(kernel::call::dispatch(caller, frame) == caller);
    assert!(!cpu().look_first.get());
}

/// The end of a slice can be delayed as any preemption: not against somebody above the
/// sensitive priority.
#[test]
fn the_end_of_a_slice_is_not_delayed_above_the_sensitive_priority() {
    let (_machine, spaces) = machine(2);
    let threads = [0, 1].map(|index| thread(spaces[index as usize], index, ThreadId::NIL));
    let [busy, urgent] = threads;
    busy.sensitive_priority.set(150);
    busy.max_delay_us.set(5_000);
    busy.resume.set(Resume::Frame);
    let flags = registers(busy).flags() | utcb::PREEMPT_DELAY;
    for (priority, next) in [(150, busy), (151, urgent)] {
        cpu().scheduler.ready.remove(urgent);
        urgent.priority.set(priority);
        sched::requeue(urgent);
        set_current(busy);
        busy.delay_used.set(false);
        registers(busy).set_flags(flags);
        cpu().scheduler.slice_owner.set(Some(busy));
        cpu().scheduler.slice_left_us.set(0);
        assert!(irq::interrupt(busy, 0) == next, "against priority {priority}");
        let delays = registers(busy).flags() & utcb::PREEMPT_PENDING != 0;
        assert_eq!(delays, next == busy);
    }
}

/// Most of what a flush of everything looks at is empty: that takes few steps.
#[test]
fn a_flush_of_an_almost_empty_space_is_short() {
    let (machine, spaces) = machine(1);
    hand_on(machine.sigma0(), spaces[0], RAM);
    let everything = Fpage::COMPLETE.with_rights(Rights::RWX);
    let mut job = UnmapJob::new(spaces[0], everything, Scope::Own, marker());
    let steps = 1 + (0..).take_while(|_| job.step(STEP_BUDGET) == Step::More).count();
    assert!(steps <= 40, "{steps} steps");
    assert_eq!(check::violations(), 0);
}

/// Windows that it takes to take back 2,044 small pieces of a large page that was split after
/// they were handed on, from a page that stays or goes with them.
fn windows_for_pieces(flush: bool) -> u32 {
    let (machine, spaces) = machine(2);
    let large = MapItem::map(Fpage::memory(RAM, 21, Rights::RWX), PLACE);
    MapJob::new(machine.sigma0(), spaces[0], large, Fpage::COMPLETE, marker())
        .finish()
        .expect("quota suffices");
    for (copy, page) in (0..4).flat_map(|copy| (0..512).map(move |page| (copy, page))) {
        let item = MapItem::map(Fpage::memory(PLACE + page * 0x1000, 12, Rights::RWX), 0);
        let place = 0x800_0000 + copy * 0x20_0000 + page * 0x1000;
        let window = Fpage::memory(place, 12, Rights::NONE);
        MapJob::new(spaces[0], spaces[1], item, window, marker()).finish().expect("quota suffices");
    }
    UnmapJob::new(spaces[0], Fpage::memory(PLACE, 12, Rights::RWX), Scope::Own, marker()).finish();
    let scope = if flush { Scope::Own } else { Scope::Derived };
    let mut job = UnmapJob::new(spaces[0], Fpage::memory(PLACE, 21, Rights::RWX), scope, marker());
    let taken = windows(|| while job.advance() == Step::More {});
    assert_eq!(check::violations(), 0);
    taken
}

/// Who takes back what was derived from a page that is split looks at each piece a few times,
/// not once for each part of the page.
#[test]
fn a_flush_of_a_split_page_takes_few_walks() {
    let taken = windows_for_pieces(true);
    assert!(taken <= 10_000, "{taken} windows");
}

#[test]
fn an_unmap_of_a_split_page_takes_few_walks() {
    let taken = windows_for_pieces(false);
    assert!(taken <= 10_000, "{taken} windows");
}
