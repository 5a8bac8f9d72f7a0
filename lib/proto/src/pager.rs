//! The pager's own interface, beside the kernel's page-fault protocol.

/// The name under which the pager registers.
pub const NAME: &str = "pager";

const BASE: u64 = 0x300;

/// Reply: MR1 frames, MR2 of them in use, MR3 faults answered since it started,
/// MR4 text pages given, MR5 times that it was started on this pool.
pub const STATISTICS: u64 = BASE;
/// From the root task: MR1 task slot is over; its frames are free. No reply.
pub const FORGET: u64 = BASE + 1;
