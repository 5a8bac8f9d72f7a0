//! Room in lists that have been longer.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Places that are no waste.
const FEW: usize = 8;

/// A list in an object that stays when what was in it has gone, and who paid for that pays no more.
pub trait Room {
    /// Something was taken out: room for more than four times what is left is given back ([`Self::shrink`]). Taking out
    /// costs the same on the average.
    fn trim(&mut self);

    /// Keeps room for twice what is there, if there is memory for as much beside it.
    fn shrink(&mut self);
}

macro_rules! room {
    ($($list:ident)*) => {
        $(
            impl<T> Room for $list<T> {
                #[inline]
                fn trim(&mut self) {
                    if self.capacity() > FEW && self.len() < self.capacity() / 4 {
                        self.shrink();
                    }
                }

                fn shrink(&mut self) {
                    let mut smaller = Self::new();
                    if smaller.try_reserve_exact(2 * self.len()).is_ok() {
                        smaller.append(self);
                        *self = smaller;
                    }
                }
            }
        )*
    };
}
room!(Vec VecDeque);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_gets_shorter_keeps_its_order_and_gives_room_back() {
        let mut list: VecDeque<u32> = (0..1000).collect();
        for number in 0..1000 {
            assert_eq!(list.pop_front(), Some(number));
            list.trim();
            assert!(list.capacity() <= (4 * list.len() + 3).max(FEW), "{}", list.capacity());
        }
        let mut list: Vec<u32> = (0..1000).collect();
        list.truncate(3);
        list.trim();
        assert_eq!((&list[..], list.capacity()), (&[0, 1, 2][..], 6));
        list.clear();
        list.trim();
        assert_eq!(list.capacity(), 6);
    }
}
