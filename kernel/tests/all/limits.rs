//! What a chief gives a task: thread numbers that nobody else touches, ids that never come
//! back, ceilings that no thread of the task gets above.

use crate::common::clan::*;
use abi::{CallError, Ceilings, Numbers, ThreadId, inspect};
use kernel::arch::{SYSTEM_CALL_BYTES, cpu};
use kernel::check;
use kernel::control::lifecycle;
use kernel::control::schedule::{self, schedule};
use kernel::control::thread_control::{Form, Request, in_form};
use kernel::space::task_control::{Gift as Limits, task_control};
use kernel::thread::{TcbRef, last_version, lookup, lookup_number, set_current};

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
        let request = schedule::Change { dest, ..asks(world.two) };
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
    let quota = |dest| because(kernel::space::quota_control::quota_control(world.one, dest, 0));
    assert_eq!(quota(there), quota(nobody));
    let limits = |specifier| {
        let request = Limits { specifier, numbers: UNCHANGED, ceilings: UNCHANGED };
        because(task_control(world.one, &request, kernel::control::ceiling::lower))
    };
    assert_eq!(limits(there), limits(nobody));
    let areas = |dest| {
        let nil = abi::Fpage::NIL;
        because(kernel::space::space_control::space_control(world.one, dest, nil, nil))
    };
    assert_eq!(areas(there), areas(nobody));
    let state = |dest| because(kernel::control::foreign::thread_state(world.one, dest, 1, 0));
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

#[test]
fn inspect_tells_a_task_about_its_own_clan() {
    let world = World::new();
    assert!(create(world.one, id(FIRST + 2, 1)).is_ok());
    let ask = |caller: TcbRef, what: inspect::What, index: u64| {
        set_current(caller);
        let frame = caller.frame();
        frame.make_call(0, [what as u64, index, 0, 0, 0]);
        kernel::inspect::call(caller, frame);
        let [result, first, second] = frame.results();
        (result == 1).then_some((first, second))
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
fn inspect_is_made_again_after_an_interrupt() {
    const LINE: u32 = 7;
    let world = World::new();
    let frame = world.one.frame();
    let ask = |what: inspect::What, index: u64| {
        set_current(world.one);
        frame.make_call(0, [what as u64, index, 0, 0, 0]);
        let ip = frame.ip.get();
        kernel::inspect::call(world.one, frame);
        if frame.ip.get() == ip {
            return Err(frame.results()[0]);
        }
        assert_eq!(frame.ip.get(), ip.wrapping_sub(SYSTEM_CALL_BYTES));
        let [again, rest, others @ ..] = frame.arguments();
        assert_eq!((again, others), (what as u64, [0; 3]), "the call is the same");
        Ok(rest)
    };
    cpu().interrupt.set(Some((0, LINE)));
    let rest = ask(inspect::What::Thread, u64::from(FIRST) + 3).expect("an interrupt came");
    assert!(rest > u64::from(FIRST) + 3, "the search goes on where it was");
    assert_eq!(ask(inspect::What::Space, 1), Ok(1), "not handled yet");
    cpu().pending_lines.set(0);
    assert_eq!(ask(inspect::What::Thread, rest), Err(0));
    assert_eq!(ask(inspect::What::Space, 0), Err(1));
}

#[test]
fn the_checker_knows_the_limits() {
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
