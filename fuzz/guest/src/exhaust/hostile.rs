//! What all exhausting tasks have in common: ids, memory, how they are made and how they
//! make others. All run in spaces of their own with this program's memory at the same
//! addresses, which is how they count what they got.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use abi::id::USER_BASE;
use abi::layout::{INITIAL_KIP, INITIAL_UTCB_AREA};
use abi::{CallError, Fpage, Numbers, Rights, ThreadId, Time};
use runtime::{Msg, clock, ipc, kernel, kip, schedule, thread};

use super::turns::Turn;
use crate::machine;

/// Priority of threads that nobody gave another (X.2 5.5).
pub const PRIORITY: u8 = 100;
/// Log2 size of a hostile task's UTCB area: 128 threads.
pub const UTCB_BITS: u32 = 17;
/// The hostile task's first thread, and where the numbers of those that it makes begin.
pub const FIRST: u32 = USER_BASE + 256;
/// How many numbers it has for them.
pub const CHILDREN: u32 = 3072;
/// Rounds after which one that loops looks whether its turn is over.
const ROUNDS: u64 = 16;
/// Words of a stack.
const STACK_WORDS: usize = 512;

/// A thread's stack.
pub type Stack = [AtomicU64; STACK_WORDS];

/// An empty one.
pub const fn stack() -> Stack {
    [const { AtomicU64::new(0) }; STACK_WORDS]
}

/// Stacks of the hostile task's threads.
pub static STACKS: [Stack; 128] = [const { stack() }; 128];
/// What it got, and how often it was refused something.
pub static MADE: AtomicU64 = AtomicU64::new(0);
pub static REFUSED: AtomicU64 = AtomicU64::new(0);
/// Refusals for another reason than memory, and the latest reason.
pub static ODD: AtomicU64 = AtomicU64::new(0);

/// The processor of the task's first thread, and whether those that it makes are on all of them.
static SEAT: AtomicU32 = AtomicU32::new(0);
static IS_SPREAD: AtomicBool = AtomicBool::new(false);

/// The task's first thread is on processor `seat`; those that it makes are there, too, or spread.
pub fn settle(seat: u32, is_spread: bool) {
    SEAT.store(seat, Relaxed);
    IS_SPREAD.store(is_spread, Relaxed);
}

/// The processor of the first thread.
pub fn seat() -> u32 {
    SEAT.load(Relaxed)
}

/// The processor of the thread with this number, of those that the first one makes: two and two on the same.
pub fn home(number: u32) -> u32 {
    if IS_SPREAD.load(Relaxed) { number / 2 % kip::get().processors() } else { seat() }
}

/// Puts `id` on `processor`; where that is refused nothing is tested.
pub fn place(id: ThreadId, processor: u32) {
    if kip::get().processors() > 1 && schedule::set_processor(id, processor).is_err() {
        ODD.fetch_add(1 << 8, Relaxed);
    }
}

/// Counts the outcome of one attempt; whether it succeeded.
pub fn count(result: kernel::Result<()>) -> bool {
    match result {
        Ok(()) => MADE.fetch_add(1, Relaxed),
        Err(CallError::NoMemory) => REFUSED.fetch_add(1, Relaxed),
        Err(other) => ODD.fetch_add(1 << 8 | other as u64, Relaxed),
    };
    result.is_ok()
}

/// The number of child `index`.
pub const fn number(index: u32) -> u32 {
    FIRST + 1 + index % CHILDREN
}

/// An id for a new thread with this number: newer than any that the number had.
pub fn fresh(number: u32) -> ThreadId {
    let last = kernel::number(number).map_or(0, |(_, last)| last);
    ThreadId::global(number, ((last >> 6) + 1) << 6 | 1)
}

/// The numbers of a hostile task.
pub const NUMBERS: Numbers = Numbers { first: FIRST, count: 1 + CHILDREN + 64 };

/// Makes `id` the first thread of a new space with areas for 2^`utcb_bits` bytes of
/// UTCBs; it waits for the caller's start message.
pub fn make_space(id: ThreadId, utcb_bits: u32) -> kernel::Result<()> {
    let me = thread::me();
    kernel::create(id, id, me, !0)?;
    let kip = Fpage::memory(INITIAL_KIP, 12, Rights::NONE);
    let utcbs = Fpage::memory(INITIAL_UTCB_AREA, utcb_bits, Rights::NONE);
    let made = kernel::configure_space(id, kip, utcbs)
        .and_then(|()| kernel::set_pager(id, id, me, INITIAL_UTCB_AREA));
    if made.is_err() {
        let _ = kernel::delete(id);
    }
    made
}

/// Makes thread `index` of the caller's space, with the UTCB of that number.
pub fn make_thread(id: ThreadId, index: u32) -> kernel::Result<()> {
    let me = thread::me();
    let location = INITIAL_UTCB_AREA + u64::from(index) * abi::utcb::SIZE;
    kernel::create_active(id, me, me, me, location)
}

/// Starts a thread whose pager the caller is; from now on the root task answers its faults.
pub fn start(id: ThreadId, stack: &'static Stack, body: extern "C" fn(u64) -> !, argument: u64) {
    let at = STACK_WORDS - 8;
    stack[at].store(argument, Relaxed);
    stack[at + 1].store(body as usize as u64, Relaxed);
    let sp = &raw const stack[at] as u64;
    let _ = kernel::set_pager(id, id, ThreadId::ROOT, !0);
    let msg = Msg::new(0).word(machine::start_address()).word(sp);
    let _ = ipc::send_within(id, &msg, Time::micros(100_000));
}

/// Makes and starts thread `index` > 0 of the caller's space.
pub fn spawn(index: u32, body: extern "C" fn(u64) -> !, argument: u64) -> ThreadId {
    let id = fresh(number(index));
    if count(make_thread(id, index)) {
        place(id, home(id.number()));
        start(id, &STACKS[index as usize % STACKS.len()], body, argument);
    }
    id
}

/// Makes and starts a task with its own space on stack `index` > 0, which gets `quota`
/// pages beyond the usual.
pub fn spawn_task(index: u32, body: extern "C" fn(u64) -> !, quota: i64) -> ThreadId {
    let id = fresh(number(index));
    if count(make_space(id, 12)) {
        let _ = kernel::move_quota(id, quota);
        place(id, home(id.number()));
        start(id, &STACKS[index as usize % STACKS.len()], body, index.into());
    }
    id
}

/// Loops for ever.
pub extern "C" fn spin(_: u64) -> ! {
    let (mut rounds, mut turn) = (0u64, Turn::begin());
    loop {
        rounds = core::hint::black_box(rounds.wrapping_add(1));
        if rounds.is_multiple_of(ROUNDS) {
            turn.look(clock::ticks());
        }
    }
}
