//! What a chief gives a task: thread numbers that nobody else touches, ids that never come
//! back, ceilings that no thread of the task gets above.

mod common;

use core::sync::atomic::Ordering;

use abi::{CallError, Ceilings, Numbers, ThreadId, Time, inspect, utcb};
use common::Machine;
use common::tasks::{UTCBS, machine, make, registers};
use kernel::arch::{TcbRef, cpu, last_version, set_current};
use kernel::check;
use kernel::sched::schedule::{self, schedule};
use kernel::space::SpaceRef;
use kernel::space::limits::{Request as Limits, task_control};
use kernel::thread::control::{After, Form, Request, in_form};
use kernel::thread::{lifecycle, lookup, lookup_number};

const FIRST: u32 = 1000;
const UNCHANGED: u64 = !0;

/// A root task with two ordinary tasks below it, a thread in each; the first owns
/// 16 numbers, the second the 16 behind them.
struct World {
    _machine: Machine,
    spaces: Vec<SpaceRef>,
    root: TcbRef,
    one: TcbRef,
    two: TcbRef,
}

impl World {
    fn new() -> Self {
        let (machine, mut spaces) = machine(3);
        let root_space = spaces.remove(0);
        root_space.task.privileged.set(true);
        for space in &spaces {
            space.task.chief.set(Some(root_space));
            space.task.depth.set(1);
        }
        let root = make(ThreadId::global(900, 1), root_space, 0, ThreadId::NIL);
        let one = make(ThreadId::global(901, 1), spaces[0], 1, ThreadId::NIL);
        let two = make(ThreadId::global(902, 1), spaces[1], 2, ThreadId::NIL);
        for thread in [one, two] {
            thread.scheduler.set(root.id.get());
        }
        let world = Self { _machine: machine, spaces, root, one, two };
        world.gives_numbers(one, FIRST).expect("the root task has all numbers");
        world.gives_numbers(two, FIRST + 16).expect("the root task has all numbers");
        world
    }

    fn gives_numbers(&self, to: TcbRef, first: u32) -> Result<(), CallError> {
        control(self.root, to, Numbers { first, count: 16 }.word(), UNCHANGED).map(|_| ())
    }

    fn limits(&self, task: TcbRef, ceilings: Ceilings) {
        control(self.root, task, UNCHANGED, ceilings.word()).expect("the root task may");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(check::violations(), 0);
        }
    }
}

fn control(
    caller: TcbRef,
    of: TcbRef,
    numbers: u64,
    ceilings: u64,
) -> Result<(Numbers, Ceilings), CallError> {
    set_current(caller);
    task_control(caller, &Limits { specifier: of.id.get(), numbers, ceilings })
}

/// Gives a ready thread another priority.
fn rank(thread: TcbRef, priority: u8) {
    cpu().scheduler.ready.remove(thread);
    thread.priority.set(priority);
    cpu().scheduler.ready.insert(thread);
}

fn id(number: u32, version: u32) -> ThreadId {
    ThreadId::global(number, version)
}

/// ThreadControl on `dest` in the space of `space`, which is the caller's scheduler's.
fn call(caller: TcbRef, dest: ThreadId, space: ThreadId, form: Form) -> Result<After, CallError> {
    set_current(caller);
    let scheduler = if space.is_nil() { ThreadId::NIL } else { caller.scheduler.get() };
    let request = Request { dest, pager: ThreadId::NIL, scheduler, space, utcb_location: !0 };
    in_form(caller, &request, form)
}

fn create(caller: TcbRef, dest: ThreadId) -> Result<After, CallError> {
    call(caller, dest, caller.id.get(), Form::Any)
}

fn delete(caller: TcbRef, dest: ThreadId) -> Result<After, CallError> {
    call(caller, dest, ThreadId::NIL, Form::Any)
}

fn because<T>(result: Result<T, CallError>) -> Option<CallError> {
    result.err()
}

fn asks(dest: TcbRef) -> schedule::Request {
    let unchanged = UNCHANGED;
    schedule::Request {
        dest: dest.id.get(),
        priority: unchanged,
        time: unchanged,
        processor: unchanged,
        preemption: unchanged,
    }
}

#[test]
fn a_task_creates_and_deletes_threads_only_in_its_own_range() {
    let world = World::new();
    assert!(create(world.one, id(FIRST, 1)).is_ok());
    assert!(create(world.one, id(FIRST + 15, 1)).is_ok());
    for number in [FIRST - 1, FIRST + 16, 900, 902, 5000] {
        assert_eq!(because(create(world.one, id(number, 5))), Some(CallError::NoPrivilege));
        assert_eq!(because(delete(world.one, id(number, 5))), Some(CallError::NoPrivilege));
    }
    assert!(delete(world.one, id(FIRST, 1)).is_ok());
    assert!(lookup_number(FIRST).is_none());
}

