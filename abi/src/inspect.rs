//! Baton's Inspect call: read-only records about the kernel's objects, for the
//! monitor and the tests. The initial tasks see everything, every other task itself and
//! the tasks below it.
//!
//! Call: RDI [`What`], RSI index or cursor, RDX argument. A record's words come
//! back in RDX, RSI, R9, R10, R12, R13, R14, R15; RAX = 0 when there is none.

/// What to inspect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum What {
    /// First thread with number ≥ index. Words: global id, state word (see
    /// [`crate::inspect::state`]), space id, priority, partner id, IP, SP, pager.
    Thread = 0,
    /// First space with id ≥ index. Words: id, quota limit (pages), used (pages),
    /// number of threads, page-table pages, mapping nodes, chief's space id
    /// (all ones: none), root-table address.
    Space = 1,
    /// The mapping tree of the frame at physical address `argument`; node number
    /// index in preorder. Words: depth, space id, virtual address, log2 size, rights, 0, 0, 0.
    Mapping = 2,
    /// Kernel totals. Words: pages in the kernel's pool, pages free, threads,
    /// spaces, kernel entries, ticks, reserved (0), 0. Word 6 is kept free: how long
    /// interrupts stay off is measured from outside the machine, not counted here.
    Kernel = 3,
    /// Runs the invariant checker, for the initial tasks only: it may take long and lets
    /// nobody in between. Words: number of violations, 0...
    Check = 4,
    /// The thread with the global id `index`. Words: id, processor time it has used so
    /// far in microseconds (the timer's ticks that met it running), 0...
    Time = 5,
    /// The thread number `index`, of the caller's own range. Words: the id that has it (0:
    /// nobody), the last version that it had, 0...
    Number = 6,
}

/// Thread states in a thread record.
pub mod state {
    /// Running or ready.
    pub const READY: u64 = 0;
    /// Waiting to send.
    pub const POLLING: u64 = 1;
    /// Waiting to receive.
    pub const WAITING: u64 = 2;
    /// In a transfer.
    pub const TRANSFER: u64 = 3;
    /// Created, not activated.
    pub const INACTIVE: u64 = 4;
    /// Halted.
    pub const HALTED: u64 = 5;
}
