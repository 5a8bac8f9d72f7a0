//! What a task leaves behind: the tasks that it made itself (the Unix server's programs).
//! The kernel gives them to the chief of their chief, which is this task; nobody would
//! serve them any more, and their thread numbers are wanted again.

use abi::ThreadId;
use abi::inspect::What;
use runtime::kernel;

/// Deepest nesting of clans (the kernel's limit).
const DEPTH: usize = 64;

/// Deletes all threads of the tasks below that of `main`, which still exists. The task
/// itself must not get the processor meanwhile: this one has the highest priority.
pub fn end_below(main: ThreadId) {
    let Some(top) = space_of(main) else { return };
    let mut number = 0;
    while let Some(thread) = kernel::inspect(What::Thread, number, 0) {
        let id = ThreadId(thread[0]);
        number = u64::from(id.number()) + 1;
        if is_below(thread[2], top) {
            let _ = kernel::delete(id);
        }
    }
}

/// The space in which `thread` is.
fn space_of(thread: ThreadId) -> Option<u64> {
    let record = kernel::inspect(What::Thread, u64::from(thread.number()), 0)?;
    (record[0] == thread.0).then_some(record[2])
}

/// Whether the space `lower` belongs to the clan of `top`, directly or not.
fn is_below(lower: u64, top: u64) -> bool {
    let mut space = lower;
    for _ in 0..DEPTH {
        let Some(record) = kernel::inspect(What::Space, space, 0) else { return false };
        if record[0] != space {
            return false;
        }
        space = record[6];
        if space == top {
            return true;
        }
    }
    false
}
