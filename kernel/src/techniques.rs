//! The techniques of the papers that have a switch: one named constant each.
//! Switching one off rebuilds a kernel that works the same, slower; the effect is
//! then measured (Table 1 of Liedtke 1993). `docs/papers.md` maps every technique,
//! with or without a switch, to its room.

/// The assembly fast path: short messages in registers (1993, 5.3.6) and all that
/// goes with it. Off: every IPC takes the complete path in Rust.
pub const FAST_PATH: bool = true;

/// System calls of foreign threads as register messages in assembly, both ways: the
/// techniques of 5.3 and 5.4 for Unix programs (1995, 3: "Unix system calls are
/// implemented by IPC"). Off: they take the complete path.
pub const FOREIGN_FAST_PATH: bool = true;

/// Lazy scheduling (1993, 5.3.4): a thread that blocks stays in the ready queue
/// until the scheduler meets it. Off: it is removed at once.
pub const LAZY_SCHEDULING: bool = true;

/// Direct process switch (1993, 5.3.5): a call or reply hands the processor to the
/// partner on the caller's time slice. Off: the scheduler picks the next thread.
pub const DIRECT_SWITCH: bool = true;

/// Single copy (1993, 5.2.3): strings go straight from the sender's pages to the
/// receiver's. Off: through a buffer in the kernel.
pub const SINGLE_COPY: bool = true;

/// Local IPC in user mode (Wenske 2002): threads of one space exchange messages without the
/// kernel, which learns of it at its next entry. Off: no thread is armed for it.
pub const LOCAL_IPC: bool = true;

/// The pending-send check of local IPC (Wenske 2002, 4.6.1): a thread may wait for somebody else after
/// a message in user mode than before it, as long as nobody is queued to send to it. Off: the
/// restrictive check, by which such a change goes through the kernel.
pub const PENDING_SEND: bool = true;

/// Number of wakeup lists (1993, 5.3.3: n unordered lists; L3 used 8). 1 = a single list.
pub const WAKEUP_LISTS: usize = 1024;
