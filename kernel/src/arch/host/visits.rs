//! Other processors on the host: a test plays them.

use std::cell::Cell;

use super::super::processor::frame::TrapFrame;
use super::threads::TcbRef;
use crate::between::berth::Berth;
use crate::sched::elsewhere::Other;

/// How many there can be.
const MOST: usize = 4;
/// The vector of the interrupt by which a processor is told to look.
pub const INTERRUPT: u64 = TrapFrame::HELLO;

thread_local! {
    static COUNT: Cell<u32> = const { Cell::new(1) };
    static OTHERS: &'static [(Other, Berth); MOST] =
        Box::leak(Box::new([const { (Other::new(), Berth::new()) }; MOST]));
    static INTERRUPTS: Cell<u64> = const { Cell::new(0) };
}

/// How many processors run.
#[must_use]
pub fn processors() -> u32 {
    COUNT.with(Cell::get)
}

/// The machine has `count` processors.
pub fn set_processors(count: u32) {
    COUNT.with(|cell| cell.set(count));
}

/// Interrupts that other processors have got.
#[must_use]
pub fn interrupts() -> u64 {
    INTERRUPTS.with(Cell::get)
}

/// What the first processor keeps of number `number`.
#[must_use]
pub fn other(number: u32) -> Option<&'static Other> {
    let exists = (1..processors()).contains(&number);
    exists.then(|| OTHERS.with(|others| &others[number as usize % MOST].0))
}

/// The berth of number `number`.
#[must_use]
pub fn berth(number: u32) -> &'static Berth {
    OTHERS.with(|others| &others[number as usize % MOST].1)
}

/// Interrupts number `number`: the test sees to it.
pub fn interrupt(_number: u32) {
    INTERRUPTS.with(|count| count.set(count.get() + 1));
}

/// What names `thread` in a berth.
#[must_use]
pub fn name(thread: TcbRef) -> u64 {
    thread.address()
}

/// The visitor of number `number`, which that accepts, if one may come.
#[must_use]
pub fn accept(number: u32) -> Option<TcbRef> {
    berth(number).accept().map(thread)
}

fn thread(name: u64) -> TcbRef {
    // SAFETY: `name` has made it, and blocks live as long as the process.
    unsafe { TcbRef::from_address(name) }
}

/// The visitor of number `number` enters by `vector`.
pub fn enter(number: u32, vector: u64) {
    let berth = berth(number);
    thread(berth.visitor()).frame().vector.set(vector);
    berth.give_back();
}

/// Number `number` has been interrupted and gives its visitor back.
pub fn wait(number: u32, done: impl Fn() -> bool) {
    if !done() {
        enter(number, INTERRUPT);
        assert!(done(), "an interrupted processor gives its visitor back");
    }
}

/// Entries that a thread has made elsewhere are the test's to make.
pub fn entered(thread: TcbRef) -> TcbRef {
    thread.resume.set(crate::thread::tcb::Resume::Frame);
    thread
}