#[test]
fn a_task_without_numbers_creates_nothing() {
    let world = World::new();
    world.spaces[0].task.limits.numbers.set(Numbers::NONE);
    assert_eq!(because(create(world.one, id(FIRST, 1))), Some(CallError::NoPrivilege));
}

#[test]
fn numbers_come_from_the_chief_and_once() {
    let world = World::new();
    assert_eq!(
        because(world.gives_numbers(world.one, 3000)),
        Some(CallError::InvalidParameter),
        "it has some already"
    );
    // Neither the task itself nor its neighbour.
    let more = Numbers { first: 3000, count: 1 }.word();
    let none = Some(CallError::NoPrivilege);
    assert_eq!(because(control(world.one, world.one, more, UNCHANGED)), none);
    assert_eq!(because(control(world.two, world.one, more, UNCHANGED)), none);
    assert_eq!(because(control(world.two, world.one, UNCHANGED, UNCHANGED)), none);
    let read = control(world.one, world.one, UNCHANGED, UNCHANGED).expect("a task may read");
    assert_eq!(read, (Numbers { first: FIRST, count: 16 }, Ceilings::NONE));
    // A task below gets a part of what its chief has.
    assert!(call(world.one, id(FIRST, 1), id(FIRST, 1), Form::Create).is_ok());
    let child = lookup(id(FIRST, 1)).expect("it was created");
    let gives = |numbers: Numbers| control(world.one, child, numbers.word(), UNCHANGED);
    for numbers in [(FIRST, 17), (FIRST + 15, 2), (FIRST - 1, 2), (FIRST + 16, 1)] {
        let (first, count) = numbers;
        assert_eq!(because(gives(Numbers { first, count })), none, "{numbers:?}");
    }
    assert!(gives(Numbers { first: FIRST + 4, count: 4 }).is_ok());
}

#[test]
fn control_calls_do_not_tell_who_exists_elsewhere() {
    let world = World::new();
    let (there, nobody) = (world.two.id.get(), id(950, 1));
    for form in [Form::Any, Form::Create] {
        let answers = |dest| {
            [
                because(call(world.one, dest, world.one.id.get(), form)),
                because(call(world.one, dest, ThreadId::NIL, form)),
                because(call(world.one, id(FIRST, 1), dest, form)),
            ]
        };
        assert_eq!(answers(there), answers(nobody), "{form:?}");
    }
    let schedules = |dest| {
        let request = schedule::Request { dest, ..asks(world.two) };
        because(schedule(world.one, &request))
    };
    assert_eq!(schedules(there), schedules(nobody));
    let scheduler = |dest| {
        let request = Request {
            dest: id(FIRST, 1),
            pager: ThreadId::NIL,
            scheduler: dest,
            space: world.one.id.get(),
            utcb_location: !0,
        };
        because(in_form(world.one, &request, Form::Any))
    };
    assert_eq!(scheduler(there), scheduler(nobody));
    assert_eq!(scheduler(there), Some(CallError::InvalidScheduler));
    let quota = |dest| because(kernel::space::quota::quota_control(world.one, dest, 0));
    assert_eq!(quota(there), quota(nobody));
    let limits = |specifier| {
        let request = Limits { specifier, numbers: UNCHANGED, ceilings: UNCHANGED };
        because(task_control(world.one, &request))
    };
    assert_eq!(limits(there), limits(nobody));
    let areas = |dest| {
        let nil = abi::Fpage::NIL;
        because(kernel::space::control::space_control(world.one, dest, nil, nil))
    };
    assert_eq!(areas(there), areas(nobody));
    let state = |dest| because(kernel::thread::foreign::thread_state(world.one, dest, 1, 0));
    assert_eq!(state(there), state(nobody));
}

#[test]
fn create_thread_leaves_a_thread_that_exists_alone() {
    let world = World::new();
    let (old, new) = (id(FIRST + 16, 1), id(FIRST + 16, 2));
    assert!(create(world.two, old).is_ok());
    let made = call(world.root, new, new, Form::Create);
    assert_eq!(because(made), Some(CallError::InvalidThread));
    assert!(lookup(old).is_some() && lookup(new).is_none());
    assert_eq!(because(call(world.root, old, old, Form::Create)), Some(CallError::InvalidThread));
    let free = id(FIRST + 17, 1);
    assert!(call(world.root, free, free, Form::Create).is_ok());
}

