//! Disjoint regions of one resource, each with an owner.

use abi::ThreadId;

/// To whom a region belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// Nobody may have it: the kernel's, σ0's own, or not there.
    Reserved,
    /// Free conventional memory (a free port): given to the first who asks.
    Free,
    /// Free memory that is not conventional (devices, tables, boot modules):
    /// given only to who asks for its address.
    Special,
    /// Given to everybody, again and again.
    Shared,
    /// Given to this thread.
    Thread(ThreadId),
}

/// A region: first and last address, both inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Region {
    low: u64,
    high: u64,
    owner: Owner,
}

/// The table has no room for another region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// At most `N` regions; together they always cover 0 to `u64::MAX`.
pub struct Regions<const N: usize> {
    list: [Region; N],
    len: usize,
}

const EVERYTHING: Region = Region { low: 0, high: u64::MAX, owner: Owner::Reserved };

impl<const N: usize> Default for Regions<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Regions<N> {
    /// One reserved region.
    #[must_use]
    pub const fn new() -> Self {
        Self { list: [EVERYTHING; N], len: 1 }
    }

    /// Number of regions.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Never: there is always a region.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// All regions in order: low, high (inside), owner.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, Owner)> {
        self.list[..self.len].iter().map(|r| (r.low, r.high, r.owner))
    }

    /// Gives `low..=high` to `owner`, whoever had it. Changes nothing when [`Full`].
    pub fn assign(&mut self, low: u64, high: u64, owner: Owner) -> Result<(), Full> {
        if low > high {
            return Ok(());
        }
        let first = self.find(low);
        let last = self.find(high);
        let before = self.list[first];
        let after = self.list[last];
        let mut new = [EVERYTHING; 3];
        let mut count = 0;
        let mut push = |region: Region| {
            new[count] = region;
            count += 1;
        };
        if before.low < low {
            push(Region { high: low - 1, ..before });
        }
        push(Region { low, high, owner });
        if after.high > high {
            push(Region { low: high + 1, ..after });
        }
        self.replace(first, last, &new[..count])?;
        self.merge_around(first, count);
        Ok(())
    }

    /// Index of the region that contains `address`.
    fn find(&self, address: u64) -> usize {
        self.list[..self.len].partition_point(|region| region.high < address)
    }

    /// Replaces regions `first..=last` by `new`.
    fn replace(&mut self, first: usize, last: usize, new: &[Region]) -> Result<(), Full> {
        let len = self.len - (last - first + 1) + new.len();
        if len > N {
            return Err(Full);
        }
        self.list.copy_within(last + 1..self.len, first + new.len());
        self.list[first..first + new.len()].copy_from_slice(new);
        self.len = len;
        Ok(())
    }

    /// Joins neighbours with one owner around the `count` regions from `first`.
    fn merge_around(&mut self, first: usize, count: usize) {
        let mut at = first.saturating_sub(1);
        let mut checks = count + 1;
        while checks > 0 && at + 1 < self.len {
            checks -= 1;
            if self.list[at].owner == self.list[at + 1].owner {
                self.list[at].high = self.list[at + 1].high;
                self.list.copy_within(at + 2..self.len, at + 1);
                self.len -= 1;
            } else {
                at += 1;
            }
        }
    }

    /// Whether every region that meets `low..=high` has an owner that `test` accepts.
    #[must_use]
    pub fn all(&self, low: u64, high: u64, test: impl Fn(Owner) -> bool) -> bool {
        self.list[self.find(low)..self.len]
            .iter()
            .take_while(|r| r.low <= high)
            .all(|r| test(r.owner))
    }

    /// The highest naturally aligned block of 2^`bits` bytes that is all [`Owner::Free`].
    #[must_use]
    pub fn highest_free(&self, bits: u32) -> Option<u64> {
        if bits > 63 {
            return None;
        }
        let size = 1u64 << bits;
        self.list[..self.len].iter().rev().filter(|r| r.owner == Owner::Free).find_map(|r| {
            // `high + 1` cannot overflow for memory: regions end below 2^64 (the
            // last region of all is reserved).
            let base = (r.high.checked_add(1)?.checked_sub(size)?) >> bits << bits;
            (base >= r.low).then_some(base)
        })
    }

    /// Bytes whose owner `test` accepts.
    #[must_use]
    pub fn total(&self, test: impl Fn(Owner) -> bool) -> u64 {
        self.iter()
            .filter(|r| test(r.2))
            .fold(0, |sum: u64, r| sum.saturating_add((r.1 - r.0).saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use std::vec;
    use std::vec::Vec;

    const A: Owner = Owner::Thread(ThreadId::global(100, 1));

    #[test]
    fn splits_and_joins() {
        let mut regions = Regions::<8>::new();
        regions.assign(0x1000, 0x8FFF, Owner::Free).unwrap();
        regions.assign(0x3000, 0x3FFF, A).unwrap();
        regions.assign(0x5000, 0x5FFF, A).unwrap();
        assert_eq!(regions.len(), 7);
        regions.assign(0x4000, 0x4FFF, A).unwrap();
        let found: Vec<_> = regions.iter().map(|r| (r.0, r.1)).collect();
        assert_eq!(
            found,
            [(0, 0xFFF), (0x1000, 0x2FFF), (0x3000, 0x5FFF), (0x6000, 0x8FFF), (0x9000, u64::MAX)]
        );
    }

    #[test]
    fn full_changes_nothing() {
        let mut regions = Regions::<3>::new();
        regions.assign(0x1000, 0x8FFF, Owner::Free).unwrap();
        let before: Vec<_> = regions.iter().collect();
        assert_eq!(regions.assign(0x3000, 0x3FFF, A), Err(Full));
        assert_eq!(regions.iter().collect::<Vec<_>>(), before);
    }

    #[test]
    fn highest_aligned_block() {
        let mut regions = Regions::<8>::new();
        regions.assign(0, 0x9_FFFF, Owner::Free).unwrap();
        regions.assign(0x10_0000, 0x7FF_EFFF, Owner::Free).unwrap();
        assert_eq!(regions.highest_free(12), Some(0x7FF_E000));
        assert_eq!(regions.highest_free(21), Some(0x7C0_0000));
        assert_eq!(regions.highest_free(26), None);
        assert_eq!(regions.highest_free(25), Some(0x400_0000));
        assert_eq!(regions.highest_free(64), None);
    }

    /// Random assignments against an array with one entry per page.
    #[test]
    fn agrees_with_a_page_array() {
        let owners = [Owner::Reserved, Owner::Free, Owner::Special, Owner::Shared, A];
        let mut seed = 12345u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let mut regions = Regions::<200>::new();
        let mut model = vec![Owner::Reserved; 64];
        for _ in 0..5000 {
            let (a, b, owner) = (random(64), random(64), owners[random(5) as usize]);
            let (low, high) = (a.min(b), a.max(b));
            regions.assign(low * 4096, high * 4096 + 4095, owner).unwrap();
            model[low as usize..=high as usize].fill(owner);
            for (page, owner) in model.iter().enumerate() {
                assert!(
                    regions.all(page as u64 * 4096, page as u64 * 4096 + 4095, |o| o == *owner)
                );
            }
            let joined = regions
                .iter()
                .zip(regions.iter().skip(1))
                .all(|(x, y)| x.2 != y.2 && x.1 + 1 == y.0);
            assert!(joined, "neighbours with one owner, or a gap");
        }
    }
}
