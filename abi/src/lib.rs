//! What the kernel and user level share, and nothing else.
//!
//! The interface is L4 X.2 (reference manual, revision 7) with its AMD64
//! binding; where Baton extends it, the item says so. Every type here is plain
//! data: encoding, decoding and arithmetic, no policy. Both sides of the
//! protection boundary and the host tools compile the same source, so a layout
//! exists exactly once.
#![no_std]
#![forbid(unsafe_code)]

pub mod bootinfo;
pub mod devices;
pub mod error;
pub mod fpage;
pub mod framebuffer;
pub mod id;
pub mod image;
pub mod inspect;
pub mod item;
pub mod kip;
pub mod layout;
pub mod lrpc;
pub mod protocol;
pub mod riscv64;
pub mod syscall;
pub mod tag;
pub mod task;
pub mod time;
pub mod utcb;
pub mod x86_64;

// Everything else here is the same on every processor.
#[cfg(target_arch = "riscv64")]
pub use riscv64 as processor;
#[cfg(not(target_arch = "riscv64"))]
pub use x86_64 as processor;

pub use error::{CallError, IpcError, IpcErrorKind, Phase};
pub use fpage::{Fpage, Rights};
pub use framebuffer::Framebuffer;
pub use id::ThreadId;
pub use item::{Acceptor, Item, MapItem, StringItem};
pub use tag::MsgTag;
pub use task::{Ceilings, Numbers};
pub use time::{Time, Timeouts};
