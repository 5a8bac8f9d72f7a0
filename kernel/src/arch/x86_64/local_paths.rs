//! The paths of local IPC in the user page (`local_stubs.S`), as places where a thread may be
//! interrupted (Wenske 2002, 4.3; decisions 0044, 0063).

use super::stubs::{in_image, ipc_trap, lipc_trap, user_address};

unsafe extern "C" {
    static local_syscall: u8;
    static local_slow: u8;
    static local_slow_call: u8;
    static local_call_restart: u8;
    static local_call_forward: u8;
    static local_call_done: u8;
    static local_call_aside: u8;
    static local_call_end: u8;
    static local_reply_restart: u8;
    static local_reply_forward: u8;
    static local_reply_done: u8;
    static local_reply_aside: u8;
    static local_reply_end: u8;
    static local_call_one_restart: u8;
    static local_call_one_forward: u8;
    static local_call_one_done: u8;
    static local_call_one_aside: u8;
    static local_call_one_end: u8;
    static local_slow_call_one: u8;
    static local_onward_restart: u8;
    static local_onward_forward: u8;
    static local_onward_done: u8;
    static local_onward_aside: u8;
    static local_onward_end: u8;
    static local_slow_onward: u8;
    static section_enter_restart: u8;
    static section_enter_forward: u8;
    static section_enter_done: u8;
    static section_enter_slow: u8;
    static section_leave_restart: u8;
    static section_leave_forward: u8;
    static section_leave_done: u8;
    static section_leave_slow: u8;
    static section_syscall: u8;
}

/// What a path hands over, and so where it has its two threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hands {
    /// A message: RSI is the receiver's U until the very end, RDI the sender's.
    Message,
    /// Work for a critical section's thread: RBP is its U, RBX the sender's.
    Work,
    /// The end of that work: RBX is the receiver's U, RBP the sender's.
    End,
}

/// One of the paths of local IPC in user mode, by where its labels are in the kernel's image.
pub struct LocalPath {
    pub hands: Hands,
    /// Where an interrupted run begins anew (2002, 4.3).
    restart: *const u8,
    /// From here on the partner runs: the forward point.
    forward: *const u8,
    /// Where the path returns: the completion point.
    done: *const u8,
    /// The rest of the checks.
    aside: *const u8,
    end: *const u8,
    /// Where the kernel is asked instead.
    slow: *const u8,
}

// SAFETY: addresses of code, which nobody reads by them.
unsafe impl Sync for LocalPath {}

impl LocalPath {
    /// Whether nothing has been handed over yet at user address `ip`, but something been looked at.
    #[must_use]
    pub fn is_before(&self, ip: u64) -> bool {
        let at = in_image(ip);
        (self.restart..self.forward).contains(&at) || (self.aside..self.end).contains(&at)
    }

    /// Whether the partner runs at user address `ip`, but has not all that it needs.
    #[must_use]
    pub fn is_behind(&self, ip: u64) -> bool {
        (self.forward..self.done).contains(&in_image(ip))
    }

    /// The restart point's user address.
    #[must_use]
    pub fn restart(&self) -> u64 {
        user_address(self.restart as u64)
    }

    /// The completion point's.
    #[must_use]
    pub fn done(&self) -> u64 {
        user_address(self.done as u64)
    }

    /// That of where the kernel is asked instead.
    #[must_use]
    pub fn slow(&self) -> u64 {
        user_address(self.slow as u64)
    }

    const fn new(hands: Hands, labels: [*const u8; 6]) -> Self {
        let [restart, forward, done, aside, end, slow] = labels;
        Self { hands, restart, forward, done, aside, end, slow }
    }
}

/// A path by the names of its labels.
macro_rules! path {
    ($hands:ident, $($label:ident)*) => {
        LocalPath::new(Hands::$hands, [$(&raw const $label),*])
    };
}

/// Call, reply and wait, the two of generated stubs, entering and leaving a critical section.
pub static LOCAL_PATHS: [LocalPath; 6] = [
    path!(Message, local_call_restart local_call_forward local_call_done local_call_aside local_call_end local_slow_call),
    path!(Message, local_reply_restart local_reply_forward local_reply_done local_reply_aside local_reply_end local_slow),
    path!(Message, local_call_one_restart local_call_one_forward local_call_one_done local_call_one_aside
            local_call_one_end local_slow_call_one),
    path!(Message, local_onward_restart local_onward_forward local_onward_done local_onward_aside local_onward_end
            local_slow_onward),
    // These have no checks aside.
    path!(Work, section_enter_restart section_enter_forward section_enter_done section_enter_restart
            section_enter_restart section_enter_slow),
    path!(End, section_leave_restart section_leave_forward section_leave_done section_leave_restart
            section_leave_restart section_leave_slow),
];

/// Where a thread goes on that has handed over in user mode, and whose IPC the kernel ends.
#[must_use]
pub fn completion_point() -> u64 {
    user_address(&raw const local_call_done as u64)
}

/// Whether `ip` is behind the trap to which the paths lead aside: in none of them, as most of those are who come from the
/// stubs.
#[must_use]
pub fn is_behind_trap(ip: u64) -> bool {
    ip == user_address(&raw const local_syscall as u64) + SYSCALL_BYTES
}

/// Whether a thread whose system call returns to `ip` goes on with nothing but the return, in a
/// stub that hands out an IPC's results.
#[must_use]
pub fn returns_at_once(ip: u64) -> bool {
    let local_trap = user_address(&raw const local_syscall as u64);
    let traps = [local_trap, lipc_trap(), ipc_trap()];
    traps.into_iter().any(|trap| trap + SYSCALL_BYTES == ip)
        || is_for_work(ip)
        || LOCAL_PATHS.iter().any(|path| path.hands == Hands::Message && path.done() == ip)
}

/// Whether a thread whose system call returns to `ip` is a critical section's, and waits for
/// work.
#[must_use]
pub fn is_for_work(ip: u64) -> bool {
    user_address(&raw const section_syscall as u64) + SYSCALL_BYTES == ip
}

/// Length of `syscall`.
const SYSCALL_BYTES: u64 = 2;
