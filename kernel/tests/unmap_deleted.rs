//! A thread is deleted in the middle of its Unmap: what it began is finished all the same,
//! by whoever deletes it, however often that one is interrupted.

mod common;

use abi::syscall::Call;
use abi::{Fpage, MapItem, Numbers, Rights, ThreadId};
use common::RAM;
use common::tasks::{QUIET_LINE, machine, registers, thread};
use kernel::arch::{TcbRef, cpu, set_current};
use kernel::mem::{MapJob, SpaceRef};
use kernel::thread::lookup;
use kernel::thread::tcb::Resume;
use kernel::{call, check, resume, unmap};

/// Where pages are mapped.
const PLACE: u64 = 0x40_0000;
/// Pages that are mapped, and taken back by one Unmap of two flexpages.
const PAGES: u64 = 32;
/// Unmap's control word: two flexpages; flush.
const TWO: u64 = 1;
const FLUSH: u64 = 1 << 6;

fn hand_on(from: SpaceRef, to: SpaceRef, source: u64) {
    let item = MapItem::map(Fpage::memory(source, 17, Rights::RWX), PLACE);
    MapJob::new(from, to, item, Fpage::COMPLETE).finish().expect("quota suffices");
}

/// Does `work`; an interrupt comes after so many windows.
fn interrupted_after<T>(windows: u32, work: impl FnOnce() -> T) -> T {
    cpu().interrupt.set(Some((windows, QUIET_LINE)));
    let result = work();
    cpu().interrupt.set(None);
    result
}

/// `worker` takes both halves of its pages back, until it is interrupted; whether it was.
fn begin(worker: TcbRef, windows: u32, control: u64) -> bool {
    for half in 0..2 {
        let fpage = Fpage::memory(PLACE + half * PAGES / 2 * 4096, 16, Rights::RWX);
        registers(worker).set_mr(half as usize, fpage.0);
    }
    set_current(worker);
    let _ = interrupted_after(windows, || unmap::unmap(worker, control | TWO));
    worker.resume.get() == Resume::Unmap
}

/// `killer` deletes `victim`; an interrupt comes after so many windows, again and again.
fn delete(killer: TcbRef, victim: ThreadId, windows: u32) -> u32 {
    let frame = killer.frame();
    frame.reset();
    frame.r8.set((Call::ThreadControl as u64).wrapping_neg());
    frame.rdi.set(victim.0);
    frame.r9.set(!0);
    set_current(killer);
    killer.resume.set(Resume::Frame);
    let _ = interrupted_after(windows, || call::dispatch(killer, frame));
    let mut pauses = 0;
    while killer.resume.get() == Resume::Call {
        pauses += 1;
        assert_eq!(check::violations(), 0, "in between");
        set_current(killer);
        let _ = interrupted_after(windows, || resume::resume(killer));
    }
    let error = registers(killer).word(abi::utcb::ERROR_CODE);
    assert_eq!(frame.rax.get(), 1, "the call fails with {error}");
    pauses
}

#[test]
fn an_unmap_is_finished_before_its_thread_is_deleted() {
    let (machine, spaces) = machine(4);
    spaces[0].task.chief.set(Some(spaces[3]));
    spaces[0].task.depth.set(1);
    spaces[3].task.limits.numbers.set(Numbers::ALL);
    let _stays = thread(spaces[0], 0, ThreadId::NIL);
    let killer = thread(spaces[3], 2, ThreadId::NIL);
    let (mut cut_short, mut pauses) = (0, 0);
    for (before, after) in (0..20).flat_map(|before| (1..4).map(move |after| (before, after))) {
        for control in [0, FLUSH] {
            hand_on(machine.sigma0(), spaces[0], RAM);
            hand_on(spaces[0], spaces[1], PLACE);
            hand_on(spaces[1], spaces[2], PLACE);
            let worker = thread(spaces[0], 1, ThreadId::NIL);
            let id = worker.id.get();
            let is_cut_short = begin(worker, before, control);
            cut_short += u32::from(is_cut_short);
            pauses += delete(killer, id, after);
            assert!(lookup(id).is_none());
            let left = |space: SpaceRef| {
                (0..PAGES).filter(|page| space.page(PLACE + page * 4096).is_some()).count() as u64
            };
            let own = if control == FLUSH { 0 } else { PAGES };
            assert_eq!(
                (left(spaces[0]), left(spaces[1]), left(spaces[2])),
                (own, 0, 0),
                "interrupts after {before} and {after} windows"
            );
            assert_eq!(check::violations(), 0);
        }
    }
    assert!(cut_short > 20 && pauses > 20, "{cut_short} cut short, {pauses} pauses");
}

/// Whoever finishes it is deleted, too: the next one goes on.
#[test]
fn the_rest_of_an_unmap_outlives_its_finisher() {
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
    let (killer, other) = (thread(chief, 2, ThreadId::NIL), thread(chief, 3, ThreadId::NIL));
    let id = worker.id.get();
    assert!(begin(worker, 1, 0));
    let frame = killer.frame();
    frame.reset();
    frame.r8.set((Call::ThreadControl as u64).wrapping_neg());
    frame.rdi.set(id.0);
    set_current(killer);
    killer.resume.set(Resume::Frame);
    let _ = interrupted_after(1, || call::dispatch(killer, frame));
    assert_eq!(killer.resume.get(), Resume::Call);
    assert!(first.page(PLACE + (PAGES - 1) * 4096).is_some(), "it is not done yet");
    assert!(!worker.is_ready(), "it does not run any more");
    delete(other, killer.id.get(), 1);
    assert!(lookup(id).is_some());
    delete(other, id, 1);
    assert!(lookup(id).is_none());
    assert_eq!((first.nodes(), second.nodes()), (0, 0));
    assert_eq!(check::violations(), 0);
}
