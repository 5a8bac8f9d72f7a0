//! Messages with which threads come back from another processor, which the test plays: those that are passed
//! on without running them here, and those that are not.

use crate::common::clan::{World, asks, rank};
use crate::common::there::CALL;
use abi::{MsgTag, ThreadId, Timeouts};
use kernel::arch::cpu;
use kernel::check;
use kernel::control::schedule;
use kernel::elsewhere::visits::{accept, enter, set_processors};
use kernel::ipc::wait;
use kernel::irq::comers;
use kernel::sched::{make_ready, pick};
use kernel::thread::state::State;
use kernel::thread::tcb::{Resume, USES_VECTOR};
use kernel::thread::{TcbRef, current, rendezvous, set_current};
use kernel::usermem::Utcb;

/// What the thread says.
const TAG: MsgTag = MsgTag::new(7, 2, 0);
/// Its words behind the tag.
const WORDS: [u64; 7] = [10, 11, 12, 13, 14, 15, 16];
/// Where it is in user mode.
const IP: u64 = 0x2000;

/// What the thread asks for, if it is not a call of the root thread with [`TAG`].
struct Asks {
    to: ThreadId,
    from: ThreadId,
    tag: MsgTag,
}

/// A world of two processors: the root thread waits for `from`, `two` for the root thread, `one` is on processor 1,
/// and this one idles.
/// Nothing where this processor has no binding for messages in registers.
fn world(from: impl Fn(&World) -> ThreadId) -> Option<World> {
    let world = World::new();
    set_processors(2);
    make_ready(world.one);
    rank(world.root, 50);
    let change = schedule::Change { processor: 1, ..asks(world.one) };
    let _ = schedule::schedule(world.root, &change).expect("the root task may");
    comers::look();
    let _ = accept(1).expect("it may come");
    for (thread, from) in [(world.two, world.root.id.get()), (world.root, from(&world))] {
        set_current(thread);
        let _ = kernel::ipc::syscall::ipc(thread, ThreadId::NIL, from, Timeouts::NEVER.0);
    }
    set_current(pick());
    assert_eq!(cpu().scheduler.idle.get(), Some(current()), "nobody is ready");
    world.one.frame().make_exchange(ThreadId::ROOT, ThreadId::ANY, TAG, WORDS).then_some(world)
}

/// `one` makes its call there, and this processor looks.
fn calls(world: &World, asks: &Asks) {
    let _ = world.one.frame().make_exchange(asks.to, asks.from, asks.tag, WORDS);
    world.one.frame().ip.set(IP);
    enter(1, CALL);
    comers::look();
}

fn usual(world: &World) -> Asks {
    Asks { to: world.root.id.get(), from: world.root.id.get(), tag: TAG }
}

/// Whether `one` has told its message without having run here.
fn told(world: &World) -> bool {
    let entered = world.one.resume.get() == Resume::Entered;
    assert_eq!(entered, world.one.is_ready(), "it makes its call when it runs, or has made it");
    assert!(!world.one.is_away());
    assert_eq!(check::violations(), 0);
    !entered
}

fn word(thread: TcbRef, index: usize) -> u64 {
    Utcb::of(thread).expect("it has one").mr(index)
}

/// Runs `case` for each of `cases` numbers, each on a machine of its own.
fn each(cases: usize, case: fn(usize)) {
    for number in 0..cases {
        std::thread::spawn(move || case(number)).join().expect("the case passes");
    }
}

/// Who answers with the tag that came from another processor says nothing unusual.
#[test]
fn a_tag_that_came_from_here_is_passed_on() {
    let Some(world) = world(|_| ThreadId::ANY) else { return };
    calls(&world, &Asks { tag: TAG.with(MsgTag::XCPU), ..usual(&world) });
    assert!(told(&world));
    assert_eq!(word(world.root, 0), TAG.0 | MsgTag::XCPU);
}

