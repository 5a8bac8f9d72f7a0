//! The invariant checker finds what it is told to find: a sound machine has no
//! violation, and each planted corruption is named.

use crate::common::{Machine, RAM, tasks};
use abi::id::USER_BASE;
use abi::{Fpage, MapItem, Rights, ThreadId};
use kernel::arch::console::take_log;
use kernel::arch::paging::{Entry, ROOT, Table, index};
use kernel::arch::{cpu, phys_to_virt};
use kernel::check;
use kernel::control::lifecycle;
use kernel::ipc::{queue, syscall};
use kernel::mem::RootWord;
use kernel::mem::{self, DestroyJob, MapJob, SpaceRef, frames};
use kernel::sched;
use kernel::space::spaces;
use kernel::thread::part::Part;
use kernel::thread::rendezvous::{self, Busy};
use kernel::thread::tcb::{Job, Resume};
use kernel::thread::{Kind, TcbRef, set_current};

/// Where pages are mapped.
const PLACE: u64 = 0x40_0000;

/// A machine with three threads in two spaces: the first runs, the second waits to
/// send to the third, which is ready. Pages go from σ0 to both spaces.
struct World {
    machine: Machine,
    first: TcbRef,
    sender: TcbRef,
    receiver: TcbRef,
}

impl World {
    fn new() -> Self {
        let (machine, _) = tasks::machine(2);
        let [sigma0, one, two] = machine.spaces[..] else { unreachable!("three were made") };
        give(sigma0, one, RAM, PLACE, 16, Rights::RWX);
        give(one, two, PLACE, PLACE, 13, Rights::RW);
        let (first, sender, receiver) = (thread(one, 0), thread(two, 1), thread(one, 2));
        set_current(sender);
        sched::requeue(first);
        let next = syscall::ipc(sender, receiver.id.get(), ThreadId::NIL, 0);
        assert!(next.is_ready());
        set_current(first);
        cpu().scheduler.wakeup.insert(sender, 5_000_000);
        let (mut limits, mut used) = (0, 0);
        spaces().for_each(|space| {
            limits += space.quota().limit();
            used += space.quota().used();
        });
        mem::check::seal(limits, used);
        Self { machine, first, sender, receiver }
    }

    fn space(&self, number: usize) -> SpaceRef {
        self.machine.spaces[number]
    }
}

fn thread(space: SpaceRef, number: u32) -> TcbRef {
    tasks::thread(space, number, ThreadId::NIL)
}

fn give(from: SpaceRef, to: SpaceRef, source: u64, target: u64, bits: u32, rights: Rights) {
    let item = MapItem::map(Fpage::memory(source, bits, rights), target);
    MapJob::new(from, to, item, Fpage::COMPLETE, crate::common::marker())
        .finish()
        .expect("quota suffices");
}

/// The table with the 4 KiB entries for `vaddr`.
fn leaf_table(space: SpaceRef, vaddr: u64) -> Table {
    let mut table = space.root().table();
    for level in (1..=ROOT).rev() {
        table = table.get(index(vaddr, level)).below();
    }
    table
}

fn change_entry(space: SpaceRef, vaddr: u64, clear: u64, set: u64) {
    leaf_table(space, vaddr).change(index(vaddr, 0), clear, set);
}

/// Word number `word` of the mapping node of the page at `vaddr`.
fn node_word(space: SpaceRef, vaddr: u64, word: usize) -> *mut u64 {
    let node = space.page(vaddr).and_then(|page| page.node).expect("the page is there");
    core::ptr::from_ref(&*node).cast::<u64>().cast_mut().wrapping_add(word)
}

fn change_node(space: SpaceRef, vaddr: u64, word: usize, change: impl Fn(u64) -> u64) {
    let word = node_word(space, vaddr, word);
    // SAFETY: a word of a node of this test's own machine; nobody else looks meanwhile.
    unsafe { word.write(change(word.read())) };
}

/// A sound world has no violation; after `plant` the checker says `sentence`.
/// Each in a thread of its own: that is a machine of its own.
#[track_caller]
fn finds(sentence: &str, plant: impl FnOnce(&World) + Send) {
    let look = || {
        let world = World::new();
        let _ = take_log();
        assert_eq!(check::violations(), 0, "the world is sound");
        plant(&world);
        (check::violations(), take_log())
    };
    let found = std::thread::scope(|scope| scope.spawn(look).join());
    let (count, log) = found.unwrap_or_else(|_| panic!("the check for `{sentence}` panicked"));
    assert!(count > 0, "nothing was found where it should say: {sentence}");
    assert!(log.contains(sentence), "expected `{sentence}` in:\n{log}");
}

