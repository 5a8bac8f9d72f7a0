//! Flexpages and rights (X.2 1.4, 1.5).

mod common;

use abi::fpage::PAGE_BITS;
use abi::{Fpage, Rights};
use common::Random;

#[test]
fn the_words_of_the_manual() {
    assert_eq!(Fpage::COMPLETE.0, 0x10);
    assert_eq!(Fpage::COMPLETE_IO.0, 0x4020);
    assert_eq!(Fpage::io(0x3F8, 3).0, 0x03F8_0C20);
    assert_eq!(Fpage::memory(0x40_0000, 22, Rights::RW).0, 0x40_0000 | 22 << 4 | 6);
    assert_eq!((Rights::R.0, Rights::W.0, Rights::X.0), (4, 2, 1));
}

#[test]
fn a_memory_flexpage_is_the_aligned_region_around_its_address() {
    let mut random = Random::new(1);
    for _ in 0..100_000 {
        let (address, bits) = (random.next(), (random.next() % 52) as u32 + PAGE_BITS);
        let rights = Rights((random.next() & 7) as u8);
        let fpage = Fpage::memory(address, bits, rights);
        assert_eq!((fpage.bits(), fpage.size(), fpage.rights()), (bits, 1 << bits, rights));
        assert_eq!(fpage.base(), address & !(fpage.size() - 1));
        assert!(
            fpage.contains(address)
                && fpage.contains(fpage.base())
                && fpage.contains(fpage.base() + (fpage.size() - 1))
        );
        assert!(!fpage.contains(fpage.base().wrapping_sub(1)));
        assert!(
            !fpage.contains(fpage.base().wrapping_add(fpage.size()))
                || fpage.base().checked_add(fpage.size()).is_none()
        );
        assert!(!fpage.is_io() && !fpage.is_nil() && !fpage.is_complete());
        let other = fpage.with_rights(Rights::X);
        assert_eq!((other.base(), other.bits(), other.rights()), (fpage.base(), bits, Rights::X));
    }
}

#[test]
fn bits_below_the_size_do_not_move_a_flexpage() {
    let mut random = Random::new(2);
    for _ in 0..10_000 {
        let bits = (random.next() % 30) as u32 + PAGE_BITS;
        let clean = Fpage::memory(random.next(), bits, Rights::R);
        let dirty = Fpage(clean.0 | random.next() & ((1 << bits) - 1) & !0x3FF);
        assert_eq!((dirty.base(), dirty.size()), (clean.base(), clean.size()));
    }
}

#[test]
fn the_complete_space_has_everything() {
    for rights in 0..8 {
        let all = Fpage::memory(0xDEAD_B000, 64, Rights(rights));
        assert!(all.is_complete() && !all.is_nil());
        assert_eq!(
            (all, all.rights()),
            (Fpage::COMPLETE.with_rights(Rights(rights)), Rights(rights))
        );
        assert_eq!((all.base(), all.bits(), all.size()), (0, 64, u64::MAX));
        assert!(all.contains(0) && all.contains(0x7FFF_FFFF_F000));
    }
    assert!(!Fpage(0x1_0010).is_complete(), "size 1 elsewhere is two bytes");
    assert_eq!(Fpage(0x1_0010).bits(), 1);
    assert!(Fpage::NIL.is_nil() && !Fpage::NIL.contains(1));
}

#[test]
fn ports_are_aligned_and_clipped_to_what_there_is() {
    for port in 0..=u16::MAX {
        for bits in 0..=16 {
            let fpage = Fpage::io(port, bits);
            let mask = ((1_u32 << bits) - 1) as u16;
            assert!(fpage.is_io());
            assert_eq!((fpage.io_base(), fpage.io_bits()), (port & !mask, bits));
        }
    }
    let garbage = Fpage(0xFFFF_FFFF_0000_0000 | Fpage::io(0x60, 2).0 | 7);
    assert_eq!(
        (garbage.io_base(), garbage.io_bits()),
        (0x60, 2),
        "the constructors leave the upper half undefined"
    );
    assert_eq!(Fpage(63 << 10 | 0x20).io_bits(), 16);
}

#[test]
fn rights_are_a_set() {
    for one in 0..8 {
        for other in 0..8 {
            let (a, b) = (Rights(one), Rights(other));
            assert_eq!(a.contains(b), a.or(b) == a);
            assert_eq!(a.and(b).or(a.without(b)), a);
            assert!(a.and(b).and(a.without(b)).is_empty());
        }
    }
}
