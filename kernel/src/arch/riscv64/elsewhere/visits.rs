//! Other processors: none is started.

use crate::between::berth::Berth;
use crate::elsewhere::Other;
use crate::mem::{PhysFrame, RootWord, SpaceRef};
use crate::thread::{LinkagesRef, TcbRef, current};

static NOBODY: Berth = Berth::new();

/// The numbers of those of whom something is kept here.
#[must_use]
pub fn kept() -> core::ops::Range<u32> {
    1..processors()
}

/// How many processors run.
#[must_use]
pub fn processors() -> u32 {
    1
}

/// There is no other.
#[must_use]
pub fn other(_number: u32) -> Option<&'static Other> {
    None
}

/// There is no other: nobody is ever there.
#[must_use]
pub fn berth(_number: u32) -> &'static Berth {
    &NOBODY
}

/// There is no other.
pub fn interrupt(_number: u32) {}

/// There is no other.
pub fn interrupt_to_stop(_number: u32) {}

/// There is nobody to wait for.
pub fn wait_for_stop(_number: u32) {}

/// What would name `thread` in a berth.
#[must_use]
pub fn name(thread: TcbRef) -> u64 {
    thread.id.get().0
}

/// There is nobody to wait for.
pub fn wait(_number: u32, _done: &dyn Fn() -> bool) {}

/// There is nowhere to meet.
#[must_use]
pub fn may_meet() -> bool {
    false
}

/// There is no other, and no seat: nobody asks.
#[must_use]
pub fn shadow(_number: u32, _seat: usize) -> TcbRef {
    current()
}

/// There is no other, and no seat.
#[must_use]
pub fn is_up(_number: u32, _seat: usize) -> bool {
    false
}

/// There is no other, and no seat: nobody asks.
pub fn put_up(_number: u32, _seat: usize, _frame: PhysFrame) {}

/// There is no other, and no seat.
pub fn take_down(_number: u32, _seat: usize) -> Option<PhysFrame> {
    None
}

/// There is no other, and no page.
#[must_use]
pub fn linkages(_number: u32, _seat: usize) -> Option<LinkagesRef> {
    None
}

/// There is no other, and no seat: nobody asks.
pub fn put_up_linkages(_number: u32, _seat: usize, _page: PhysFrame) {}

/// There is no other, and no page.
pub fn take_linkages(_number: u32, _seat: usize) -> Option<PhysFrame> {
    None
}

/// There is no other, and no seat.
#[must_use]
pub fn frames_of_seat(_number: u32, _seat: usize) -> [Option<PhysFrame>; 2] {
    [None; 2]
}

/// There is no other.
#[must_use]
pub fn show(_number: u32, _seat: usize, _thread: u32) -> bool {
    false
}

/// There is no other.
#[must_use]
pub fn room(_number: u32, _space: SpaceRef) -> Option<RootWord> {
    None
}

/// There is no other.
pub fn alone(_number: u32) {}

/// There is no other.
pub fn together(_number: u32, _seat: usize) {}

/// There is no other.
pub fn copy_frame(_from: TcbRef, _to: TcbRef) {}

/// No thread comes back.
pub fn mend(_thread: TcbRef) {}

/// Nobody hands over.
#[must_use]
pub fn completion_point() -> u64 {
    0
}
