//! The pager's own interface, beside the kernel's page-fault protocol: `interfaces/pager.wit`.

pub use interfaces::pager::label::{FORGET, STATISTICS};

/// The name under which the pager registers.
pub const NAME: &str = "pager";
