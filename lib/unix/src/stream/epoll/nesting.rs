//! Epolls in epolls: how deep they lie, and that none lies in itself.
//!
//! Nothing is remembered of how deep an epoll lies: it is found out when one is put into another, from those that
//! it is in and those that are in it by then. So long as nothing is deeper than [`NESTING`], recursion ends soon.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;

use super::{Epoll, of};
use crate::errno::Errno;
use crate::file::Open;

/// In how many others an epoll can lie, one in the other.
const NESTING: usize = 4;

/// How deep epolls are that were looked at.
type Levels = BTreeMap<*const Epoll, usize>;

impl Epoll {
    /// How many epolls it is inside of, one in the other.
    fn above(&self, known: &mut Levels) -> usize {
        let at = core::ptr::from_ref(self);
        if let Some(level) = known.get(&at) {
            return *level;
        }
        let mut level = 0;
        self.holders.visit(|holder| level = level.max(1 + holder.above(known)));
        known.insert(at, level);
        level
    }

    /// How many epolls are inside of it, one in the other. What is deeper than may be is not looked for.
    ///
    /// # Errors
    /// `ELOOP` if `holder` is one of them.
    fn below(&self, holder: &Epoll, known: &mut Levels) -> Result<usize, Errno> {
        let at = core::ptr::from_ref(self);
        if core::ptr::eq(self, holder) {
            return Err(Errno::ELOOP);
        }
        if let Some(level) = known.get(&at) {
            return Ok(*level);
        }
        let held: Vec<Rc<Open>> = {
            let items = self.items.borrow();
            let open = items.values().filter_map(|item| item.open.upgrade());
            open.filter(|open| of(open).is_some()).collect()
        };
        let mut level = 0;
        for inner in held.iter().filter_map(|open| of(open)) {
            level = level.max(1 + inner.below(holder, known)?);
        }
        known.insert(at, level);
        Ok(level)
    }

    /// It comes to lie in `holder`, once more.
    ///
    /// # Errors
    /// `ELOOP` for what would be too deep, or a circle.
    pub(super) fn enter(&self, holder: &Epoll) -> Result<(), Errno> {
        let below = self.below(holder, &mut Levels::new())?;
        if holder.above(&mut Levels::new()) + 1 + below > NESTING {
            return Err(Errno::ELOOP);
        }
        self.holders.push(holder.this.clone());
        Ok(())
    }
}

impl Drop for Epoll {
    /// Those in it know.
    fn drop(&mut self) {
        for item in self.items.get_mut().values() {
            let open = item.open.upgrade();
            if let Some(inner) = open.as_ref().and_then(|open| of(open)) {
                inner.holders.one_has_ended();
            }
        }
    }
}

/// An entry of `holder` has gone: an epoll in it knows.
pub(super) fn left(open: &Open, holder: &Epoll) {
    if let Some(inner) = of(open) {
        inner.holders.remove(holder);
    }
}