#[test]
fn a_sound_machine_has_no_violation() {
    let _world = World::new();
    assert_eq!(check::violations(), 0);
    assert_eq!(check::violations(), 0, "looking changes nothing");
}

#[test]
fn threads_and_their_identity() {
    finds("its id does not lead to it", |world| {
        world.first.id.set(ThreadId::global(USER_BASE + 33, 1));
    });
    finds("its root is not its space's", |world| world.first.root.set(RootWord::of_kernel(0x1000)));
    finds("its UTCB is not in its space's area", |world| world.first.utcb.set(PLACE + 512));
    finds("its space shows another page than its UTCB", |world| {
        world.first.utcb_k.set(world.receiver.utcb_k.get());
    });
    finds("has a UTCB and is inactive", |world| {
        rendezvous::set_busy(world.receiver, Busy::Inactive);
    });
    finds("has a rendezvous word that stands for no state", |world| {
        world.receiver.rendezvous.set(world.receiver.id.get().0 ^ 5);
    });
    finds("has no address space", |world| world.receiver.space.set(None));
}

#[test]
fn a_program_may_have_jumped_anywhere() {
    let world = World::new();
    world.receiver.resume.set(Resume::Frame);
    world.receiver.frame().vector.set(14);
    world.receiver.frame().ip.set(u64::MAX - 1);
    let _ = take_log();
    let _ = check::violations();
    let log = take_log();
    assert!(!log.contains("at an address"), "{log}");
}

#[test]
fn states() {
    finds("is ready but not in the ready queue", |world| {
        cpu().scheduler.ready.remove(world.receiver);
    });
    finds("is halted and ready at the same time", |world| world.receiver.halt());
    finds("lets the fast path wake it", |world| {
        rendezvous::set_open(world.receiver);
        world.receiver.halt();
    });
    finds("as if it were its own", |world| {
        rendezvous::set_open(world.receiver);
        world.receiver.kind.set(Kind::PageFault);
    });
    finds("will not return from an IPC", |world| {
        rendezvous::set_open(world.receiver);
        world.receiver.resume.set(Resume::Frame);
    });
    finds("waits for a thread that does not exist", |world| {
        rendezvous::set_closed(world.receiver, ThreadId::global(77, 1));
    });
    finds("has a wakeup time but does not wait", |world| {
        cpu().scheduler.wakeup.insert(world.receiver, 9_000_000);
    });
    finds("goes on as a thread of the kernel's own", |world| {
        world.receiver.resume.set(Resume::Idle)
    });
    finds("at an address that is no user's", |world| {
        world.receiver.ip.set(0xFFFF_8000_0000_0000);
    });
    finds("at an address that is no user's", |world| {
        world.receiver.resume.set(Resume::Frame);
        world.receiver.frame().reset();
        world.receiver.frame().ip.set(u64::MAX - 1);
    });
    finds("with flags that no user may have", |world| world.receiver.flags.set(!0));
    finds("with a frame that does not lead to user mode", |world| {
        world.receiver.resume.set(Resume::Frame);
        world.receiver.frame().lead_astray();
    });
    finds("a memory operation under way with which it does not go on", |world| {
        let job = DestroyJob::new(world.space(2), crate::common::marker());
        world.receiver.job.set(Some(Job::Destroy(job)));
    });
}

#[test]
fn queues() {
    finds("the links of the ready queue of priority 100 are broken", |world| {
        world.receiver.ready.set_prev(world.receiver);
    });
    finds("and is queued at 100", |world| world.receiver.priority.set(90));
    finds("say that they are in the ready queue", |world| {
        world.sender.ready.set_next(world.sender);
    });
    finds("the links of the send queue of", |world| {
        world.sender.sending.set_prev(world.first);
    });
    finds("is queued to send to", |world| world.sender.partner.set(world.first.id.get()));
    finds("its open_from and its send queue differ", |world| {
        world.receiver.open_from.set(ThreadId::ANY);
    });
    finds("waits to send but is in no send queue", |world| {
        queue::remove(world.receiver, world.sender);
    });
    finds("and believes to be in", |world| {
        world.sender.wake_list.set(world.sender.wake_list.get() ^ 1);
    });
    finds("has a wakeup time but is in no wakeup list", |world| {
        cpu().scheduler.wakeup.remove(world.sender);
        world.sender.wake_at_us.set(7);
    });
    finds("the ring of all threads has", |world| world.first.all.set_prev(world.first));
    finds("of them of other spaces", |world| world.first.space.set(Some(world.space(2))));
}

