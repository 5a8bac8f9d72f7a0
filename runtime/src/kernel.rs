//! The privileged calls, for the root task, and Baton's own calls.
//!
//! Errors are [`CallError`]s; the kernel leaves the code in the UTCB.

use abi::inspect::What;
use abi::{CallError, Fpage, ThreadId};

use crate::{syscall, utcb};

/// What a call that is not IPC returns.
pub type Result<T> = core::result::Result<T, CallError>;

fn outcome(ok: bool) -> Result<()> {
    if ok {
        Ok(())
    } else {
        Err(CallError::decode(utcb::error_code()).unwrap_or(CallError::InvalidParameter))
    }
}

/// Creates `dest`, inactive, in the space of `space` (`dest` itself: a new space).
pub fn create(
    dest: ThreadId,
    space: ThreadId,
    scheduler: ThreadId,
    utcb_location: u64,
) -> Result<()> {
    // SAFETY: a new thread runs nothing yet.
    outcome(unsafe { syscall::thread_control(dest.0, space.0, scheduler.0, 0, utcb_location) })
}

/// Activates `dest`, or changes the pager of an active thread. Activated, it
/// waits for `pager`'s start message.
pub fn set_pager(
    dest: ThreadId,
    space: ThreadId,
    pager: ThreadId,
    utcb_location: u64,
) -> Result<()> {
    // SAFETY: the thread runs only after its pager's start message.
    outcome(unsafe { syscall::thread_control(dest.0, space.0, 0, pager.0, utcb_location) })
}

/// Creates `dest`, active, in the existing space of `space`.
pub fn create_active(
    dest: ThreadId,
    space: ThreadId,
    scheduler: ThreadId,
    pager: ThreadId,
    location: u64,
) -> Result<()> {
    // SAFETY: as for `set_pager`.
    outcome(unsafe { syscall::thread_control(dest.0, space.0, scheduler.0, pager.0, location) })
}

/// Deletes a thread of another task; with its last thread a space goes.
pub fn delete(dest: ThreadId) -> Result<()> {
    // SAFETY: the root task deletes threads of other tasks; it has one thread itself,
    // and the kernel refuses to delete the caller.
    outcome(unsafe { syscall::thread_control(dest.0, 0, 0, 0, !0) })
}

/// Lets `handler` receive the interrupts of `line`.
pub fn attach_irq(line: u32, handler: ThreadId) -> Result<()> {
    let irq = ThreadId::irq(line).0;
    // SAFETY: interrupts become messages; no memory is concerned.
    outcome(unsafe { syscall::thread_control(irq, irq, 0, handler.0, !0) })
}

/// Takes the interrupts of `line` away from its handler.
pub fn detach_irq(line: u32) -> Result<()> {
    attach_irq(line, ThreadId::irq(line))
}

/// Places the KIP and the UTCB area of a new space.
pub fn configure_space(space: ThreadId, kip: Fpage, utcbs: Fpage) -> Result<()> {
    outcome(syscall::space_control(space.0, 0, kip.0, utcbs.0, 0))
}

/// Moves `pages` pages of kernel memory from this task to the task of `space`
/// (negative: back). Returns the target's limit and use, in pages.
pub fn move_quota(space: ThreadId, pages: i64) -> Result<(u64, u64)> {
    let moved = syscall::quota_control(space.0, pages);
    outcome(moved.is_some())?;
    Ok(moved.unwrap_or_default())
}

/// One of the kernel's records; `None` if there is none, or no permission.
#[must_use]
pub fn inspect(what: What, index: u64, argument: u64) -> Option<[u64; 8]> {
    syscall::inspect(what as u64, index, argument)
}

/// Revokes `fpage`'s rights from everybody who has them from this task.
/// Returns the status bits.
pub fn unmap(fpage: Fpage) -> Fpage {
    let mut mr = [0; 8];
    mr[0] = fpage.0;
    // SAFETY: without flush this task keeps its own mapping.
    Fpage(unsafe { syscall::unmap(0, utcb::pointer(), mr) }[0])
}

/// Like [`unmap`], and from this task itself. Only for memory inside a window.
pub fn flush(window: &mut crate::window::Window, fpage: Fpage) -> Option<Fpage> {
    let inside = !fpage.is_complete()
        && fpage.base() >= window.base()
        && fpage.base() + fpage.size() <= window.base() + window.bytes();
    let mut mr = [0; 8];
    mr[0] = fpage.0;
    // SAFETY: the pages belong to a window: no Rust object is in them.
    inside.then(|| Fpage(unsafe { syscall::unmap(0x40, utcb::pointer(), mr) }[0]))
}
