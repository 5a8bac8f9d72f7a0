//! Partners: threads in the root task's space or in spaces of their own, all
//! created and paged by the root task's one thread.
//!
//! A partner in a space of its own runs the same image: its pages are the root
//! task's, mapped at the same addresses when it first touches them.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use abi::layout::{INITIAL_KIP, INITIAL_UTCB_AREA};
use abi::{CallError, Fpage, MapItem, Rights, ThreadId, Time};
use runtime::space::Fault;
use runtime::{Msg, direct_println, ipc, kernel, schedule};

use crate::marks::{self, Role};

/// Log2 size of a partner space's UTCB area.
const UTCB_BITS: u32 = 14;
/// Priority of everybody, the root task included: nobody preempts anybody.
pub const PRIORITY: u8 = 200;
/// Quota of a partner's space beyond the kernel's default, pages.
const QUOTA_PAGES: i64 = 64;
/// Words of a program's stack.
const STACK_WORDS: usize = 2048;
/// Programs with stacks.
const STACKS: usize = 28;

#[repr(align(4096))]
struct Stack([AtomicU64; STACK_WORDS]);
static STACK: [Stack; STACKS] =
    [const { Stack([const { AtomicU64::new(0) }; STACK_WORDS]) }; STACKS];
static STACKS_USED: AtomicU32 = AtomicU32::new(0);

static NEXT_NUMBER: AtomicU32 = AtomicU32::new(abi::id::USER_BASE + 16);
static NEXT_UTCB: AtomicU32 = AtomicU32::new(1);

/// What went wrong, for the console.
pub type Result<T> = core::result::Result<T, &'static str>;

/// A partner.
#[derive(Clone, Copy, Debug)]
pub struct Partner {
    /// Its global id.
    pub id: ThreadId,
}

/// An id that was never used.
#[must_use]
pub fn fresh_id() -> ThreadId {
    ThreadId::global(NEXT_NUMBER.fetch_add(1, Relaxed), 1)
}

/// A sentence for a refused call.
#[must_use]
pub fn why(error: CallError) -> &'static str {
    match error {
        CallError::NoMemory => "the kernel's memory is used up; give it more (kmem=)",
        CallError::InvalidSpace => "the kernel refuses the space of a partner",
        CallError::UtcbArea => "the kernel refuses a partner's UTCB location",
        _ => "the kernel refuses to create a partner",
    }
}

/// Creates the empty space whose first thread is `id`, and activates it.
pub fn space(
    id: ThreadId,
    utcb_bits: u32,
    quota_pages: i64,
) -> core::result::Result<(), CallError> {
    kernel::create(id, id, ThreadId::ROOT, INITIAL_UTCB_AREA)?;
    kernel::move_quota(id, quota_pages)?;
    let kip = Fpage::memory(INITIAL_KIP, 12, Rights::NONE);
    kernel::configure_space(id, kip, Fpage::memory(INITIAL_UTCB_AREA, utcb_bits, Rights::NONE))?;
    kernel::set_pager(id, id, ThreadId::ROOT, !0)
}

/// A partner inside the root task's space.
pub fn inside(role: Role) -> Result<Partner> {
    let id = fresh_id();
    let location = INITIAL_UTCB_AREA + u64::from(NEXT_UTCB.fetch_add(1, Relaxed)) * 1024;
    kernel::create_active(id, ThreadId::ROOT, ThreadId::ROOT, ThreadId::ROOT, location)
        .map_err(why)?;
    begin(id, role, ThreadId::ROOT.0)
}

/// A partner in a space of its own.
pub fn between(role: Role) -> Result<Partner> {
    let id = fresh_id();
    space(id, UTCB_BITS, QUOTA_PAGES).map_err(why)?;
    begin(id, role, ThreadId::ROOT.0)
}

/// A partner in the space of `other`, which has one thread.
pub fn beside(other: Partner, role: Role) -> Result<Partner> {
    let id = fresh_id();
    let location = INITIAL_UTCB_AREA + 1024;
    kernel::create_active(id, other.id, ThreadId::ROOT, ThreadId::ROOT, location).map_err(why)?;
    begin(id, role, ThreadId::ROOT.0)
}

/// A Rust function in a space of its own, called with `argument`.
pub fn program(body: extern "C" fn(u64) -> !, argument: u64, quota_pages: i64) -> Result<Partner> {
    let id = fresh_id();
    space(id, UTCB_BITS, quota_pages).map_err(why)?;
    begin(id, Role::Program, stack(body, argument)?)
}

/// The same with room for A-stacks.
pub fn clerk(body: extern "C" fn(u64) -> !, argument: u64, quota_pages: i64) -> Result<Partner> {
    let id = fresh_id();
    space(id, runtime::layout::UTCB_BITS, quota_pages).map_err(why)?;
    begin(id, Role::Program, stack(body, argument)?)
}

/// A Rust function in the space of `other`, which has one thread.
pub fn program_beside(
    other: Partner,
    body: extern "C" fn(u64) -> !,
    argument: u64,
) -> Result<Partner> {
    program_among(other, 1, body, argument)
}