#[test]
fn transfers_and_the_processor() {
    finds("its transfer partner does not know of the transfer", |world| {
        world.sender.transfer.part.set(Some(Part::SendsTo(world.first)));
    });
    finds("is in a transfer with nobody", |world| {
        cpu().scheduler.ready.remove(world.receiver);
        rendezvous::set_busy(world.receiver, Busy::Transfer);
    });
    finds("is answered without being answered", |world| {
        world.receiver.transfer.outer.set(Some(Part::SendsTo(world.sender)));
    });
    finds("the time slice belongs to a thread that does not exist", |world| {
        let space = world.receiver.space().expect("a user's thread");
        let gone = thread(space, 9);
        let _ = lifecycle::delete(gone);
        cpu().scheduler.slice_owner.set(Some(gone));
    });
}

#[test]
fn page_tables_and_mapping_trees() {
    const NEXT: u64 = PLACE + 0x1000;
    finds("shows another frame than its mapping tree says", |world| {
        change_entry(world.space(2), PLACE, 0, 0x8000);
    });
    finds("derived from one that is not there", |world| {
        let same = RAM + 0x3000;
        give(world.space(0), world.space(1), same, same, 12, Rights::R);
        change_node(world.space(1), same, 0, |_| 0);
    });
    finds("a page table and the list of its mapping nodes differ", |world| {
        leaf_table(world.space(1), PLACE).set(index(PLACE, 0), Entry::EMPTY);
    });
    finds("has a right that the page it is derived from lacks", |world| {
        change_entry(world.space(1), PLACE, Entry::W, 0);
    });
    finds("shows memory of the kernel's", |world| {
        change_entry(world.space(2), PLACE, 0, Entry::UNCACHED);
    });
    finds("is marked as being flushed", |world| {
        change_entry(world.space(2), PLACE, 0, Entry::DYING);
    });
    finds("a page of the kernel's is outside of its area", |world| {
        let frame = world.space(2).quota().take_frame().expect("quota suffices");
        let mapped = world.space(2).map_kernel_page(PLACE + 0x5000, frame.address(), Rights::R);
        mapped.expect("quota suffices");
    });
    finds("counts other entries than refer to it", |world| {
        change_node(world.space(2), NEXT, 4, |frame| frame + (1 << 40));
    });
    finds("mapping tree's links are broken", |world| {
        change_node(world.space(1), PLACE, 1, |_| node_word(world.space(2), NEXT, 0) as u64);
    });
    finds("is not inside the one that it is derived from", |world| {
        change_node(world.space(2), NEXT, 4, |frame| frame + 1);
    });
    finds("another space's or does not cover it", |world| {
        change_node(world.space(2), NEXT, 5, |place| place + 1);
    });
    finds("a page table counts other entries than it has", |world| {
        change_entry(world.space(2), PLACE + 0x9000, 0, Entry::P | Entry::U | Entry::KERNEL);
    });
}

#[test]
fn quotas_and_frames() {
    finds("uses 65 pages and may use 64", |world| {
        let space = world.space(2);
        let quota = space.quota();
        while quota.take_frame().is_ok() {}
        quota.transfer(world.space(1).quota(), 0).expect("nothing is moved");
        assert_eq!((quota.used(), quota.limit()), (64, 64));
        let words = core::ptr::from_ref(quota).cast::<u64>().cast_mut();
        // SAFETY: the quota's two words, in whatever order: the test's own machine.
        unsafe {
            words.write(64);
            words.add(1).write(65);
        }
    });
    finds("the quotas of all spaces come to", |world| {
        world.machine.bank.transfer(world.space(1).quota(), 3).expect("the bank has more");
    });
    finds("pays for", |world| {
        let _ = world.space(1).quota().take_frame().expect("quota suffices");
    });
    finds("frames of the kernel's memory belong to nobody", |_| {
        let _ = frames::take().expect("one is free");
    });
    finds("has two owners", |world| {
        let root = kernel::mem::PhysFrame::at(world.space(1).root().table().address());
        let (root, free) = (root, frames::take().expect("one is free"));
        frames::give_back(free);
        // SAFETY: the first word of a free frame, which chains the free frames.
        unsafe { phys_to_virt(free.address()).cast::<u64>().write(root.address()) };
    });
}
