//! Fixed addresses that user level may see.

/// One past the last user address. The page below is never mapped, so that no
/// `syscall` can end at a non-canonical address.
pub const USER_END: u64 = 0x0000_7FFF_FFFF_F000;
/// KIP address in the initial servers. These see memory at its physical address, so this and their
/// UTCBs lie where no machine has memory: just below what 47 bits can say.
pub const INITIAL_KIP: u64 = 0x7FFF_BFF0_0000;
/// UTCB area of the initial servers: 256 UTCBs.
pub const INITIAL_UTCB_AREA: u64 = 0x7FFF_BF00_0000;
/// Log2 size of the initial servers' UTCB areas.
pub const INITIAL_UTCB_BITS: u32 = 18;

/// The kernel's user page: system-call stubs (user-executable, every space).
pub const STUBS: u64 = 0xFFFF_FFFF_FFE0_0000;
/// Distance between two stubs, bytes.
pub const STUB_SIZE: u64 = 0x80;
/// The kernel's user data page (user-readable): clock parameters.
pub const USER_DATA: u64 = STUBS + 0x1000;

/// Index of each stub in the user page.
pub mod stub {
    /// Ipc.
    pub const IPC: u64 = 0;
    /// Lipc.
    pub const LIPC: u64 = 1;
    /// ExchangeRegisters.
    pub const EXCHANGE_REGISTERS: u64 = 2;
    /// ThreadControl.
    pub const THREAD_CONTROL: u64 = 3;
    /// SystemClock.
    pub const SYSTEM_CLOCK: u64 = 4;
    /// ThreadSwitch.
    pub const THREAD_SWITCH: u64 = 5;
    /// Schedule.
    pub const SCHEDULE: u64 = 6;
    /// Unmap.
    pub const UNMAP: u64 = 7;
    /// SpaceControl.
    pub const SPACE_CONTROL: u64 = 8;
    /// ProcessorControl.
    pub const PROCESSOR_CONTROL: u64 = 9;
    /// MemoryControl.
    pub const MEMORY_CONTROL: u64 = 10;
    /// Baton: QuotaControl.
    pub const QUOTA_CONTROL: u64 = 11;
    /// Baton: Inspect.
    pub const INSPECT: u64 = 12;
    /// Baton: ThreadState.
    pub const THREAD_STATE: u64 = 13;
    /// Baton: TaskControl.
    pub const TASK_CONTROL: u64 = 14;
    /// Baton: CreateThread.
    pub const CREATE_THREAD: u64 = 15;
    /// Baton: a call of a thread of the same space, in user mode where that is possible.
    pub const LOCAL_CALL: u64 = 16;
    /// Baton: likewise an answer and the wait for the next request.
    pub const LOCAL_REPLY_WAIT: u64 = 17;
    /// What the two do where it is not; takes two places.
    pub const LOCAL_SLOW: u64 = 18;
    /// Baton: hands a critical section's thread something to do, in user mode where that is possible.
    pub const SECTION_ENTER: u64 = 20;
    /// What that thread does then: the work, the answer, and the wait for more; takes two places.
    pub const SECTION_RUN: u64 = 21;
    /// [`LOCAL_CALL`] with a tag of at most seven untyped words and nothing else, which it does not look at, and without a
    /// limit.
    pub const LOCAL_CALL_ONE: u64 = 23;
    /// [`LOCAL_REPLY_WAIT`] that waits for anybody, and not for the receiver.
    pub const LOCAL_ONWARD: u64 = 24;
    /// Number of stubs.
    pub const COUNT: u64 = 25;
}

/// The address of stub number `index`, the same in every space.
#[must_use]
pub const fn stub_address(index: u64) -> u64 {
    STUBS + index * STUB_SIZE
}
