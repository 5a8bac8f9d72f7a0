//! Properties of flexpage arithmetic (X.2 4.4).

use abi::layout::USER_END;
use abi::{Fpage, MapItem, Rights};
use kernel::mem::window::{memory, ports};
use proptest::prelude::*;

/// Any word is a flexpage; sizes that matter are more likely.
fn fpage() -> impl Strategy<Value = Fpage> {
    let sized = (any::<u64>(), 0u32..64)
        .prop_map(|(base, bits)| Fpage::memory(base & (USER_END | 0xFFF), bits, Rights::RWX));
    prop_oneof![8 => sized, 1 => Just(Fpage::COMPLETE), 1 => any::<u64>().prop_map(Fpage)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]

    /// What moves comes from the flexpage, goes into the window, stays in user
    /// addresses, and keeps the alignment that large pages need.
    #[test]
    fn transfers_stay_inside(sent in fpage(), window in fpage(), base in any::<u64>()) {
        let moved = memory(MapItem::map(sent, base), window);
        if moved.len == 0 {
            return Ok(());
        }
        let inside = |page: Fpage, start: u64| {
            let below = start.wrapping_sub(page.base());
            page.bits() >= 64 || (below < page.size() && moved.len <= page.size() - below)
        };
        prop_assert!(!window.is_io() && sent.bits() >= 12 && window.bits() >= 12);
        prop_assert!(inside(sent, moved.from) && inside(window, moved.to));
        prop_assert!(moved.from + moved.len <= USER_END && moved.to + moved.len <= USER_END);
        prop_assert_eq!((moved.from | moved.to | moved.len) & 0xFFF, 0);
        let bits = sent.bits().min(window.bits()).min(48);
        let size = 1u64 << bits;
        prop_assert_eq!((moved.from | moved.to) & (size - 1), 0);
        let clipped = moved.from.max(moved.to) + size > USER_END;
        prop_assert!(moved.len == size || (clipped && moved.len < size));
    }

    /// Equal sizes: the send base does not matter.
    #[test]
    fn equal_sizes_ignore_the_send_base(page in 0u64..1 << 30, to in 0u64..1 << 30, base in any::<u64>()) {
        let sent = Fpage::memory(page << 12, 12, Rights::R);
        let window = Fpage::memory(to << 12, 12, Rights::NONE);
        let moved = memory(MapItem::map(sent, base), window);
        prop_assert_eq!((moved.from, moved.to, moved.len), (page << 12, to << 12, 4096));
    }

    /// Ports: the intersection, port by port.
    #[test]
    fn ports_are_the_intersection(a in any::<u16>(), m in 0u32..17, b in any::<u16>(), n in 0u32..17) {
        let (sent, window) = (Fpage::io(a, m), Fpage::io(b, n));
        let moved = ports(MapItem::map(sent, 0), window);
        let has = |page: Fpage, port: u64| {
            let start = u64::from(page.io_base());
            (start..start + (1 << page.io_bits())).contains(&port)
        };
        prop_assert_eq!(moved.from, moved.to);
        for port in [a, b, 0, u16::MAX, a ^ 1, b ^ 1].map(u64::from) {
            let both = has(sent, port) && has(window, port);
            prop_assert_eq!((moved.from..moved.from + moved.len).contains(&port), both);
        }
    }
}
