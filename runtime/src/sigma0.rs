//! Asking the initial space for memory and ports: for the root task.
//!
//! σ0 maps every page at its physical address, where nothing of the root task's
//! own can be (its image is reserved in σ0's book).

use abi::{Fpage, MapItem, Rights, ThreadId, protocol};

use crate::window::Window;
use crate::{Msg, accept, ipc};

/// Takes the naturally aligned block of 2^`bits` bytes that contains `physical`,
/// or any block of conventional memory. The window is at the physical address.
#[must_use]
pub fn memory(physical: Option<u64>, bits: u32) -> Option<Window> {
    let item = take(physical, bits)?;
    Window::claim(item.base(), item.size())
}

/// Takes all pages of `low` to `high` (exclusive), one by one; they are then
/// mapped at their physical addresses.
#[must_use]
pub fn range(low: u64, high: u64) -> Option<Window> {
    let (low, high) = (low & !0xFFF, high.checked_add(0xFFF)? & !0xFFF);
    let mut at = low;
    while at < high {
        // The largest naturally aligned block that starts here and fits.
        let bits = at.trailing_zeros().min((high - at).ilog2()).min(30);
        take(Some(at), bits)?;
        at += 1 << bits;
    }
    Window::claim(low, high - low)
}

/// Takes the 2^`bits` I/O ports from `base`.
#[must_use]
pub fn ports(base: u16, bits: u32) -> bool {
    let reply = accept::ports(|| ask(Fpage::io(base, bits).0));
    reply.is_some_and(|item| !item.fpage.is_nil())
}

/// From now on σ0 serves nobody but the initial servers.
pub fn close() {
    let msg = Msg::protocol(protocol::SIGMA0_EXTENDED, 0).word(3).word(0);
    let _ = ipc::call(ThreadId::SIGMA0, &msg);
}

fn take(physical: Option<u64>, bits: u32) -> Option<Fpage> {
    let base = physical.unwrap_or(!0) & !0x3FF;
    let word = match physical {
        Some(base) => Fpage::memory(base, bits, Rights::NONE).0,
        None => base | u64::from(bits) << 4,
    };
    // SAFETY: σ0 maps the page that was asked for, or conventional memory that
    // nobody has; never the root task's image.
    let reply = unsafe { accept::everything(|| ask(word)) };
    reply.map(|item| item.fpage).filter(|fpage| !fpage.is_nil() && !fpage.is_io())
}

fn ask(word: u64) -> Option<MapItem> {
    let reply =
        ipc::call(ThreadId::SIGMA0, &Msg::protocol(protocol::SIGMA0, 0).word(word).word(0)).ok()?;
    match abi::Item::decode(reply.mr[0], reply.mr[1]) {
        abi::Item::Map(item) if reply.tag.typed() == 2 => Some(item),
        _ => None,
    }
}
