//! Threads and spaces under test: ids, UTCB slots, stacks, and the memory that
//! they share with the main thread.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use abi::id::USER_BASE;
use abi::inspect::What;
use abi::layout::{INITIAL_KIP, INITIAL_UTCB_AREA};
use abi::{Fpage, Numbers, Rights, ThreadId};
use runtime::space::Fault;
use runtime::{Msg, ipc, kernel, layout, schedule};

use crate::machine;
use crate::report::{Outcome, because};
use crate::{check, same};

/// Log2 size of a child's UTCB area: 16 UTCBs.
pub const CHILD_UTCB_BITS: u32 = 14;
/// Bytes of a stack.
pub const STACK: u64 = 16384;
const STACKS: usize = 16;
const ROOT_SLOTS: u64 = 256;

#[repr(C, align(4096))]
struct Stacks([[u8; STACK as usize]; STACKS]);
static STACK_POOL: Stacks = Stacks([[1; STACK as usize]; STACKS]);

/// Thread numbers go round in this range, with a new version each time: the kernel
/// keeps the tables of tcb blocks that were once used.
const NUMBERS: u32 = 256;
const FIRST_NUMBER: u32 = USER_BASE + 16;
/// Numbers for tasks that make threads themselves, a block for each.
const BLOCKS: u32 = 32;
const BLOCK: u32 = 64;
const FIRST_BLOCK: u32 = FIRST_NUMBER + NUMBERS;
static NEXT_BLOCK: AtomicU32 = AtomicU32::new(0);
static CREATED: AtomicU32 = AtomicU32::new(0);
static NEXT_STACK: AtomicU64 = AtomicU64::new(0);
/// Bit set per UTCB slot of the root space.
static ROOT_USED: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

unsafe extern "C" {
    fn baton_thread_start();
}

/// Makes every block of thread numbers known.
pub fn init() {
    ROOT_USED[0].store(1, Ordering::Relaxed);
    for number in (0..NUMBERS + BLOCKS * BLOCK).step_by(BLOCK as usize) {
        let id = ThreadId::global(FIRST_NUMBER + number, 63);
        let _ = kernel::create(id, id, ThreadId::ROOT, !0);
        let _ = kernel::delete(id);
    }
}

/// A thread id that no thread has, and none ever had.
#[must_use]
pub fn fresh() -> ThreadId {
    loop {
        let count = CREATED.fetch_add(1, Ordering::Relaxed);
        let number = FIRST_NUMBER + count % NUMBERS;
        let taken = kernel::inspect(What::Thread, u64::from(number), 0)
            .is_some_and(|words| ThreadId(words[0]).number() == number);
        if !taken {
            return ThreadId::global(number, count / NUMBERS << 6 | 1);
        }
    }
}

/// Gives the task of `member` `count` thread numbers, 63 at most, that nobody ever had.
pub fn own_numbers(member: ThreadId, count: u32) -> Outcome<Numbers> {
    let block = NEXT_BLOCK.fetch_add(1, Ordering::Relaxed);
    check!(block < BLOCKS && count < BLOCK, "there are no {count} numbers left for a task");
    // The first of each block was used by `init`.
    let numbers = Numbers { first: FIRST_BLOCK + block * BLOCK + 1, count };
    because(kernel::limit(member, Some(numbers), None), "giving a task thread numbers")?;
    Ok(numbers)
}

/// A free UTCB location of the root space.
#[must_use]
pub fn root_slot() -> u64 {
    for slot in 0..ROOT_SLOTS {
        let (word, bit) = ((slot / 64) as usize, 1 << (slot % 64));
        if ROOT_USED[word].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            return INITIAL_UTCB_AREA + slot * 1024;
        }
    }
    !0
}

fn release_slot(pointer: u64) {
    let slot = pointer.wrapping_sub(INITIAL_UTCB_AREA) / 1024;
    if slot < ROOT_SLOTS {
        ROOT_USED[(slot / 64) as usize].fetch_and(!(1 << (slot % 64)), Ordering::Relaxed);
    }
}

/// The top of the next stack; the pool goes round, so few threads may run at a time.
#[must_use]
pub fn stack_top() -> u64 {
    let index = NEXT_STACK.fetch_add(1, Ordering::Relaxed) % STACKS as u64;
    STACK_POOL.0.as_ptr() as u64 + (index + 1) * STACK
}

