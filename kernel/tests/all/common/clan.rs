//! A root task with two ordinary tasks below it, and what they ask of the kernel.

use abi::{CallError, Ceilings, Numbers, ThreadId, Time};
use kernel::arch::cpu;
use kernel::check;
use kernel::control::schedule;
use kernel::control::thread_control::{After, Form, Request, in_form};
use kernel::space::SpaceRef;
use kernel::space::task_control::{Gift as Limits, task_control};
use kernel::thread::{TcbRef, set_current};

use super::Machine;
use super::tasks::{machine, make};

pub const FIRST: u32 = 1000;
pub const UNCHANGED: u64 = !0;

/// A root task with two ordinary tasks below it, a thread in each; the first owns
/// 16 numbers, the second the 16 behind them.
pub struct World {
    _machine: Machine,
    pub spaces: Vec<SpaceRef>,
    pub root: TcbRef,
    pub one: TcbRef,
    pub two: TcbRef,
}

impl World {
    pub fn new() -> Self {
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

    pub fn gives_numbers(&self, to: TcbRef, first: u32) -> Result<(), CallError> {
        control(self.root, to, Numbers { first, count: 16 }.word(), UNCHANGED).map(|_| ())
    }

    pub fn limits(&self, task: TcbRef, ceilings: Ceilings) {
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

pub fn control(
    caller: TcbRef,
    of: TcbRef,
    numbers: u64,
    ceilings: u64,
) -> Result<(Numbers, Ceilings), CallError> {
    set_current(caller);
    let request = Limits { specifier: of.id.get(), numbers, ceilings };
    task_control(caller, &request, kernel::control::ceiling::lower)
}

/// Gives a ready thread another priority.
pub fn rank(thread: TcbRef, priority: u8) {
    cpu().scheduler.ready.remove(thread);
    thread.priority.set(priority);
    cpu().scheduler.ready.insert(thread);
}

pub fn id(number: u32, version: u32) -> ThreadId {
    ThreadId::global(number, version)
}

/// ThreadControl on `dest` in the space of `space`, which is the caller's scheduler's.
pub fn call(
    caller: TcbRef,
    dest: ThreadId,
    space: ThreadId,
    form: Form,
) -> Result<After, CallError> {
    set_current(caller);
    let scheduler = if space.is_nil() { ThreadId::NIL } else { caller.scheduler.get() };
    let request = Request { dest, pager: ThreadId::NIL, scheduler, space, utcb_location: !0 };
    in_form(caller, &request, form)
}

pub fn create(caller: TcbRef, dest: ThreadId) -> Result<After, CallError> {
    call(caller, dest, caller.id.get(), Form::Any)
}

pub fn delete(caller: TcbRef, dest: ThreadId) -> Result<After, CallError> {
    call(caller, dest, ThreadId::NIL, Form::Any)
}

pub fn because<T>(result: Result<T, CallError>) -> Option<CallError> {
    result.err()
}

pub fn asks(dest: TcbRef) -> schedule::Change {
    let unchanged = UNCHANGED;
    schedule::Change {
        dest: dest.id.get(),
        priority: unchanged,
        time: unchanged,
        processor: unchanged,
        preemption: unchanged,
    }
}

/// Ceilings as the root task gives them to an ordinary task.
pub const LOW: Ceilings =
    Ceilings { priority: 50, slice: Time::micros(10_000), quantum: Time::NEVER, delay_us: 0 };
