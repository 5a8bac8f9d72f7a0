//! Lists of what may end at any time.

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::room::Room;

/// Weak references, in the order in which they came. An entry holds the memory of what has ended (not what that
/// held), which nobody pays for any more, so each that ends says so ([`Self::one_has_ended`]): no more than half of
/// all have ended, and ending costs the same on the average however many there are.
pub struct WeakList<T: ?Sized> {
    list: RefCell<Vec<Weak<T>>>,
    ended: Cell<usize>,
}

impl<T: ?Sized> Default for WeakList<T> {
    fn default() -> Self {
        Self { list: RefCell::default(), ended: Cell::default() }
    }
}

impl<T: ?Sized> WeakList<T> {
    /// `one` is the last.
    pub fn push(&self, one: Weak<T>) {
        self.list.borrow_mut().push(one);
    }

    /// Whether there is none, neither one that has ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.borrow().is_empty()
    }

    /// Those that are there.
    pub fn visit(&self, mut each: impl FnMut(Rc<T>)) {
        self.list.borrow().iter().filter_map(Weak::upgrade).for_each(&mut each);
    }

    /// Keeps those of which `keeps` says so.
    pub fn retain(&self, mut keeps: impl FnMut(Rc<T>) -> bool) {
        self.ended.set(0);
        let mut list = self.list.borrow_mut();
        list.retain(|one| one.upgrade().is_some_and(&mut keeps));
        self.settle(&mut list);
    }

    /// Takes `one` out, once.
    pub fn remove(&self, one: *const T) {
        let mut list = self.list.borrow_mut();
        let at = list.iter().position(|other| core::ptr::addr_eq(other.as_ptr(), one));
        at.map(|at| list.swap_remove(at));
        self.settle(&mut list);
    }

    /// One that is in the list, once for each time, is being dropped.
    pub fn one_has_ended(&self) {
        self.ended.set(self.ended.get() + 1);
        // Not while somebody goes through it: then it is for the next one.
        if let Ok(mut list) = self.list.try_borrow_mut() {
            self.settle(&mut list);
        }
    }

    /// Lets those go that have ended if they are half of all, and room that is for many more.
    fn settle(&self, list: &mut Vec<Weak<T>>) {
        if self.ended.get() > 0 && 2 * self.ended.get() >= list.len() {
            list.retain(|one| one.strong_count() > 0);
            self.ended.set(0);
        }
        if list.is_empty() { list.shrink() } else { list.trim() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says that it has ended.
    struct One(Rc<WeakList<One>>);

    impl Drop for One {
        fn drop(&mut self) {
            self.0.one_has_ended();
        }
    }

    fn add(list: &Rc<WeakList<One>>, count: usize) -> Vec<Rc<One>> {
        let all: Vec<Rc<One>> = (0..count).map(|_| Rc::new(One(list.clone()))).collect();
        all.iter().for_each(|one| list.push(Rc::downgrade(one)));
        all
    }

    #[test]
    fn no_more_than_half_have_ended() {
        let list = Rc::new(WeakList::default());
        let (stay, mut go) = (add(&list, 10), add(&list, 50));
        while go.pop().is_some() {
            let entries = list.list.borrow().len();
            assert!(entries < 2 * (10 + go.len()), "{entries} entries for {}", 10 + go.len());
        }
        drop(stay);
        assert!(list.is_empty());
        assert_eq!(list.list.borrow().capacity(), 0);
    }

    #[test]
    fn those_that_are_taken_out_leave_no_others_that_have_ended() {
        let list = Rc::new(WeakList::default());
        let (stay, go) = (add(&list, 21), add(&list, 19));
        drop(go);
        assert_eq!(list.list.borrow().len(), 40);
        stay.iter().for_each(|one| list.remove(Rc::as_ptr(one)));
        assert!(list.is_empty());
        assert_eq!(list.list.borrow().capacity(), 0);
    }

    #[test]
    fn who_ends_while_others_are_visited_is_seen_to_later() {
        let list = Rc::new(WeakList::default());
        let mut all = add(&list, 4);
        list.visit(|_| drop(all.pop()));
        assert_eq!(list.list.borrow().len(), 4);
        drop(all);
        drop(add(&list, 1));
        assert!(list.is_empty());
    }
}