#[test]
fn an_id_never_comes_back() {
    let world = World::new();
    let number = FIRST + 3;
    assert!(create(world.one, id(number, 5)).is_ok());
    assert!(delete(world.one, id(number, 5)).is_ok());
    for version in [5, 4, 1] {
        let again = create(world.one, id(number, version));
        assert_eq!(because(again), Some(CallError::InvalidThread), "version {version}");
    }
    assert_eq!(last_version(number), 5);
    assert!(create(world.one, id(number, 6)).is_ok());
    let renames = |version| call(world.one, id(number, version), id(number, version), Form::Any);
    assert_eq!(because(renames(5)), Some(CallError::InvalidThread));
    assert!(renames(7).is_ok());
    assert!(lookup(id(number, 7)).is_some());
    // The root task may use what X.2 lets it use.
    assert!(delete(world.root, id(number, 7)).is_ok());
    world.root.scheduler.set(world.root.id.get());
    assert!(call(world.root, id(number, 2), world.one.id.get(), Form::Any).is_ok());
    assert_eq!(last_version(number), 7);
}

#[test]
fn a_creation_that_fails_gives_no_id_away() {
    let world = World::new();
    let request = Request {
        dest: id(FIRST, 5),
        pager: world.root.id.get(),
        scheduler: world.one.scheduler.get(),
        space: world.one.id.get(),
        utcb_location: 3,
    };
    set_current(world.one);
    assert_eq!(because(in_form(world.one, &request, Form::Create)), Some(CallError::UtcbArea));
    assert_eq!(last_version(FIRST), 0);
    assert!(create(world.one, id(FIRST, 5)).is_ok());
}

#[test]
fn nobody_uses_up_the_versions_of_a_number() {
    let world = World::new();
    assert_eq!(because(create(world.one, id(FIRST, 129))), Some(CallError::InvalidThread));
    assert_eq!(because(create(world.one, id(FIRST, u32::MAX))), Some(CallError::InvalidThread));
    assert!(create(world.one, id(FIRST, 63)).is_ok());
    assert!(delete(world.one, id(FIRST, 1)).is_ok());
    assert!(create(world.one, id(FIRST, 65)).is_ok());
}

#[test]
fn a_new_thread_is_no_more_urgent_than_its_creator() {
    let world = World::new();
    rank(world.one, 20);
    assert!(create(world.one, id(FIRST, 1)).is_ok());
    let made = lookup(id(FIRST, 1)).expect("it was created");
    assert_eq!(made.priority.get(), 20);
    rank(world.two, 200);
    assert!(create(world.two, id(FIRST + 16, 1)).is_ok());
    let made = lookup(id(FIRST + 16, 1)).expect("it was created");
    assert_eq!(made.priority.get(), lifecycle::DEFAULT_PRIORITY);
}

/// Ceilings as the root task gives them to an ordinary task.
const LOW: Ceilings =
    Ceilings { priority: 50, slice: Time::micros(10_000), quantum: Time::NEVER, delay_us: 0 };

/// What Schedule says to a thread of `world.one` about itself: it is its own scheduler.
fn schedules_itself(world: &World, change: impl Fn(&mut schedule::Request)) -> Option<CallError> {
    assert!(create(world.one, id(FIRST + 1, 1)).is_ok());
    let partner = lookup(id(FIRST + 1, 1)).expect("it was created");
    partner.scheduler.set(world.one.id.get());
    let mut request = asks(partner);
    change(&mut request);
    let result = because(schedule(world.one, &request));
    let _ = delete(world.one, partner.id.get());
    cpu().scheduler.ready.remove(world.one);
    result
}

fn time(slice: Time, quantum: Time) -> u64 {
    u64::from(slice.0) << 16 | u64::from(quantum.0)
}

#[test]
fn a_tasks_own_scheduler_gives_no_more_than_the_ceilings() {
    let no = Some(CallError::NoPrivilege);
    let world = World::new();
    rank(world.one, 40);
    world.limits(world.one, LOW);
    let result = schedules_itself(&world, |request| request.time = time(Time::NEVER, Time::NEVER));
    assert_eq!(result, no, "an endless slice");
}

