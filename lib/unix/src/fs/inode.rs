//! Inodes: what a file is, apart from its names.

use alloc::rc::Weak;
use core::any::Any;
use core::cell::RefCell;

/// An inode.
pub struct Inode {
    /// What a fifo's or a bound socket's inode leads to.
    pub bound: RefCell<Option<Weak<dyn Any>>>,
}
