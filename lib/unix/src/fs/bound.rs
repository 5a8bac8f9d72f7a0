//! What the inode of a fifo or of a socket with a name leads to, as long as that is there.

use alloc::rc::Rc;
use core::any::Any;

use super::inode::Inode;

impl Inode {
    /// It leads to `what` from now on.
    pub(crate) fn bind(&self, what: &Rc<dyn Any>) {
        self.bound.replace(Some(Rc::downgrade(what)));
    }

    /// What it may lead to is being dropped.
    pub(crate) fn unbind<T>(&self, what: &T) {
        let mut bound = self.bound.borrow_mut();
        if bound.as_ref().is_some_and(|bound| core::ptr::addr_eq(bound.as_ptr(), what)) {
            *bound = None;
        }
    }
}
