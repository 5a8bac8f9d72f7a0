//! Doubly linked rings of kernel objects, with the links in the objects themselves (Liedtke
//! 1993, 5.3.2): all threads, the threads of a task, those that are ready, that wait to send,
//! that wait for a time, all tasks, the slabs of a space. Nothing is allocated, and whoever goes leaves at once.
//!
//! Invariant, which [`Ring::members`] checks: a ring is closed, both ways; whoever has links is in
//! exactly one ring of its kind, and whoever has none is in none.

use core::cell::Cell;
use core::marker::PhantomData;

use crate::arch::preemption::Pace;

/// A member's place in one kind of ring; without neighbours while it is in none.
pub struct Links<M> {
    next: Cell<Option<M>>,
    prev: Cell<Option<M>>,
}

impl<M> Default for Links<M> {
    fn default() -> Self {
        Self { next: Cell::new(None), prev: Cell::new(None) }
    }
}

impl<M: Copy> Links<M> {
    /// Whether there is a ring that goes through here.
    #[inline(always)]
    #[must_use]
    pub fn are_linked(&self) -> bool {
        self.next.get().is_some()
    }

    /// Says that `member` comes next; for tests that break rings.
    pub fn set_next(&self, member: M) {
        self.next.set(Some(member));
    }

    /// Says that `member` comes before; for tests that break rings.
    pub fn set_prev(&self, member: M) {
        self.prev.set(Some(member));
    }
}

/// A kind of ring: what is in it, and where its links are.
pub trait Through {
    /// What is in the ring.
    type Member: Copy + PartialEq;

    /// The links of `member` in rings of this kind.
    fn links(member: &Self::Member) -> &Links<Self::Member>;
}

/// Declares kinds of rings: `NAME of MEMBER: FIELD` leads through the links in that field.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident of $member:ty: $($field:ident).+;)*) => {$(
        $(#[$doc])*
        pub struct $kind;

        impl $crate::ring::Through for $kind {
            type Member = $member;

            #[inline(always)]
            fn links(member: &$member) -> &$crate::ring::Links<$member> {
                &member.$($field).+
            }
        }
    )*};
}
pub(crate) use kinds;

/// A ring, by its first member.
pub struct Ring<K: Through> {
    first: Cell<Option<K::Member>>,
    kind: PhantomData<K>,
}

