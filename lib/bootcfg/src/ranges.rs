//! A few ranges of one resource.

/// How many of a kind a task can have.
pub const LIST: usize = 4;

/// At most [`LIST`] ranges, each first and last, both inside.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ranges {
    list: [(u64, u64); LIST],
    count: usize,
}

impl Ranges {
    /// Adds `count` numbers from `first`; `None` if they are not there or there is no room.
    #[must_use]
    pub fn add(&mut self, first: u64, count: u64) -> Option<()> {
        let last = first.checked_add(count.checked_sub(1)?)?;
        *self.list.get_mut(self.count)? = (first, last);
        self.count += 1;
        Some(())
    }

    /// Whether one of the ranges holds all `count` numbers from `first`.
    #[must_use]
    pub fn hold(&self, first: u64, count: u64) -> bool {
        let Some(last) = count.checked_sub(1).and_then(|more| first.checked_add(more)) else {
            return false;
        };
        self.iter().any(|(low, high)| low <= first && last <= high)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.list[..self.count].iter().copied()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// What two ranges share.
#[must_use]
pub fn shared(a: (u64, u64), b: (u64, u64)) -> Option<(u64, u64)> {
    let both = (a.0.max(b.0), a.1.min(b.1));
    (both.0 <= both.1).then_some(both)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_what_lies_inside_one_of_them() {
        let mut ranges = Ranges::default();
        assert!(ranges.is_empty() && !ranges.hold(0, 1));
        ranges.add(0x10, 0x10).unwrap();
        ranges.add(0x20, 1).unwrap();
        ranges.add(u64::MAX, 1).unwrap();
        assert_eq!(ranges.add(u64::MAX, 2), None);
        assert_eq!(ranges.add(5, 0), None);
        assert!(ranges.hold(0x10, 0x10) && ranges.hold(0x1F, 1) && ranges.hold(u64::MAX, 1));
        assert!(!ranges.hold(0x1F, 2), "two ranges that touch are two");
        assert!(!ranges.hold(0xF, 2) && !ranges.hold(0x10, 0) && !ranges.hold(u64::MAX, 2));
    }

    #[test]
    fn what_ranges_share() {
        assert_eq!(shared((1, 5), (5, 9)), Some((5, 5)));
        assert_eq!(shared((1, 5), (6, 9)), None);
        assert_eq!(shared((0, u64::MAX), (3, 4)), Some((3, 4)));
    }
}
