//! Threads of this task.
//!
//! The root task creates a thread on request (ThreadControl is privileged); it
//! waits for a start message from a pager that never comes, and is started from
//! inside its space by ExchangeRegisters. Its stack is the stack region that
//! belongs to its number.

use alloc::boxed::Box;

use abi::ThreadId;
use abi::syscall::exregs;

use crate::syscall::{self, ThreadRegisters};
use crate::{ipc, layout, root, utcb};

unsafe extern "C" {
    fn baton_thread_start();
}

type Body = Box<dyn FnOnce() + Send>;

/// Runs on the new thread's stack with the pointer that `spawn` left there.
extern "C" fn run(body: *mut Body) -> ! {
    utcb::set_exception_handler(ThreadId::ROOT);
    // SAFETY: `spawn` leaked exactly one box for this thread.
    let body = unsafe { Box::from_raw(body) };
    body();
    end()
}

/// Starts a thread that runs `body`, at this thread's priority.
pub fn spawn(body: impl FnOnce() + Send + 'static) -> Result<ThreadId, root::Refusal> {
    let (thread, index) = root::create_thread()?;
    begin(thread, index, Box::new(body));
    Ok(thread)
}

/// As [`spawn`], on processor `number` from its first instruction on.
///
/// # Errors
/// What [`root::set_processor`] refuses; then there is no thread, and `body` is dropped.
pub fn spawn_on(
    number: u32,
    body: impl FnOnce() + Send + 'static,
) -> Result<ThreadId, root::Refusal> {
    let (thread, index) = root::create_thread()?;
    if let Err(why) = root::set_processor(thread, number) {
        root::delete_thread(thread);
        return Err(why);
    }
    begin(thread, index, Box::new(body));
    Ok(thread)
}

/// As [`spawn`], on processor `number` if this task's threads may be there.
pub(crate) fn spawn_near(
    number: u32,
    body: impl FnOnce() + Send + 'static,
) -> Result<ThreadId, root::Refusal> {
    let (thread, index) = root::create_thread()?;
    let _ = root::set_processor(thread, number);
    begin(thread, index, Box::new(body));
    Ok(thread)
}

/// Starts a thread that was made, with the stack of number `index`.
fn begin(thread: ThreadId, index: u64, body: Body) {
    let top = layout::stack_top(index);
    let entry: extern "C" fn(*mut Body) -> ! = run;
    let sp = put_start(top, Box::into_raw(Box::new(body)) as u64, entry as usize as u64);
    start(thread, sp);
}

/// Leaves argument and function on a new stack; returns its SP.
pub(crate) fn put_start(top: u64, argument: u64, function: u64) -> u64 {
    let sp = layout::stack_pointer(top, layout::chance());
    // SAFETY: the top words of the stack region of a thread that does not run yet.
    unsafe {
        (sp as *mut u64).write_volatile(argument);
        (sp as *mut u64).add(1).write_volatile(function);
    }
    sp
}

/// The address at which every further thread starts.
pub(crate) fn start_address() -> u64 {
    baton_thread_start as *const () as u64
}

fn start(thread: ThreadId, sp: u64) {
    let control =
        exregs::HALT_VALID | exregs::ABORT_RECEIVE | exregs::ABORT_SEND | exregs::SP | exregs::IP;
    let regs = ThreadRegisters { control, sp, ip: start_address(), ..ThreadRegisters::default() };
    // SAFETY: the thread has not run; its stack holds what `baton_thread_start` pops.
    let _ = unsafe { syscall::exchange_registers(thread.0, regs) };
}

/// Reads a thread's registers without changing it; `None` if that is not allowed.
#[must_use]
pub fn registers(thread: ThreadId) -> Option<ThreadRegisters> {
    let regs = ThreadRegisters { control: exregs::DELIVER, ..ThreadRegisters::default() };
    // SAFETY: writes nothing.
    let (id, old) = unsafe { syscall::exchange_registers(thread.0, regs) };
    (id != 0).then_some(old)
}

/// The other name of a thread of this space: local for global, global for local.
#[must_use]
pub fn other_id(thread: ThreadId) -> Option<ThreadId> {
    // SAFETY: writes nothing.
    let (id, _) = unsafe { syscall::exchange_registers(thread.0, ThreadRegisters::default()) };
    (id != 0).then_some(ThreadId(id))
}

/// Cancels the IPC that `thread` is in; it goes on with an error.
pub fn cancel_ipc(thread: ThreadId) {
    let control = exregs::ABORT_RECEIVE | exregs::ABORT_SEND;
    let regs = ThreadRegisters { control, ..ThreadRegisters::default() };
    // SAFETY: an aborted IPC returns an error; registers are not written.
    let _ = unsafe { syscall::exchange_registers(thread.0, regs) };
}

/// The running thread's global id.
#[must_use]
pub fn me() -> ThreadId {
    utcb::my_global_id()
}

/// Ends the running thread.
pub fn end() -> ! {
    root::delete_thread(me());
    park()
}

/// Never returns, uses no time.
pub fn park() -> ! {
    loop {
        let _ = ipc::receive(me(), abi::Time::NEVER);
    }
}