impl<K: Through> Default for Ring<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Through> Ring<K> {
    /// A ring without members.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: Cell::new(None), kind: PhantomData }
    }

    /// The first member.
    #[inline(always)]
    #[must_use]
    pub fn first(&self) -> Option<K::Member> {
        self.first.get()
    }

    /// The last member.
    #[inline]
    #[must_use]
    pub fn last(&self) -> Option<K::Member> {
        K::links(&self.first.get()?).prev.get()
    }

    /// Whether nobody is in it.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.get().is_none()
    }

    /// Makes `member`, which is in no ring of this kind, the last.
    #[inline]
    pub fn append(&self, member: K::Member) {
        let own = K::links(&member);
        let first = match self.first.get() {
            Some(first) => first,
            None => {
                self.first.set(Some(member));
                own.next.set(Some(member));
                return own.prev.set(Some(member));
            }
        };
        let last = K::links(&first).prev.replace(Some(member)).unwrap_or(first);
        own.next.set(Some(first));
        own.prev.set(Some(last));
        K::links(&last).next.set(Some(member));
    }

    /// All members of `other` become the last of this ring, in their order.
    #[inline]
    pub fn take_in(&self, other: &Self) {
        let Some(begin) = other.first.take() else { return };
        let Some(first) = self.first.get() else { return self.first.set(Some(begin)) };
        let last = K::links(&first).prev.get().unwrap_or(first);
        let end = K::links(&begin).prev.replace(Some(last)).unwrap_or(begin);
        K::links(&last).next.set(Some(begin));
        K::links(&end).next.set(Some(first));
        K::links(&first).prev.set(Some(end));
    }

    /// Takes `member` out, which is in this ring or in none; whether it was in.
    #[inline]
    pub fn remove(&self, member: K::Member) -> bool {
        let own = K::links(&member);
        let Some(next) = own.next.get() else { return false };
        let prev = own.prev.get().unwrap_or(member);
        own.next.set(None);
        own.prev.set(None);
        if next == member {
            self.first.set(None);
            return true;
        }
        K::links(&next).prev.set(Some(prev));
        K::links(&prev).next.set(Some(next));
        if self.first.get() == Some(member) {
            self.first.set(Some(next));
        }
        true
    }

    /// Turns the ring so that `member`, one of its own, is the first.
    #[inline]
    pub fn turn_to(&self, member: K::Member) {
        self.first.set(Some(member));
    }

    /// Turns the ring so that `member`, one of its own, is the last.
    #[inline(always)]
    pub fn turn_behind(&self, member: K::Member) {
        self.first.set(K::links(&member).next.get());
    }

    /// Makes `member`, one of its own, the first; the others stay in order.
    #[inline(always)]
    pub fn bring_forward(&self, member: K::Member) {
        let own = K::links(&member);
        let neighbours = (own.next.get(), own.prev.get(), self.first.get());
        let (Some(next), Some(prev), Some(first)) = neighbours else { return };
        if first == member {
            return;
        }
        K::links(&next).prev.set(Some(prev));
        K::links(&prev).next.set(Some(next));
        let last = K::links(&first).prev.replace(Some(member)).unwrap_or(first);
        own.next.set(Some(first));
        own.prev.set(Some(last));
        K::links(&last).next.set(Some(member));
        self.first.set(Some(member));
    }

    /// Who comes behind `member`, one of its own; nobody behind the last.
    #[inline]
    #[must_use]
    pub fn behind(&self, member: K::Member) -> Option<K::Member> {
        K::links(&member).next.get().filter(|next| Some(*next) != self.first.get())
    }

    /// All members, from the first on. Users decide how many there are, so interrupts are noted on
    /// the way. The member that came last may leave the ring.
    #[inline]
    pub fn iter(&self) -> Members<K> {
        let first = self.first();
        Members { next: first, last: self.last().or(first), pace: Pace::default() }
    }

    /// Calls `visit` for all members, none of whom leaves the ring meanwhile: shorter than
    /// [`Self::iter`].
    #[inline]
    pub fn each(&self, mut visit: impl FnMut(K::Member)) {
        let Some(first) = self.first.get() else { return };
        let mut member = first;
        let mut pace = Pace::default();
        loop {
            pace.round();
            visit(member);
            match K::links(&member).next.get() {
                Some(next) if next != first => member = next,
                _ => return,
            }
        }
    }

    /// Calls `each` for the members; how many there are, or `None` if the links are broken or
    /// there are more than `most`.
    pub fn members(&self, most: u64, mut each: impl FnMut(K::Member)) -> Option<u64> {
        let Some(first) = self.first.get() else { return Some(0) };
        let (mut member, mut count) = (first, 0);
        loop {
            count += 1;
            each(member);
            let next = K::links(&member).next.get()?;
            if K::links(&next).prev.get() != Some(member) || count > most {
                return None;
            }
            if next == first {
                return Some(count);
            }
            member = next;
        }
    }
}

/// The members of a ring, one after the other.
pub struct Members<K: Through> {
    next: Option<K::Member>,
    last: Option<K::Member>,
    pace: Pace,
}

impl<K: Through> Iterator for Members<K> {
    type Item = K::Member;

    #[inline]
    fn next(&mut self) -> Option<K::Member> {
        let member = self.next?;
        self.pace.round();
        let more = self.last != Some(member);
        self.next = if more { K::links(&member).next.get() } else { None };
        Some(member)
    }
}
