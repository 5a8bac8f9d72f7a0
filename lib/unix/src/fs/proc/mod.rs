//! `/proc`.

use alloc::rc::Rc;

use super::inode::Inode;

/// An inode of `/proc`.
pub struct Node {}

impl Node {
    /// The directory above.
    #[must_use]
    pub fn parent(&self) -> Option<Rc<Inode>> {
        None
    }

    /// `S_IFMT` part of the mode.
    #[must_use]
    pub fn file_type(&self) -> u32 {
        linux_raw_sys::general::S_IFREG
    }
}