#[test]
fn each_ceiling_holds_at_its_edge() {
    let no = Some(CallError::NoPrivilege);
    let cases: [(u64, u64, u64, Option<CallError>); 7] = [
        (UNCHANGED, time(Time::micros(10_000), Time::NEVER), UNCHANGED, None),
        (UNCHANGED, time(Time::micros(10_240), Time::NEVER), UNCHANGED, no),
        (50, UNCHANGED, UNCHANGED, None),
        (51, UNCHANGED, UNCHANGED, no),
        (UNCHANGED, UNCHANGED, 50 << 16, None),
        (UNCHANGED, UNCHANGED, 51 << 16, no),
        (UNCHANGED, UNCHANGED, 1, no),
    ];
    for (priority, time, preemption, expected) in cases {
        let run = || {
            let world = World::new();
            world.limits(world.one, LOW);
            let dest = world.one.id.get();
            // The root task is bound by the ceilings that it gave, too.
            let request = schedule::Request { dest, priority, time, processor: !0, preemption };
            assert_eq!(because(schedule(world.root, &request)), expected);
        };
        std::thread::scope(|scope| scope.spawn(run).join()).expect("the case holds");
    }
}

#[test]
fn lower_ceilings_lower_what_is_there_and_what_is_below() {
    let world = World::new();
    assert!(call(world.one, id(FIRST, 1), id(FIRST, 1), Form::Create).is_ok());
    let child = lookup(id(FIRST, 1)).expect("it was created");
    for thread in [world.one, child] {
        thread.timeslice_us.set(u64::MAX);
        thread.slice_left_us.set(u64::MAX);
        thread.max_delay_us.set(65_535);
        thread.sensitive_priority.set(255);
    }
    world.limits(world.one, LOW);
    for thread in [world.one, child] {
        assert_eq!((thread.priority.get(), thread.sensitive_priority.get()), (50, 50));
        assert_eq!((thread.timeslice_us.get(), thread.max_delay_us.get()), (10_000, 0));
        assert!(thread.slice_left_us.get() <= 10_000);
    }
    assert_eq!(child.space().map(SpaceRef::ceilings), Some(LOW));
    assert_eq!(world.two.priority.get(), lifecycle::DEFAULT_PRIORITY);
    // They never rise again, and the next ones are inherited.
    let raise = control(world.root, world.one, UNCHANGED, Ceilings::NONE.word());
    assert_eq!(because(raise), Some(CallError::NoPrivilege));
    assert!(call(world.one, id(FIRST + 1, 1), id(FIRST + 1, 1), Form::Create).is_ok());
    let late = lookup(id(FIRST + 1, 1)).expect("it was created");
    assert_eq!((late.priority.get(), late.timeslice_us.get()), (50, 10_000));
}

#[test]
fn a_used_up_quantum_is_not_refilled_from_inside() {
    let world = World::new();
    world.limits(world.one, Ceilings { quantum: Time::micros(1000), ..LOW });
    assert_eq!(world.one.quantum_left_us.get(), 1000);
    // A new thread takes half of its creator's; so does one in a new task.
    assert!(create(world.one, id(FIRST, 1)).is_ok());
    let made = lookup(id(FIRST, 1)).expect("it was created");
    assert_eq!((world.one.quantum_left_us.get(), made.quantum_left_us.get()), (500, 500));
    assert!(call(world.one, id(FIRST + 1, 1), id(FIRST + 1, 1), Form::Create).is_ok());
    let below = lookup(id(FIRST + 1, 1)).expect("it was created");
    assert_eq!((world.one.quantum_left_us.get(), below.quantum_left_us.get()), (250, 250));
    // Its own task does not refill it, by whatever scheduler.
    let mut request = asks(below);
    request.time = time(Time::micros(1000), Time::micros(1000));
    assert_eq!(because(schedule(world.one, &request)), Some(CallError::NoPrivilege));
    let own = Request {
        dest: id(FIRST + 2, 1),
        pager: ThreadId::NIL,
        scheduler: world.one.id.get(),
        space: world.one.id.get(),
        utcb_location: !0,
    };
    let made = in_form(world.one, &own, Form::Any);
    assert_eq!(because(made), Some(CallError::InvalidScheduler));
    // The chief does.
    assert!(schedule(world.root, &request).is_ok());
    assert_eq!(below.quantum_left_us.get(), 1000);
}

#[test]
fn who_is_out_of_time_is_not_freed_by_its_own_task() {
    use abi::syscall::exregs as bit;
    use kernel::ipc::Kind;
    use kernel::thread::exregs::{Registers, exchange_registers};
    use kernel::thread::tcb::Resume;
    let world = World::new();
    world.limits(world.one, Ceilings { quantum: Time::micros(1000), ..LOW });
    let helper = make(id(FIRST + 5, 1), world.spaces[0], 5, ThreadId::NIL);
    helper.quantum_left_us.set(500);
    rank(helper, 50);
    helper.timeslice_us.set(10_000);
    world.one.quantum_left_us.set(0);
    [world.root, world.two].into_iter().for_each(|thread| rank(thread, 10));
    set_current(world.one);
    kernel::sched::grant_slice(world.one);
    world.one.resume.set(Resume::Frame);
    let _ = kernel::sched::tick::tick(world.one);
    assert_eq!(world.one.kind.get(), Kind::Preemption);
    set_current(helper);
    let control = bit::ABORT_RECEIVE | bit::ABORT_SEND | bit::HALT_VALID;
    let frees = Registers { control, ..Registers::default() };
    assert!(exchange_registers(helper, world.one.id.get(), &frees).is_some());
    assert_eq!(world.one.kind.get(), Kind::Preemption);
    set_current(world.root);
    assert!(exchange_registers(world.root, world.one.id.get(), &frees).is_some());
    assert_eq!(world.one.kind.get(), Kind::User);
}

