//! Flexpage arithmetic: which part of what is sent arrives where (X.2 4.4).
//!
//! Pure functions, no state.

use abi::fpage::PAGE_BITS;
use abi::layout::USER_END;
use abi::{Fpage, MapItem};

/// `len` bytes (or ports) from `from` in the sender go to `to` in the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stretch {
    /// First byte in the source.
    pub from: u64,
    /// First byte in the destination.
    pub to: u64,
    /// How many bytes.
    pub len: u64,
}

/// The transfer that a memory item makes into `window`; empty if nothing moves.
#[inline]
#[must_use]
pub fn memory(item: MapItem, window: Fpage) -> Stretch {
    let (sent, open) = (item.fpage.bits(), window.bits());
    if sent < PAGE_BITS || open < PAGE_BITS || window.is_io() {
        return Stretch::default();
    }
    let (sent, open) = (below(sent), below(open));
    let (from, to) = place(item.fpage.0 & !0x3FF, sent, window.0 & !0x3FF, open, item.send_base);
    let room = USER_END.saturating_sub(from).min(USER_END.saturating_sub(to));
    Stretch { from, to, len: room.min(sent.min(open).saturating_add(1)) }
}

/// The ports that an I/O item moves: a port has the same number in all spaces.
/// `window` is an I/O flexpage, or the complete space for all ports.
#[must_use]
pub fn ports(item: MapItem, window: Fpage) -> Stretch {
    let start = u64::from(item.fpage.io_base());
    let end = start + (1 << item.fpage.io_bits());
    let (low, high) = if window.is_io() {
        let low = u64::from(window.io_base());
        (low, low + (1 << window.io_bits()))
    } else if window.is_complete() {
        (0, 1 << 16)
    } else {
        (0, 0)
    };
    let from = start.max(low);
    let len = end.min(high).saturating_sub(from);
    Stretch { from, to: from, len }
}

/// Source and destination of a flexpage at `from` sent to a window at `to` with
/// send base `base`; `sent` and `open` are their sizes minus 1, as masks.
#[inline]
const fn place(from: u64, sent: u64, to: u64, open: u64, base: u64) -> (u64, u64) {
    let (from, to) = (from & !sent, to & !open);
    if sent <= open { (from, to | base & open & !sent) } else { (from | base & sent & !open, to) }
}

/// The size of 2^`bits` bytes minus 1.
#[inline]
const fn below(bits: u32) -> u64 {
    if bits >= 64 { !0 } else { (1 << bits) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::Rights;

    fn page(base: u64, bits: u32) -> Fpage {
        Fpage::memory(base, bits, Rights::RWX)
    }

    #[test]
    fn a_page_goes_to_the_send_base_in_a_larger_window() {
        let item = MapItem::map(page(0x5000, 12), 0x12_3400);
        let got = memory(item, page(0x80_0000, 16));
        assert_eq!(got, Stretch { from: 0x5000, to: 0x80_3000, len: 0x1000 });
    }

    #[test]
    fn a_small_window_selects_a_part_by_the_send_base() {
        let item = MapItem::map(page(0x40_0000, 22), 0x7F_5678);
        let got = memory(item, page(0x9000, 12));
        assert_eq!(got, Stretch { from: 0x7F_5000, to: 0x9000, len: 0x1000 });
    }

    #[test]
    fn the_complete_window_takes_the_send_base_as_address() {
        let item = MapItem::map(page(0x20_0000, 21), 0x7654_3210_0000);
        let got = memory(item, Fpage::COMPLETE);
        assert_eq!(got, Stretch { from: 0x20_0000, to: 0x7654_3200_0000, len: 0x20_0000 });
        let all = memory(MapItem::map(Fpage::COMPLETE, 0x1000), Fpage::COMPLETE);
        assert_eq!(all, Stretch { from: 0, to: 0, len: USER_END });
    }

    #[test]
    fn nothing_moves_for_nil_small_or_kernel_addresses() {
        for fpage in [Fpage::NIL, page(0x1000, 11), page(0xFFFF_8000_0000_0000, 12)] {
            assert_eq!(memory(MapItem::map(fpage, 0), Fpage::COMPLETE).len, 0);
        }
        let item = MapItem::map(page(0x1000, 12), 0);
        assert_eq!(memory(item, Fpage::NIL).len, 0);
        assert_eq!(memory(item, page(0xFFFF_8000_0000_0000, 12)).len, 0);
        assert_eq!(memory(item, Fpage::COMPLETE_IO).len, 0);
    }

    #[test]
    fn ports_are_clipped_to_the_window() {
        let item = MapItem::map(Fpage::io(0x3F8, 3), 0);
        assert_eq!(ports(item, Fpage::COMPLETE).len, 8);
        assert_eq!(ports(item, Fpage::io(0x3FC, 2)), Stretch { from: 0x3FC, to: 0x3FC, len: 4 });
        assert_eq!(ports(item, Fpage::io(0x60, 4)).len, 0);
        assert_eq!(ports(MapItem::map(Fpage::COMPLETE_IO, 0), Fpage::COMPLETE_IO).len, 1 << 16);
    }
}
