//! Servers of the client's own task, called as functions: no message is put together (Bershad et al. 1990, 5.1 asks at the
//! first instruction of a stub which way a call takes; this is the shortest).
//!
//! A client asks for its server once, when it binds, and keeps what it gets: a carrier that takes another way later takes those
//! along that bind after that.

use core::any::Any;

use crate::Caller;
use crate::call::Carrier;

/// A server that threads of its task may call as a function, several at once.
pub trait Inside: Sync {
    /// Leaves the server in `place` if that is an `Option<&'static T>` for the interface's `T`.
    fn give(&'static self, place: &mut dyn Any);
}

/// Both: each knows its own place.
impl<A: Inside, B: Inside> Inside for (A, B) {
    fn give(&'static self, place: &mut dyn Any) {
        self.0.give(place);
        self.1.give(place);
    }
}

/// A server of the client's own task that can be called as a function, if there is one.
pub struct Near<T: ?Sized + 'static>(Option<&'static T>);

impl<T: ?Sized + 'static> Near<T> {
    /// None.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// The one behind `carrier`.
    #[must_use]
    pub fn find(carrier: &impl Carrier) -> Self {
        let mut place: Option<&'static T> = None;
        carrier.find_inside(&mut place);
        Self(place)
    }

    /// It, and who calls.
    #[inline(always)]
    pub fn inside(&self, carrier: &impl Carrier) -> Option<(&'static T, Caller)> {
        let server = self.0?;
        carrier.caller().map(|caller| (server, caller))
    }
}

impl<T: ?Sized + 'static> Clone for Near<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized + 'static> Copy for Near<T> {}

impl<T: ?Sized + 'static> core::fmt::Debug for Near<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(if self.0.is_some() { "Near" } else { "Far" })
    }
}
