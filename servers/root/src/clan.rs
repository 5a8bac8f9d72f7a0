//! The tasks that a task has made for itself (the Unix server's programs): they end with
//! it. The kernel would leave them to the root task, which has no use for them.

use abi::ThreadId;
use abi::inspect::What;
use runtime::kernel;

/// Ends all tasks of which the task of `main` is the chief, and theirs.
pub fn end(main: ThreadId) {
    let Some(chief) = space_of(main) else { return };
    // With a member, the tasks it has made come to its chief: they are found in turn.
    while let Some(member) = member_of(chief) {
        let threads = delete_threads(member);
        if threads == 0 {
            return;
        }
    }
}

/// The number of the space of `thread`, which exists.
fn space_of(thread: ThreadId) -> Option<u64> {
    let record = kernel::inspect(What::Thread, u64::from(thread.number()), 0)?;
    (record[0] == thread.0).then_some(record[2])
}

/// The first space whose chief is the space `chief`.
fn member_of(chief: u64) -> Option<u64> {
    let mut next = 0;
    while let Some(record) = kernel::inspect(What::Space, next, 0) {
        if record[6] == chief {
            return Some(record[0]);
        }
        next = record[0] + 1;
    }
    None
}

/// Deletes the threads of a space, and the space with the last of them; how many there were.
fn delete_threads(space: u64) -> usize {
    let (mut next, mut count) = (0, 0);
    while let Some(record) = kernel::inspect(What::Thread, next, 0) {
        let thread = ThreadId(record[0]);
        next = u64::from(thread.number()) + 1;
        if record[2] == space && kernel::delete(thread).is_ok() {
            count += 1;
        }
    }
    count
}
