//! The processor's half of memory: what a space is for it, and what it has to be told.

pub mod iobitmap;
pub mod pcid;
pub mod root;
pub mod tlb;

pub use iobitmap as ports;
