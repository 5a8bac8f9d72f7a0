//! Whose thread is it: the thread numbers of tasks, and the end of what a task made itself.
//!
//! A task's threads that this task makes have the numbers of its slot. One that makes
//! threads and tasks itself (the Unix server its programs) has a range of its own, from which
//! the kernel lets nobody else make threads. All of both belongs to the task, and goes
//! with it.

use abi::id::THREAD_BITS;
use abi::inspect::What;
use abi::{Numbers, ThreadId};
use proto::layout::{self, THREADS};
use runtime::kernel;

/// The thread numbers of tasks that make threads themselves, given out one after the other.
pub struct Ranges {
    next: u32,
}

impl Ranges {
    /// All are free.
    pub const fn new() -> Self {
        Self { next: layout::FIRST_OWN_NUMBER }
    }

    /// `count` numbers that no other task has; `None` if there are no more.
    pub fn take(&mut self, count: u32) -> Option<Numbers> {
        let numbers = Numbers { first: self.next, count };
        if numbers.end() > 1 << THREAD_BITS {
            return None;
        }
        self.next += count;
        Some(numbers)
    }
}

/// The numbers of the threads that this task makes for the task in `slot`.
pub const fn of_slot(slot: usize) -> Numbers {
    Numbers { first: layout::thread_number(slot, 0), count: THREADS as u32 }
}

/// Deletes all threads with these numbers, and so the tasks that they are in. Their makers
/// must not get the processor meanwhile: this task has the highest priority.
pub fn end_all(numbers: Numbers) {
    let mut number = u64::from(numbers.first);
    while number < numbers.end() {
        let Some(thread) = kernel::inspect(What::Thread, number, 0) else { return };
        let id = ThreadId(thread[0]);
        number = u64::from(id.number()) + 1;
        if numbers.contains(id.number()) {
            let _ = kernel::delete(id);
        }
    }
}
