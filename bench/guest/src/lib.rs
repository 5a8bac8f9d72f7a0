//! What the measured programs share: marks, partners, memory, rows.
//!
//! A measured program is a root task without any system around it. It brackets
//! what is to be measured with two marks (`marks`) that the instrument sees, and
//! says on the console which samples belong to which row (`report`). The partners
//! (`partner`) are threads inside the root task's space or in spaces of their own.
#![no_std]
#![deny(unsafe_code)]

pub mod calls;
pub mod check;
pub mod crowd;
pub mod exchange;
pub mod fault;
pub mod fixup;
pub mod growth;
pub mod irq;
pub mod life;
pub mod lrpc;
pub mod mapping;
pub mod marks;
pub mod memory;
pub mod partner;
pub mod report;
pub mod smp;

pub use report::Samples;

/// Makes `$main` (a `fn() -> Result<(), &'static str>`) a measured root task.
#[macro_export]
macro_rules! measured {
    ($main:path) => {
        runtime::boot_entry!(entry);

        fn entry() -> ! {
            $crate::report::begin();
            match $main() {
                Ok(()) => $crate::report::end(),
                Err(why) => $crate::report::fail(why),
            }
        }
    };
}
