//! The ways into the kernel, and back: from the boot loader, from user mode, from interrupts and exceptions.
//! Nobody in the kernel knows who is above it, and these know everybody: each entry leads to the room
//! whose it is, and nothing but the processor leads here. So this is a room of its own, above all others.

pub mod again;
pub mod armed;
pub mod asked;
pub mod boot_kernel;
pub mod boot_sequence;
pub mod complete;
pub mod fast_path;
pub mod switch;
pub mod trap;
pub mod visitors;
