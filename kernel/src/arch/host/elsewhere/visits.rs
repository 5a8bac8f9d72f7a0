//! Other processors on the host: a test plays them.

use std::cell::Cell;

use abi::ThreadId;

use crate::arch::host::thread::{TcbRef, spare_block};
use crate::arch::processor::frame::TrapFrame;
use crate::between::SEATS;
use crate::between::berth::{Berth, Stand};
use crate::elsewhere::Other;
use crate::mem::{PhysFrame, RootWord, SpaceRef};
use crate::thread::LinkagesRef;
use crate::thread::rendezvous::{Busy, busy_word, set_busy};

/// How many there can be.
const MOST: usize = 8;
/// The vector of the interrupt by which a processor is told to look.
pub const INTERRUPT: u64 = TrapFrame::HELLO;

thread_local! {
    static COUNT: Cell<u32> = const { Cell::new(1) };
    static OTHERS: &'static [(Other, Berth); MOST] =
        Box::leak(Box::new([const { (Other::new(), Berth::new()) }; MOST]));
    static INTERRUPTS: Cell<u64> = const { Cell::new(0) };
    static SHADOWS: [[TcbRef; SEATS]; MOST] =
        core::array::from_fn(|_| core::array::from_fn(|_| spare_block()));
    static FRAMES: [[Cell<[Option<PhysFrame>; 2]>; SEATS]; MOST] =
        const { [const { [const { Cell::new([None; 2]) }; SEATS] }; MOST] };
    static TOGETHER: [Cell<bool>; MOST] = const { [const { Cell::new(false) }; MOST] };
}

/// Threads can meet there.
#[must_use]
pub fn may_meet() -> bool {
    true
}

/// The shadow in `seat` of processor `number`.
#[must_use]
pub fn shadow(number: u32, seat: usize) -> TcbRef {
    SHADOWS.with(|shadows| shadows[number as usize % MOST][seat % SEATS])
}

/// The block of `seat` is in `frame`, as it were: a test sees the shadow in another one.
pub fn put_up(number: u32, seat: usize, frame: PhysFrame) {
    let frames = frames_of_seat(number, seat);
    set_frames(number, seat, [Some(frame), frames[1]]);
}

/// `seat` has no block any more: its frame.
pub fn take_down(number: u32, seat: usize) -> Option<PhysFrame> {
    let shadow = shadow(number, seat);
    shadow.id.set(ThreadId::NIL);
    set_busy(shadow, Busy::Halted);
    let [block, page] = frames_of_seat(number, seat);
    set_frames(number, seat, [None, page]);
    block
}

/// Whether `seat` has a block.
#[must_use]
pub fn is_up(number: u32, seat: usize) -> bool {
    frames_of_seat(number, seat)[0].is_some()
}

/// Where the copies of linkage records of whoever has `seat` are, if anywhere.
#[must_use]
pub fn linkages(number: u32, seat: usize) -> Option<LinkagesRef> {
    frames_of_seat(number, seat)[1].map(LinkagesRef::new)
}

/// From now on they are in `page`, which is full of zeros.
pub fn put_up_linkages(number: u32, seat: usize, page: PhysFrame) {
    let [block, _] = frames_of_seat(number, seat);
    set_frames(number, seat, [block, Some(page)]);
}

/// From now on they are nowhere: the frame in which they were.
pub fn take_linkages(number: u32, seat: usize) -> Option<PhysFrame> {
    let [block, page] = frames_of_seat(number, seat);
    set_frames(number, seat, [block, None]);
    page
}

/// The frames of `seat`: its block, and the page for copies of linkage records.
#[must_use]
pub fn frames_of_seat(number: u32, seat: usize) -> [Option<PhysFrame>; 2] {
    FRAMES.with(|frames| frames[number as usize % MOST][seat % SEATS].get())
}

fn set_frames(number: u32, seat: usize, own: [Option<PhysFrame>; 2]) {
    FRAMES.with(|frames| frames[number as usize % MOST][seat % SEATS].set(own));
}

/// Everybody can be seen there.
#[must_use]
pub fn show(_number: u32, _seat: usize, _thread: u32) -> bool {
    true
}

/// There is room for all spaces.
#[must_use]
pub fn room(_number: u32, space: SpaceRef) -> Option<RootWord> {
    Some(RootWord::of_kernel(space.root().table().address()))
}

/// Whoever comes to processor `number` next is alone.
pub fn alone(number: u32) {
    TOGETHER.with(|together| together[number as usize % MOST].set(false));
}

/// Whoever comes to processor `number` next is not.
pub fn together(number: u32, _seat: usize) {
    TOGETHER.with(|together| together[number as usize % MOST].set(true));
}

/// Copies the registers of `from` to `to`.
pub fn copy_frame(from: TcbRef, to: TcbRef) {
    let (from, to): (*const TrapFrame, *const TrapFrame) = (from.frame(), to.frame());
    // SAFETY: both are frames of blocks, which are cells.
    unsafe { core::ptr::copy_nonoverlapping(from, to.cast_mut(), 1) };
}

/// The shadow that runs on processor `number`, if its visitor is not alone.
#[must_use]
pub fn runs(number: u32) -> Option<TcbRef> {
    let together = TOGETHER.with(|together| together[number as usize % MOST].get());
    let is_ready = |it: &TcbRef| it.rendezvous.get() == busy_word(it.id.get(), Busy::Ready);
    together.then(|| (0..SEATS).map(|seat| shadow(number, seat)).find(is_ready)).flatten()
}

/// The numbers of those of whom something is kept here.
#[must_use]
pub fn kept() -> core::ops::Range<u32> {
    1..processors()
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

/// Interrupts number `number`, whose visitor is to stop.
pub fn interrupt_to_stop(number: u32) {
    interrupt(number);
}

/// Number `number` has been interrupted, and its visitor stops.
pub fn wait_for_stop(number: u32) {
    assert_eq!(berth(number).stand(), Stand::Still, "who is to stop stands still");
    assert!(berth(number).stands_still());
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
    runs(number).unwrap_or_else(|| thread(berth.visitor())).frame().vector.set(vector);
    // The test looks.
    let _ = berth.give_back();
}

/// Number `number` has been interrupted and gives its visitor back.
pub fn wait(number: u32, done: &dyn Fn() -> bool) {
    if !done() {
        enter(number, INTERRUPT);
        assert!(done(), "an interrupted processor gives its visitor back");
    }
}

/// There are no paths in which a thread could be.
pub fn mend(_thread: TcbRef) {}

/// Where threads that have handed over go on: nobody looks, for there are no stubs.
#[must_use]
pub fn completion_point() -> u64 {
    0x1000
}