#[test]
fn a_message_is_passed_on_from_the_frame() {
    each(2, |case| {
        let is_closed = case == 1;
        let waits = |world: &World| if is_closed { world.one.id.get() } else { ThreadId::ANY };
        let Some(world) = world(waits) else { return };
        calls(&world, &usual(&world));
        assert!(told(&world));
        let (one, root) = (world.one, world.root);
        assert!(root.is_ready() && cpu().scheduler.ready.contains(root));
        assert_eq!(root.result_from.get(), one.id.get());
        let words = [0, 1, 2, 3].map(|index| word(root, index));
        assert_eq!(words, [TAG.0 | MsgTag::XCPU, 10, 11, 0], "as many as the tag says");
        assert_eq!(wait::state(one), State::Waits(root.id.get()));
        assert_eq!((one.resume.get(), one.ip.get()), (Resume::Ipc, IP));
        // The answer leads back there, and to the same place.
        set_current(root);
        let id = one.id.get();
        let _ = kernel::ipc::syscall::ipc(root, id, ThreadId::NIL, Timeouts::NEVER.0);
        comers::look();
        assert!(one.is_away());
        let frame = accept(1).expect("it goes on there").frame();
        assert_eq!((frame.ip.get(), frame.is_users()), (IP, true));
        assert_eq!(check::violations(), 0);
    });
}

#[test]
fn who_waits_for_anybody_behind_it_does() {
    let Some(world) = world(|_| ThreadId::ANY) else { return };
    calls(&world, &Asks { from: ThreadId::ANY, ..usual(&world) });
    assert!(told(&world));
    assert_eq!(wait::state(world.one), State::Waits(ThreadId::ANY));
}

/// Whatever else a message has, or asks for, is the complete path's.
#[test]
fn what_is_unusual_is_told_by_who_runs() {
    each(10, |case| {
        let Some(world) = world(|_| ThreadId::ANY) else { return };
        let usual = || usual(&world);
        let asks = [
            Asks { from: world.two.id.get(), ..usual() },
            Asks { from: ThreadId::NIL, ..usual() },
            Asks { from: ThreadId::ANY_LOCAL, ..usual() },
            Asks { to: ThreadId::NIL, ..usual() },
            Asks { to: world.two.id.get(), ..usual() },
            Asks { to: world.one.id.get(), from: world.one.id.get(), ..usual() },
            Asks { to: ThreadId::global(950, 1), from: ThreadId::ANY, ..usual() },
            Asks { tag: MsgTag::new(7, 8, 0), ..usual() },
            Asks { tag: MsgTag::new(7, 1, 2), ..usual() },
            Asks { tag: MsgTag(TAG.0 | MsgTag::PROPAGATED), ..usual() },
        ];
        calls(&world, &asks[case]);
        assert!(!told(&world), "case {case}");
        assert!(!world.root.is_ready(), "case {case}");
    });
}

/// Where somebody waits for the processor, or for the thread, it is not passed over.
#[test]
fn nobody_is_passed_over() {
    type Case = (&'static str, bool, fn(&World));
    const CASES: [Case; 6] = [
        ("a less urgent receiver, and nobody else", true, |world| world.root.priority.set(1)),
        ("a less urgent receiver, and somebody else", false, |world| {
            world.root.priority.set(1);
            make_ready(world.two);
        }),
        ("a more urgent receiver, and somebody else", true, |world| {
            world.root.priority.set(200);
            make_ready(world.two);
        }),
        ("who is to halt", false, |world| world.one.halt()),
        ("a receiver that is to halt", false, |world| {
            world.root.halt();
            wait::wait_for_the_complete_path(world.root);
        }),
        ("vector registers that are kept", false, |world| world.one.set_special(USES_VECTOR, true)),
    ];
    each(CASES.len(), |case| {
        let (name, is_told, prepare) = CASES[case];
        let Some(world) = world(|_| ThreadId::ANY) else { return };
        prepare(&world);
        calls(&world, &usual(&world));
        assert_eq!(world.one.resume.get() == Resume::Ipc, is_told, "{name}");
    });
}

/// Who has posed as somebody once, in a message that the complete path has sent, does not any more.
#[test]
fn who_has_posed_as_another_does_not_any_more() {
    let Some(world) = world(|world| world.two.id.get()) else { return };
    // Two threads of one task may stand for each other.
    world.two.space.set(world.one.space.get());
    world.one.transfer.pose_as(world.two.id.get());
    calls(&world, &usual(&world));
    assert!(!world.root.is_ready(), "it waits for another");
    assert!(rendezvous::awaited(world.root) == world.two.id.get());
    world.two.space.set(Some(world.spaces[1]));
}
