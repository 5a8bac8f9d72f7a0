//! The unsafe floor: threads with any number and any body, in this task's own space.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::ThreadId;
use abi::syscall::exregs as bit;
use runtime::syscall::{self, ThreadRegisters};
use runtime::{kernel, layout, thread, utcb};

unsafe extern "C" {
    fn baton_thread_start();
}

/// What a further thread runs.
pub type Body = extern "C" fn(u64) -> !;

/// Words that the threads of an attacker share.
static SHARED: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

/// Reads shared word `index`.
#[must_use]
pub fn shared(index: usize) -> u64 {
    SHARED[index].load(Ordering::Relaxed)
}

/// Sets shared word `index`.
pub fn share(index: usize, value: u64) {
    SHARED[index].store(value, Ordering::Relaxed);
}

/// Pages of a further thread's stack that are there when it starts.
const STACK_PAGES: u64 = 4;
const PAGE: u64 = 4096;

/// Reads a word of every page of the program, so that no thread has a fault there: nobody
/// may answer it.
pub fn touch_image() {
    let (low, high) = runtime::layout::image();
    for page in (low..high).step_by(PAGE as usize) {
        touch(page);
    }
}

fn touch(address: u64) {
    // SAFETY: the program's image and its stacks may be read; the pager fills them.
    let _ = unsafe { (address as *const u64).read_volatile() };
}

/// Makes a thread `id` of this space by ThreadControl, on the stack and the UTCB of thread
/// `index`; whether it is there.
#[must_use]
pub fn create(id: ThreadId, index: u64) -> bool {
    let me = thread::me();
    kernel::create_active(id, me, me, utcb::pager(), layout::utcb_location(index)).is_ok()
}

/// Starts `thread`, which has the stack of thread `index`, in `body`.
pub fn start(thread: ThreadId, index: u64, body: Body, argument: u64) {
    let sp = layout::stack_top(index) - 64;
    (1..=STACK_PAGES).for_each(|page| touch(layout::stack_top(index) - page * PAGE));
    // SAFETY: the top words of the stack of a thread that does not run yet.
    unsafe {
        (sp as *mut u64).write_volatile(argument);
        (sp as *mut u64).add(1).write_volatile(body as usize as u64);
    }
    let control = bit::HALT_VALID | bit::ABORT_RECEIVE | bit::ABORT_SEND | bit::SP | bit::IP;
    let ip = baton_thread_start as *const () as u64;
    let regs = ThreadRegisters { control, sp, ip, ..ThreadRegisters::default() };
    // SAFETY: the thread has not run; its stack holds what `baton_thread_start` pops.
    let _ = unsafe { syscall::exchange_registers(thread.0, regs) };
}

/// ThreadControl as it is: only the scheduler of `thread` changes, to `scheduler`.
#[must_use]
pub fn set_scheduler(thread: ThreadId, scheduler: ThreadId) -> bool {
    // SAFETY: changes who may call Schedule for it.
    unsafe { syscall::thread_control(thread.0, thread.0, scheduler.0, 0, !0) }
}

/// Halts `thread`; whether the kernel let this task do it.
#[must_use]
pub fn halt(thread: ThreadId) -> bool {
    let control = bit::HALT_VALID | bit::HALT;
    let regs = ThreadRegisters { control, ..ThreadRegisters::default() };
    // SAFETY: a thread of another task: no object of this one is concerned.
    unsafe { syscall::exchange_registers(thread.0, regs).0 != 0 }
}
