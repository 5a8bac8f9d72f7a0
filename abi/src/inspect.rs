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
    /// Why threads that were on processor `index` have come back, how often since boot: words
    /// 8 · `argument` and up of [`Back`]. For the initial tasks only.
    Visits = 7,
}

/// Why a thread that was on another processor has come back to the first one, where all is done that
/// the other one does not do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Back {
    /// A message of words only: nobody there waits for it, or its sender is there alone.
    Message,
    /// It receives, and sends nothing.
    Wait,
    /// A message with strings, mappings or flags.
    Items,
    /// An IPC with other timeouts than the fast paths know.
    Limit,
    /// Another system call.
    Call,
    /// Of a foreign thread, whatever system call.
    Foreign,
    /// A page fault.
    PageFault,
    /// Another exception.
    Exception,
    /// Somebody on the first processor has asked for one of those who were there.
    Asked,
    /// The tables of its space were about to change.
    Tables,
    /// Its registers, its priority or its place were asked for, or it was deleted.
    Control,
    /// Its slice or quantum was used up.
    Slice,
    /// Somebody more urgent went there.
    Urgent,
}

impl Back {
    /// All of them, in their order, and what they are called.
    pub const ALL: [(Self, &str); 13] = [
        (Self::Message, "message"),
        (Self::Wait, "wait"),
        (Self::Items, "items"),
        (Self::Limit, "limit"),
        (Self::Call, "call"),
        (Self::Foreign, "foreign"),
        (Self::PageFault, "page-fault"),
        (Self::Exception, "exception"),
        (Self::Asked, "asked"),
        (Self::Tables, "tables"),
        (Self::Control, "control"),
        (Self::Slice, "slice"),
        (Self::Urgent, "urgent"),
    ];
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
