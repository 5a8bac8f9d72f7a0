//! What a server keeps for its clients, each under a number that only its owner can use.

use crate::wire::{Body, Bytes, Malformed, TooLong, Wire, Words};

/// A client's name for a resource: `63..32` its place's generation, `31..0` the place.
///
/// It is worth nothing to anybody but its owner, so nothing is lost when it is guessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle(pub u64);

impl<'a> Wire<'a> for Handle {
    const FLAT: usize = 1;

    #[inline(always)]
    fn flat(&self, put: &mut impl FnMut(u64)) {
        put(self.0);
    }

    #[inline(always)]
    fn take(words: &mut impl Words, _: &mut Bytes<'a>) -> Result<Self, Malformed> {
        Ok(Self(words.next()))
    }

    fn put_element(&self, body: &mut Body<'_>) -> Result<(), TooLong> {
        self.0.put_element(body)
    }

    fn take_element(body: &mut Bytes<'a>) -> Result<Self, Malformed> {
        u64::take_element(body).map(Self)
    }
}

/// A place: who owns what is in it, and how often it was used.
#[derive(Clone, Copy, Debug)]
struct Place<T> {
    generation: u32,
    kept: Option<(u64, T)>,
}

/// Up to `N` resources, of which one owner has at most `EACH`. An owner is a client's *task*, as
/// one word that never comes back (its number and which life of it, say), not a thread.
#[derive(Debug)]
pub struct Handles<T, const N: usize, const EACH: usize> {
    places: [Place<T>; N],
}

impl<T: Copy, const N: usize, const EACH: usize> Default for Handles<T, N, EACH> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy, const N: usize, const EACH: usize> Handles<T, N, EACH> {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self { places: [const { Place { generation: 0, kept: None } }; N] }
    }

    /// Keeps `value` for `owner`; `None` if the owner, or everybody, has as many as there may be.
    #[must_use]
    pub fn insert(&mut self, owner: u64, value: T) -> Option<Handle> {
        let owned = |place: &&Place<T>| place.kept.is_some_and(|(who, _)| who == owner);
        if self.places.iter().filter(owned).count() >= EACH {
            return None;
        }
        let index = self.places.iter().position(|place| place.kept.is_none())?;
        let place = &mut self.places[index];
        place.generation = place.generation.wrapping_add(1);
        place.kept = Some((owner, value));
        Some(Handle(u64::from(place.generation) << 32 | index as u64))
    }

    fn place(&mut self, owner: u64, handle: Handle) -> Option<&mut Place<T>> {
        let index = usize::try_from(handle.0 & 0xFFFF_FFFF).ok()?;
        let place = self.places.get_mut(index)?;
        let fits = u64::from(place.generation) == handle.0 >> 32;
        let owned = place.kept.as_ref().is_some_and(|(who, _)| *who == owner);
        (fits && owned).then_some(place)
    }

    /// What `owner` has under `handle`.
    #[must_use]
    pub fn get(&mut self, owner: u64, handle: Handle) -> Option<&mut T> {
        self.place(owner, handle)?.kept.as_mut().map(|(_, value)| value)
    }

    /// Gives it back.
    pub fn remove(&mut self, owner: u64, handle: Handle) -> Option<T> {
        self.place(owner, handle)?.kept.take().map(|(_, value)| value)
    }

    /// Drops everything of an owner that has ended.
    pub fn forget(&mut self, owner: u64) {
        for place in &mut self.places {
            if place.kept.as_ref().is_some_and(|(who, _)| *who == owner) {
                place.kept = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_its_owners_alone_and_only_once() {
        let mut handles = Handles::<u8, 3, 2>::new();
        let first = handles.insert(1, 10).unwrap();
        let second = handles.insert(1, 11).unwrap();
        assert_eq!(handles.insert(1, 12), None, "two each");
        let other = handles.insert(2, 20).unwrap();
        assert_eq!(handles.insert(3, 30), None, "three in all");
        assert_eq!(handles.get(2, first), None);
        assert_eq!(handles.get(2, Handle(other.0 ^ 1 << 40)), None);
        assert_eq!(handles.get(2, Handle(99)), None);
        assert_eq!(handles.remove(1, first), Some(10));
        assert_eq!(handles.remove(1, first), None);
        let again = handles.insert(1, 13).unwrap();
        assert_ne!(again, first);
        assert_eq!(handles.get(1, first), None, "the place has another generation");
        assert_eq!(handles.get(1, second), Some(&mut 11));
        handles.forget(1);
        assert_eq!(handles.get(1, second), None);
        assert_eq!(handles.get(2, other), Some(&mut 20));
    }
}
