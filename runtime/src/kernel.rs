//! The privileged calls, for the root task, and Baton's own calls.
//!
//! Errors are [`CallError`]s; the kernel leaves the code in the UTCB.

use abi::inspect::What;
use abi::syscall::state;
use abi::task::UNCHANGED;
use abi::{CallError, Ceilings, Fpage, Numbers, ThreadId};

use crate::{syscall, utcb};

/// What a call that is not IPC returns.
pub type Result<T> = core::result::Result<T, CallError>;

pub(crate) fn outcome(ok: bool) -> Result<()> {
    if ok {
        Ok(())
    } else {
        Err(CallError::decode(utcb::error_code()).unwrap_or(CallError::InvalidParameter))
    }
}

/// Creates `dest`, inactive, in the space of `space` (`dest` itself: a new space). Fails if
/// somebody has its number.
pub fn create(
    dest: ThreadId,
    space: ThreadId,
    scheduler: ThreadId,
    utcb_location: u64,
) -> Result<()> {
    // SAFETY: a new thread runs nothing yet.
    outcome(unsafe { syscall::create_thread(dest.0, space.0, scheduler.0, 0, utcb_location) })
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

/// Creates `dest`, active, in the existing space of `space`. Fails if somebody has its number.
pub fn create_active(
    dest: ThreadId,
    space: ThreadId,
    scheduler: ThreadId,
    pager: ThreadId,
    location: u64,
) -> Result<()> {
    // SAFETY: as for `set_pager`.
    outcome(unsafe { syscall::create_thread(dest.0, space.0, scheduler.0, pager.0, location) })
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

/// The thread numbers that the task of `space` owns, and the ceilings of its time.
pub fn limits(space: ThreadId) -> Result<(Numbers, Ceilings)> {
    limit(space, None, None)
}

/// Gives the task of `space`, which is below this one, thread numbers of this task's own,
/// and lower ceilings. Returns what is in force.
pub fn limit(
    space: ThreadId,
    numbers: Option<Numbers>,
    ceilings: Option<Ceilings>,
) -> Result<(Numbers, Ceilings)> {
    let numbers = numbers.map_or(UNCHANGED, Numbers::word);
    let ceilings = ceilings.map_or(UNCHANGED, Ceilings::word);
    let known = syscall::task_control(space.0, numbers, ceilings);
    outcome(known.is_some())?;
    let (numbers, ceilings) = known.unwrap_or_default();
    Ok((Numbers::decode(numbers), Ceilings::decode(ceilings).unwrap_or_default()))
}

/// Who has one of this task's thread numbers (nilthread: nobody), and the last version that
/// it had; `None` if the number is not this task's.
#[must_use]
pub fn number(number: u32) -> Option<(ThreadId, u32)> {
    let record = inspect(What::Number, u64::from(number), 0)?;
    Some((ThreadId(record[0]), record[1] as u32))
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

/// [`unmap`] for many flexpages, up to 63 at a call.
pub fn unmap_all(fpages: impl Iterator<Item = Fpage>) {
    let (mut mr, mut count) = ([0; 8], 0);
    let flush = |mr: &[u64; 8], count: usize| {
        // SAFETY: without flush this task keeps its own mappings.
        let _ = unsafe { syscall::unmap(count as u64 - 1, utcb::pointer(), *mr) };
    };
    for fpage in fpages {
        if count < 8 {
            mr[count] = fpage.0
        } else {
            utcb::set_mr(count, fpage.0)
        }
        count += 1;
        if count == 63 {
            flush(&mr, count);
            count = 0;
        }
    }
    if count > 0 {
        flush(&mr, count);
    }
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

/// Makes `thread`, which has not started, foreign: its system calls, faults and
/// exceptions become messages to the calling thread. It waits for a first answer.
pub fn make_foreign(thread: ThreadId) -> Result<()> {
    outcome(syscall::thread_state(thread.0, state::FOREIGN, &mut []))
}

/// Stops the foreign `thread` if it runs: afterwards it waits for an answer.
pub fn stop(thread: ThreadId) -> Result<()> {
    outcome(syscall::thread_state(thread.0, state::STOP, &mut []))
}

/// Number of words that [`foreign_registers`] reads and [`set_foreign_registers`] sets.
pub const STATE_WORDS: usize = state::WORDS;

/// The registers of a foreign thread that does not run: those of an exception message
/// in its order, then FS and GS base.
pub fn foreign_registers(thread: ThreadId) -> Result<[u64; STATE_WORDS]> {
    outcome(syscall::thread_state(thread.0, state::READ, &mut []))?;
    Ok(core::array::from_fn(utcb::mr))
}

/// Sets all registers of a foreign thread that does not run.
pub fn set_foreign_registers(thread: ThreadId, words: &[u64; STATE_WORDS]) -> Result<()> {
    for (index, word) in words.iter().enumerate() {
        utcb::set_mr(index, *word);
    }
    outcome(syscall::thread_state(thread.0, state::WRITE, &mut []))
}

/// Copies the vector state of a foreign thread to `to`, which has room for all of it.
pub fn vector_state(thread: ThreadId, to: &mut VectorState) -> Result<()> {
    to.touch();
    outcome(syscall::thread_state(thread.0, state::READ_VECTOR, &mut to.0))
}

/// Sets the vector state of a foreign thread.
pub fn set_vector_state(thread: ThreadId, from: &mut VectorState) -> Result<()> {
    from.touch();
    outcome(syscall::thread_state(thread.0, state::WRITE_VECTOR, &mut from.0))
}

/// Says that neither this thread nor those that the task will create use vector registers:
/// the kernel need not care for them. Every program of this runtime says so at its start.
pub fn use_no_vector_registers() -> Result<()> {
    outcome(syscall::thread_state(utcb::my_global_id().0, state::NO_VECTOR, &mut []))
}

/// Says that this thread and those that the task will create use vector registers, which
/// are initial now: for programs with instructions of their own.
pub fn use_vector_registers() -> Result<()> {
    outcome(syscall::thread_state(utcb::my_global_id().0, state::VECTOR, &mut []))
}

/// Room for a vector state.
#[repr(C, align(64))]
pub struct VectorState(pub [u8; 2688]);

impl VectorState {
    /// The kernel answers no page faults for a buffer: it has to be there.
    fn touch(&mut self) {
        for index in [0, self.0.len() - 1] {
            // SAFETY: a byte of the buffer, written with what it holds.
            unsafe {
                let byte = (&raw mut self.0[index]).read_volatile();
                (&raw mut self.0[index]).write_volatile(byte);
            }
        }
    }
}

/// Bytes of a thread's vector state on this processor: what XSAVE's standard format takes
/// for all components that the kernel switched on, FXSAVE's 512 without XSAVE.
#[must_use]
pub fn vector_bytes() -> usize {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    // CPUID.1:ECX.OSXSAVE, then leaf 0xD's size for what XCR0 enables (Intel SDM 2A).
    if __cpuid(1).ecx & 1 << 27 == 0 {
        return 512;
    }
    (__cpuid_count(0xD, 0).ebx as usize).min(2688)
}
