//! Sets of signals: bit `n - 1` is signal `n`.

use linux_raw_sys::general as l;

/// The highest signal.
pub const LAST: u32 = 64;
/// The first real-time signal, as the kernel counts.
pub const FIRST_REAL_TIME: u32 = l::SIGRTMIN;

/// The set of one signal; empty if there is no such signal.
#[must_use]
pub const fn bit(signal: u32) -> u64 {
    match signal {
        1..=LAST => 1 << (signal - 1),
        _ => 0,
    }
}

/// The lowest signal of a set.
#[must_use]
pub const fn lowest(set: u64) -> Option<u32> {
    if set == 0 { None } else { Some(set.trailing_zeros() + 1) }
}

/// Signals nobody can catch, block or ignore.
pub const UNSTOPPABLE: u64 = bit(l::SIGKILL) | bit(l::SIGSTOP);
/// Signals that stop a process unless it says otherwise.
pub const STOPPING: u64 = bit(l::SIGSTOP) | bit(l::SIGTSTP) | bit(l::SIGTTIN) | bit(l::SIGTTOU);
/// Signals that do nothing unless the process says otherwise.
pub const HARMLESS: u64 = bit(l::SIGCHLD) | bit(l::SIGCONT) | bit(l::SIGURG) | bit(l::SIGWINCH);
/// Signals of the program's own making, which are delivered first.
pub const SYNCHRONOUS: u64 = bit(l::SIGSEGV)
    | bit(l::SIGBUS)
    | bit(l::SIGILL)
    | bit(l::SIGTRAP)
    | bit(l::SIGFPE)
    | bit(l::SIGSYS);
