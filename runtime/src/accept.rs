//! What a receive phase may deliver besides words (X.2 4.3).
//!
//! The acceptor is closed. Each function here opens it for the IPC that one closure does,
//! and leaves it as it was before. While it is open, the memory that a message may be
//! written to is borrowed: no later message can write into memory that has found another
//! use, and there is nothing that could be forgotten or dropped too late. Calls can be
//! nested; the inner one counts.

use abi::{Acceptor, Fpage, Item, StringItem, Time, Timeouts};

use crate::window::Window;
use crate::{Msg, utcb};

/// Runs `during` with this acceptor and these buffer registers, then restores them.
fn open<R>(acceptor: Acceptor, buffer: [u64; 2], during: impl FnOnce() -> R) -> R {
    let before = [utcb::br(0), utcb::br(1), utcb::br(2)];
    utcb::set_br(1, buffer[0]);
    utcb::set_br(2, buffer[1]);
    utcb::set_acceptor(acceptor);
    let result = during();
    before.into_iter().enumerate().for_each(|(n, word)| utcb::set_br(n, word));
    result
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
pub fn string<R>(buffer: &mut [u8], limit: TransferLimit, during: impl FnOnce() -> R) -> R {
    utcb::set_xfer_timeouts(Timeouts::new(limit.0, limit.0));
    let item = StringItem::simple(buffer.as_mut_ptr() as u64, buffer.len() as u64);
    open(Acceptor::STRINGS, item, during)
}

impl Msg {
    /// The string that a received message brought behind its words, in the buffer that
    /// [`string`] had for it: as many bytes as were sent. `None` if something
    /// else came, or if the string was sent in several pieces.
    #[must_use]
    pub fn string_in<'b>(&self, buffer: &'b [u8]) -> Option<&'b [u8]> {
        let at = self.tag.untyped();
        if self.tag.typed() != 2 || at + 2 > service::MAX_WORDS {
            return None;
        }
        match Item::decode(self.get(at), self.get(at + 1)) {
            Item::String(item) if item.substrings() == 1 && !item.is_continued() => {
                buffer.get(..usize::try_from(item.len()).ok()?)
            }
            _ => None,
        }
    }
}

/// Accepts mappings into `window`.
///
/// A window is memory that nothing but the window refers to. It must have the
/// shape of a flexpage (`None` otherwise, and `during` does not run).
pub fn window<R>(window: &mut Window, during: impl FnOnce() -> R) -> Option<R> {
    let fpage = window.fpage()?;
    Some(open(Acceptor::window(fpage), [0; 2], during))
}

/// Accepts I/O ports, and no memory.
pub fn ports<R>(during: impl FnOnce() -> R) -> R {
    open(Acceptor::window(Fpage::COMPLETE_IO), [0; 2], during)
}

/// Accepts mappings anywhere, at their own address.
///
/// # Safety
/// The sender is trusted to map only where nothing is in use (σ0 towards the
/// root task, which knows its own image).
pub unsafe fn everything<R>(during: impl FnOnce() -> R) -> R {
    open(Acceptor::window(Fpage::COMPLETE), [0; 2], during)
}
