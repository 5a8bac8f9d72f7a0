//! The Unix server's own interface, beside the system calls of its programs.

/// The name under which the Unix server registers.
pub const NAME: &str = "unix";

const BASE: u64 = 0x500;

/// Reply: MR1 system calls, faults and exceptions of programs since the server started.
pub const STATISTICS: u64 = BASE;
