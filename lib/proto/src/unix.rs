//! The Unix server's own interface, beside the system calls of its programs:
//! `interfaces/unix.wit`.

pub use interfaces::unix::label::STATISTICS;

/// The name under which the Unix server registers.
pub const NAME: &str = "unix";
