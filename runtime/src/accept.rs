//! What a receive phase may deliver besides words (X.2 4.3).
//!
//! The acceptor is closed by default. A guard opens it for the operations made
//! while it lives and closes it again, so that no later message can write into
//! memory that has found another use. One guard per thread at a time: a second
//! one replaces the first.

use abi::{Acceptor, Fpage, StringItem, Time, Timeouts};

use crate::utcb;
use crate::window::Window;

/// Keeps the acceptor open; closes it when dropped.
pub struct Guard<'a> {
    held: core::marker::PhantomData<&'a mut [u8]>,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        utcb::set_acceptor(Acceptor::UNTYPED);
    }
}

/// How long a string may take while pages of it, or of the buffer, are not there. Always an
/// end: their pagers may be anybody's, and may never answer.
#[derive(Clone, Copy, Debug)]
pub struct TransferLimit(Time);

impl TransferLimit {
    /// All pages have to be there.
    pub const ZERO: Self = Self(Time::ZERO);

    /// So many microseconds, at most an hour.
    #[must_use]
    pub const fn micros(us: u64) -> Self {
        const HOUR_US: u64 = 3_600_000_000;
        Self(Time::micros(if us < HOUR_US { us } else { HOUR_US }))
    }
}

/// Accepts a string into `buffer`, within `limit`: who receives strings from others waits for
/// their pagers, too.
#[must_use]
pub fn string(buffer: &mut [u8], limit: TransferLimit) -> Guard<'_> {
    utcb::set_xfer_timeouts(Timeouts::new(limit.0, limit.0));
    let words = StringItem::simple(buffer.as_mut_ptr() as u64, buffer.len() as u64);
    utcb::set_br(1, words[0]);
    utcb::set_br(2, words[1]);
    utcb::set_acceptor(Acceptor::STRINGS);
    Guard { held: core::marker::PhantomData }
}

/// Accepts mappings into `window`.
///
/// A window is memory that nothing but the window refers to. It must have the
/// shape of a flexpage (`None` otherwise).
#[must_use]
pub fn window(window: &mut Window) -> Option<Guard<'_>> {
    let fpage = window.fpage()?;
    utcb::set_acceptor(Acceptor::window(fpage));
    Some(Guard { held: core::marker::PhantomData })
}

/// Accepts I/O ports, and no memory.
#[must_use]
pub fn ports() -> Guard<'static> {
    utcb::set_acceptor(Acceptor::window(Fpage::COMPLETE_IO));
    Guard { held: core::marker::PhantomData }
}

/// Accepts mappings anywhere, at their own address.
///
/// # Safety
/// The sender is trusted to map only where nothing is in use (σ0 towards the
/// root task, which knows its own image).
#[must_use]
pub unsafe fn everything() -> Guard<'static> {
    utcb::set_acceptor(Acceptor::window(Fpage::COMPLETE));
    Guard { held: core::marker::PhantomData }
}