/// The same in a space that has `others` threads: `other`, and those that came this way.
pub fn program_among(
    other: Partner,
    others: u64,
    body: extern "C" fn(u64) -> !,
    argument: u64,
) -> Result<Partner> {
    let id = fresh_id();
    let location = INITIAL_UTCB_AREA + 1024 * others;
    kernel::create_active(id, other.id, ThreadId::ROOT, ThreadId::ROOT, location).map_err(why)?;
    begin(id, Role::Program, stack(body, argument)?)
}

/// The same inside the root task's space.
pub fn program_inside(body: extern "C" fn(u64) -> !, argument: u64) -> Result<Partner> {
    start_inside(stack(body, argument)?)
}

/// Words of the stack of a thread that [`link_inside`] makes.
pub const STACK_WORDS_OF_A_LINK: usize = 512;

/// The same on a stack of the caller's.
pub fn link_inside(
    stack: &'static [AtomicU64; STACK_WORDS_OF_A_LINK],
    body: extern "C" fn(u64) -> !,
    argument: u64,
) -> Result<Partner> {
    start_inside(marks::prepare_stack(stack, body, argument))
}

fn start_inside(sp: u64) -> Result<Partner> {
    let id = fresh_id();
    let location = INITIAL_UTCB_AREA + u64::from(NEXT_UTCB.fetch_add(1, Relaxed)) * 1024;
    kernel::create_active(id, ThreadId::ROOT, ThreadId::ROOT, ThreadId::ROOT, location)
        .map_err(why)?;
    begin(id, Role::Program, sp)
}

fn stack(body: extern "C" fn(u64) -> !, argument: u64) -> Result<u64> {
    let index = STACKS_USED.fetch_add(1, Relaxed) as usize;
    let stack = STACK.get(index).ok_or("a measured program has more partners than stacks")?;
    Ok(marks::prepare_stack(&stack.0, body, argument))
}

/// Starts `id` and serves its faults until it calls in.
fn begin(id: ThreadId, role: Role, sp: u64) -> Result<Partner> {
    schedule::set_priority(id, PRIORITY).map_err(why)?;
    ipc::send(id, &Msg::default().word(marks::start_of(role)).word(sp))
        .map_err(|_| "a partner does not start")?;
    await_message(id)?;
    Ok(Partner { id })
}

/// The next message of `id` that is not a fault.
pub fn await_message(id: ThreadId) -> Result<Msg> {
    let first = ipc::receive(id, Time::NEVER).map_err(|_| "a partner does not call in")?;
    serve_faults(id, first)
}

/// Waits until so many partners have called in, and serves everybody's faults meanwhile.
pub fn await_all(partners: usize) -> Result<()> {
    let mut there = 0;
    while there < partners {
        let (id, message) = ipc::wait(Time::NEVER).map_err(|_| "nobody calls in")?;
        match Fault::decode(&message) {
            Some(fault) => drop(ipc::send(id, &same_page(&fault))),
            None => there += 1,
        }
    }
    Ok(())
}

/// Sends `message` to `id` and waits for its answer, serving its faults.
pub fn call(id: ThreadId, message: &Msg) -> Result<Msg> {
    let first = ipc::call(id, message).map_err(|_| "a partner does not answer")?;
    serve_faults(id, first)
}

/// Serves the faults of `id` until it has none for a millisecond: it waits for calls then.
pub fn settle(id: ThreadId) {
    let quiet = Time::micros(1000);
    while let Ok(message) = ipc::receive(id, quiet) {
        let Some(fault) = Fault::decode(&message) else { return };
        let _ = ipc::send(id, &same_page(&fault));
    }
}

/// [`call`] with a string behind the message's words.
pub fn call_with_string(id: ThreadId, message: Msg, string: &[u8]) -> Result<Msg> {
    let first =
        ipc::call(id, &message.string(string)).map_err(|_| "a partner does not take a string")?;
    serve_faults(id, first)
}

fn serve_faults(id: ThreadId, mut message: Msg) -> Result<Msg> {
    while let Some(fault) = Fault::decode(&message) {
        message = ipc::call(id, &same_page(&fault))
            .map_err(|_| "a partner is gone in the middle of a fault")?;
    }
    Ok(message)
}

/// The root task's own page at the same address. Large memory goes in pieces of 2 MiB.
fn same_page(fault: &Fault) -> Msg {
    const LARGE: u32 = 21;
    let (_, image_end) = runtime::layout::image();
    if fault.address < image_end {
        return fault.same_page(Rights::RWX);
    }
    if fault.address >= crate::fault::FRESH {
        direct_println!("bench: a partner touched {:#x} at {:#x}", fault.address, fault.ip);
    }
    let base = fault.address >> LARGE << LARGE;
    Msg::default().map(MapItem::map(Fpage::memory(base, LARGE, Rights::RWX), base))
}

impl Partner {
    /// Deletes the thread, and its space if it has one of its own.
    pub fn delete(self) {
        let _ = kernel::delete(self.id);
    }
}
