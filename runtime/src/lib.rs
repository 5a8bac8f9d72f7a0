//! Baton's user-level runtime.
//!
//! Everything that has to be `unsafe` in a user program lives here: the entry
//! code, the system-call stubs, the UTCB, thread start, the heap, windows onto
//! memory that another task mapped, I/O ports. Programs and servers are written
//! against the safe interface of these modules and contain no `unsafe` code of
//! their own (the entry macro below expands to the only exported symbol).
//!
//! A program is a crate with `#![no_std] #![no_main]`, a `build.rs` that passes
//! one of the scripts in `runtime/link/`, and
//!
//! ```ignore
//! runtime::entry!(main);
//! fn main() { runtime::println!("hello"); }
//! ```
#![no_std]

extern crate alloc;

mod a_stacks;
pub mod accept;
mod block;
pub mod clock;
pub mod console;
pub mod direct;
mod entry;
pub mod heap;
pub mod ipc;
pub mod kernel;
pub mod kip;
pub mod layout;
pub mod lrpc;
pub mod misdeed;
mod panic;
pub mod pool;
pub mod port;
pub mod random;
pub mod root;
pub mod schedule;
pub mod section;
pub mod service;
pub mod sigma0;
pub mod space;
pub mod sync;
pub mod syscall;
pub mod thread;
pub mod utcb;
pub mod window;
pub mod workers;

pub use abi;
pub use entry::{exit, start_boot, start_task};
pub use ipc::Msg;

/// Makes `$main` (a `fn()`) the first function of an ordinary task.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        /// Called by the runtime's `_start`.
        #[allow(unsafe_code)]
        #[unsafe(no_mangle)]
        extern "C" fn baton_main() -> ! {
            $crate::start_task();
            $main();
            $crate::exit(0)
        }
    };
}

/// Makes `$main` (a `fn() -> !`) the first function of an initial server (σ0, root task).
#[macro_export]
macro_rules! boot_entry {
    ($main:path) => {
        /// Called by the runtime's `_start`.
        #[allow(unsafe_code)]
        #[unsafe(no_mangle)]
        extern "C" fn baton_main() -> ! {
            $crate::start_boot();
            $main()
        }
    };
}
