//! Who has a file mapped.

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::RefCell;

use crate::mm::AddressSpace;
use crate::room::Room;

/// Address spaces that have a file mapped, or have had it since they were made, in the order of their addresses. Each
/// knows of this and leaves when it ends.
#[derive(Default)]
pub struct Mappers(RefCell<Vec<Weak<AddressSpace>>>);

impl Mappers {
    /// Where `space` is, or belongs.
    fn place(list: &[Weak<AddressSpace>], space: *const AddressSpace) -> Result<usize, usize> {
        list.binary_search_by_key(&space, Weak::as_ptr)
    }

    /// `space` is one of them; whether it was not yet.
    pub(super) fn join(&self, space: &Rc<AddressSpace>) -> bool {
        let mut list = self.0.borrow_mut();
        let Err(place) = Self::place(&list, Rc::as_ptr(space)) else { return false };
        list.insert(place, Rc::downgrade(space));
        true
    }

    /// `space` ends.
    pub fn leave(&self, space: &AddressSpace) {
        let mut list = self.0.borrow_mut();
        if let Ok(place) = Self::place(&list, space) {
            list.remove(place);
            list.trim();
        }
    }

    /// Those that are there.
    pub(super) fn all(&self) -> Vec<Rc<AddressSpace>> {
        self.0.borrow().iter().filter_map(Weak::upgrade).collect()
    }
}