/// Creates an inactive thread in a space of its own with KIP and UTCB areas at
/// the usual addresses.
pub fn new_space() -> Outcome<ThreadId> {
    let id = fresh();
    because(kernel::create(id, id, ThreadId::ROOT, !0), "creating a space")?;
    let kip = Fpage::memory(INITIAL_KIP, 12, Rights::NONE);
    let utcbs = Fpage::memory(INITIAL_UTCB_AREA, CHILD_UTCB_BITS, Rights::NONE);
    because(kernel::configure_space(id, kip, utcbs), "SpaceControl")?;
    Ok(id)
}

/// Creates an active thread in a space of its own; it waits for its start message.
pub fn new_task() -> Outcome<ThreadId> {
    let id = new_space()?;
    because(kernel::set_pager(id, id, ThreadId::ROOT, INITIAL_UTCB_AREA), "activating a thread")?;
    Ok(id)
}

/// Creates a further active thread in the space of `member`, with UTCB number `slot`.
pub fn new_member(member: ThreadId, slot: u64) -> Outcome<ThreadId> {
    let id = fresh();
    let location = INITIAL_UTCB_AREA + slot * 1024;
    because(
        kernel::create_active(id, member, ThreadId::ROOT, ThreadId::ROOT, location),
        "creating a member",
    )?;
    Ok(id)
}

/// Creates an active thread in this space.
pub fn new_local() -> Outcome<ThreadId> {
    let id = fresh();
    let made =
        kernel::create_active(id, ThreadId::ROOT, ThreadId::ROOT, ThreadId::ROOT, root_slot());
    because(made, "creating a thread in the root space")?;
    Ok(id)
}

/// Sends a start message.
pub fn start_at(id: ThreadId, ip: u64, sp: u64) -> Outcome {
    because(
        ipc::send_within(id, &Msg::new(0).word(ip).word(sp), abi::Time::micros(50_000)),
        "the start message",
    )
}

/// Starts `id` at `body` with `argument` on a stack of the pool.
pub fn start(id: ThreadId, body: extern "C" fn(u64) -> !, argument: u64) -> Outcome {
    let sp = stack_top() - 64;
    machine::write(sp, argument);
    machine::write(sp + 8, body as usize as u64);
    start_at(id, baton_thread_start as *const () as u64, sp)
}

/// Starts `body` in a new thread of this space.
pub fn spawn(body: extern "C" fn(u64) -> !, argument: u64) -> Outcome<ThreadId> {
    let id = new_local()?;
    start(id, body, argument)?;
    Ok(id)
}

/// Deletes a thread, and frees its UTCB slot if it was in this space.
pub fn delete(id: ThreadId) -> Outcome {
    let local = runtime::thread::other_id(id);
    let own = kernel::inspect(What::Thread, u64::from(id.number()), 0).map(|words| words[2])
        == Some(root_space());
    because(kernel::delete(id), "deleting a thread")?;
    if let (true, Some(local)) = (own, local) {
        release_slot(local.0);
    }
    Ok(())
}

/// The root space's id in the kernel's records.
#[must_use]
pub fn root_space() -> u64 {
    kernel::inspect(What::Thread, u64::from(ThreadId::ROOT.number()), 0)
        .map_or(!0, |words| words[2])
}

/// The state of `id` in the kernel's records (`abi::inspect::state`), !0 if there is none.
#[must_use]
pub fn state(id: ThreadId) -> u64 {
    match kernel::inspect(What::Thread, u64::from(id.number()), 0) {
        Some(words) if words[0] == id.0 => words[1],
        _ => !0,
    }
}

/// Answers `fault` with the same page if it is in this program's image.
#[must_use]
pub fn image_page(fault: &Fault, rights: Rights) -> Option<Msg> {
    let (low, high) = layout::image();
    (low..high).contains(&fault.address).then(|| fault.same_page(rights))
}

/// The kernel's checker finds nothing wrong.
pub fn sound() -> Outcome {
    let record = kernel::inspect(What::Check, 0, 0);
    check!(record.is_some(), "the checker cannot be asked");
    same!("the number of violations the checker found", record.unwrap_or_default()[0], 0);
    Ok(())
}

/// Leaves nothing of a test: deletes every thread, takes every UTCB slot back.
pub fn reset() {
    sweep(&[]);
    ROOT_USED.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    ROOT_USED[0].store(1, Ordering::Relaxed);
    let _ = schedule::set_priority(ThreadId::ROOT, 255);
}

/// Deletes every thread but the initial ones and `keep`.
pub fn sweep(keep: &[ThreadId]) {
    let mut number = u64::from(USER_BASE + 3);
    while let Some(words) = kernel::inspect(What::Thread, number, 0) {
        let id = ThreadId(words[0]);
        number = u64::from(id.number()) + 1;
        if !keep.contains(&id) {
            let _ = kernel::delete(id);
        }
    }
}
