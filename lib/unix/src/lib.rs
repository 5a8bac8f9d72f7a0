//! Unix as a library: what a Linux program expects from its kernel, over an
//! abstract [`machine::Machine`] that can map pages, start threads and tell the time.
//!
//! One event at a time: a program's system call, page fault or exception, an alarm,
//! input from the console. Nothing here ever waits: a call that cannot go on yet
//! registers its thread with a [`wait::WaitQueue`] and is tried again from its
//! beginning when the queue is woken. So a client can never hold up the server.
//!
//! `servers/unix` binds this to Baton; the tests bind it to a machine made of
//! ordinary memory, so that everything but the binding is tested on the host.
//!
//! | module | owns |
//! |---|---|
//! | `machine`, `memory` | what lies below: spaces, threads, frames |
//! | `account` | who pays for what |
//! | `unix`, `call`, `wait`, `thread`, `process` | the one server object, the way of a call, who waits for what |
//! | `process`, `signal`, `time` | processes, threads, job control, signals, timers |
//! | `mm`, `exec` | address spaces, page faults, programs, futexes |
//! | `fs` | file systems, paths, regular files, directories, `/proc`, `/dev` |
//! | `ipc` | System V's message queues, shared memory, semaphores |
//! | `keys` | keys and keyrings |
//! | `log` | what the server said: `dmesg`, `/dev/kmsg` |
//! | `file`, `stream`, `tty` | descriptors, pipes, sockets, polling, terminals |

#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

pub mod account;
pub mod call;
pub mod dump;
pub mod errno;
pub mod exec;
pub mod file;
pub mod fs;
pub mod ipc;
mod kernel_memory;
pub mod keys;
pub mod log;
pub mod machine;
pub mod memory;
pub mod mm;
pub mod process;
mod room;
pub mod signal;
pub mod stream;
pub mod thread;
pub mod time;
pub mod trace;
pub mod tty;
mod turn;
pub mod unix;
pub mod user;
pub mod wait;
pub mod weak_list;

pub use call::{Answer, Cx, Stop};
pub use errno::Errno;
pub use unix::Unix;