#[test]
fn a_quantum_that_is_used_up_pays_no_more_for_partners() {
    let world = World::new();
    world.one.quantum_left_us.set(0);
    set_current(world.one);
    kernel::sched::grant_slice(world.one);
    set_current(world.two);
    let _ = kernel::sched::tick::tick(world.two);
    assert!(cpu().scheduler.slice_owner.get() != Some(world.one));
    for thread in [world.one, world.two] {
        cpu().scheduler.ready.insert(thread);
    }
}

#[test]
fn partners_delay_no_longer_than_one_of_them() {
    use abi::utcb::PREEMPT_DELAY;
    let world = World::new();
    let (first, second, urgent) = (world.one, world.two, world.root);
    for thread in [first, second] {
        registers(thread).set_flags(PREEMPT_DELAY);
        thread.max_delay_us.set(5_000);
        thread.sensitive_priority.set(255);
    }
    rank(urgent, 200);
    let scheduler = &cpu().scheduler;
    set_current(first);
    kernel::sched::grant_slice(first);
    assert!(kernel::sched::tick::reschedule(first) == first, "the first delays");
    assert_ne!(scheduler.delayed_since_us.get(), 0);
    // All of it passes; then a message hands the processor over.
    kernel::clock::PAGE.offset_us.fetch_add(5_002, Ordering::Relaxed);
    set_current(second);
    assert!(kernel::sched::tick::reschedule(second) == urgent, "the second delays once more");
}

#[test]
fn thread_switch_does_not_pass_a_delay_on() {
    let world = World::new();
    rank(world.root, 200);
    set_current(world.one);
    cpu().scheduler.delayed_since_us.set(1);
    let next = schedule::thread_switch(world.one, world.two.id.get());
    assert!(next == world.root);
}

#[test]
fn inspect_tells_a_task_about_its_own_clan() {
    let world = World::new();
    assert!(create(world.one, id(FIRST + 2, 1)).is_ok());
    let ask = |caller: TcbRef, what: inspect::What, index: u64| {
        set_current(caller);
        let frame = caller.frame();
        frame.rdi.set(what as u64);
        frame.rsi.set(index);
        frame.rdx.set(0);
        kernel::inspect::call(caller, frame);
        (frame.rax.get() == 1).then(|| (frame.rdx.get(), frame.rsi.get()))
    };
    let first = |caller, index| ask(caller, inspect::What::Thread, index).map(|words| words.0);
    assert_eq!(first(world.one, 0), Some(world.one.id.get().0));
    assert_eq!(first(world.one, 902), Some(id(FIRST + 2, 1).0), "902 is another's");
    assert_eq!(first(world.one, u64::from(FIRST) + 3), None);
    assert_eq!(first(world.root, 902), Some(world.two.id.get().0));
    assert!(ask(world.one, inspect::What::Kernel, 0).is_none());
    assert!(ask(world.one, inspect::What::Time, world.two.id.get().0).is_none());
    assert!(ask(world.one, inspect::What::Time, world.one.id.get().0).is_some());
    let number = |caller, index: u32| ask(caller, inspect::What::Number, index.into());
    assert_eq!(number(world.one, FIRST + 2), Some((id(FIRST + 2, 1).0, 1)));
    assert_eq!(number(world.one, FIRST + 3), Some((0, 0)));
    assert_eq!(number(world.one, FIRST + 16), None);
}

#[test]
fn the_checker_knows_the_limits() {
    let _ = (UTCBS, utcb::SIZE);
    let world = World::new();
    world.limits(world.one, LOW);
    assert_eq!(check::violations(), 0);
    world.one.priority.set(51);
    assert_ne!(check::violations(), 0);
    world.one.priority.set(50);
    let numbers = world.spaces[0].numbers();
    world.spaces[0].task.limits.numbers.set(Numbers { first: 1, count: 5 });
    assert_ne!(check::violations(), 0);
    world.spaces[0].task.limits.numbers.set(numbers);
}
