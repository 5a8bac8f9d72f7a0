//! Kernel memory of programs' spaces: who gets more, and what the operator is told when there
//! is none. Called when an answer did not arrive whole for want of it, and when spaces are made.

use alloc::format;
use alloc::rc::Rc;

use crate::thread::Thread;
use crate::unix::Unix;

/// What helps when there is no kernel memory: all that the task has is some share of the machine's.
const MORE_KERNEL_MEMORY: &str =
    "give the machine more memory, or raise quota_pages of the task `unix`";

impl Unix {
    /// The space of `thread` has used its kernel memory up: how many pages more its user pays for.
    #[must_use]
    pub fn more_kernel_memory(&self, thread: &Rc<Thread>) -> Option<u64> {
        thread.process.space().pay_kernel_memory()
    }

    /// There is none for a new process of `user`: the first time the operator is told.
    #[cold]
    pub(crate) fn tell_no_space(&self, user: u32) {
        if !self.told_no_space.replace(true) {
            let (total, left) = (self.machine.kernel_gauge())();
            self.say(&format!(
                "unix: kernel memory is used up: of {total} pages {left} are left, which user {user} cannot have for a new process (EAGAIN); {MORE_KERNEL_MEMORY}"
            ));
        }
    }

    /// It cannot: its process ends.
    pub fn end_for_kernel_memory(&self, thread: &Rc<Thread>) {
        let process = &thread.process;
        let (total, _) = (self.machine.kernel_gauge())();
        self.say(&format!(
            "unix: kernel memory is used up ({total} pages); process {}, which wants more, is killed; {MORE_KERNEL_MEMORY}",
            process.pid.first()
        ));
        crate::process::end_by_signal(self, process, linux_raw_sys::general::SIGKILL);
    }
}
