//! What σ0 answers to whom.

use super::*;

const ROOT: ThreadId = ThreadId::ROOT;
const OTHER: ThreadId = ThreadId::global(90, 1);

fn book() -> Book {
    let mut book = Book::new();
    book.open_ports();
    let mut add = |low, high, kind, subtype| {
        book.apply(MemoryDescriptor { low, high, is_virtual: false, kind, subtype });
    };
    add(0, !0, memory_type::SHARED, 0);
    add(0, 0x9_FBFF, memory_type::CONVENTIONAL, 0);
    add(0x10_0000, 0x1FFF_FFFF, memory_type::CONVENTIONAL, 0);
    add(0xA_0000, 0xB_FFFF, memory_type::SHARED, 0);
    add(0x20_0000, 0x5F_FFFF, memory_type::RESERVED, 0);
    add(0x200_0000, 0x200_5FFF, memory_type::BOOT, 3);
    add(0xFED0_0000, 0xFED0_0FFF, memory_type::ARCH, 2);
    book.keep_kernels_devices();
    book.server(0xF0_0000, 0xF1_0000, None);
    book.server(0x100_0000, 0x104_0000, Some(ROOT));
    book
}

fn fault(book: &mut Book, from: ThreadId, address: u64) -> Answer {
    book.answer(from, MsgTag::protocol(protocol::PAGE_FAULT, 4, 2, 0), [address, 0x1000, 0])
}

fn ask(book: &mut Book, from: ThreadId, fpage: u64) -> Answer {
    book.answer(from, MsgTag::protocol(protocol::SIGMA0, 0, 2, 0), [fpage, 0, 0])
}

fn page(base: u64, bits: u32) -> Answer {
    Answer::Map(MapItem::map(Fpage::memory(base, bits, Rights::RWX), base))
}

#[test]
fn page_faults() {
    let mut book = book();
    assert_eq!(fault(&mut book, ROOT, 0x100_1234), page(0x100_1000, 12));
    assert_eq!(fault(&mut book, OTHER, 0x100_1234), NOTHING);
    assert_eq!(fault(&mut book, ROOT, 0x30_0000), NOTHING);
    assert_eq!(fault(&mut book, ROOT, 0x200_0000), NOTHING);
    assert_eq!(fault(&mut book, ROOT, 0xA_8000), page(0xA_8000, 12));
    assert_eq!(fault(&mut book, OTHER, 0xA_8000), page(0xA_8000, 12));
    assert_eq!(fault(&mut book, OTHER, 0x150_0000), page(0x150_0000, 12));
    assert_eq!(fault(&mut book, ROOT, 0x150_0000), NOTHING);
    assert_eq!(fault(&mut book, OTHER, 0x150_0010), page(0x150_0000, 12));
}

#[test]
fn a_page_that_conventional_memory_covers_in_part_is_not_conventional() {
    let mut book = book();
    assert_eq!(fault(&mut book, ROOT, 0x9_E000), page(0x9_E000, 12));
    // The last page is only partly conventional; the shared descriptor below it shows.
    assert_eq!(ask(&mut book, ROOT, !0x3FF | 20 << 4), page(0x1FF0_0000, 20));
    assert!(book.memory.all(0x9_F000, 0x9_FFFF, |owner| owner == Owner::Shared));
}

#[test]
fn requests_by_address() {
    let mut book = book();
    assert_eq!(
        ask(&mut book, ROOT, Fpage::memory(0x200_0000, 12, Rights::NONE).0),
        page(0x200_0000, 12)
    );
    assert_eq!(ask(&mut book, OTHER, Fpage::memory(0x200_0000, 12, Rights::NONE).0), NOTHING);
    assert_eq!(
        ask(&mut book, ROOT, Fpage::memory(0x200_0000, 12, Rights::NONE).0),
        page(0x200_0000, 12)
    );
    assert_eq!(
        ask(&mut book, ROOT, Fpage::memory(0xFED0_0000, 12, Rights::NONE).0),
        page(0xFED0_0000, 12)
    );
    assert_eq!(ask(&mut book, ROOT, Fpage::memory(0x20_0000, 12, Rights::NONE).0), NOTHING);
    assert_eq!(ask(&mut book, ROOT, Fpage::memory(0x1000_0000, 11, Rights::NONE).0), NOTHING);
    assert_eq!(
        ask(&mut book, ROOT, Fpage::memory(0x1000_0000, 28, Rights::NONE).0),
        page(0x1000_0000, 28)
    );
}

#[test]
fn anywhere_takes_the_highest_and_never_twice() {
    let mut book = book();
    let first = ask(&mut book, ROOT, !0x3FF | 22 << 4);
    let second = ask(&mut book, ROOT, !0x3FF | 22 << 4);
    assert_eq!((first, second), (page(0x1FC0_0000, 22), page(0x1F80_0000, 22)));
    assert_eq!(ask(&mut book, ROOT, !0x3FF | 30 << 4), NOTHING);
    assert_eq!(ask(&mut book, ROOT, !0x3FF | 11 << 4), NOTHING);
}

#[test]
fn a_gigabyte() {
    let mut book = Book::new();
    book.apply(MemoryDescriptor {
        low: 0,
        high: 0xFFFF_FFFF,
        is_virtual: false,
        kind: 1,
        subtype: 0,
    });
    assert_eq!(ask(&mut book, ROOT, !0x3FF | 30 << 4), page(0xC000_0000, 30));
}

#[test]
fn extended_address() {
    let mut book = Book::new();
    book.apply(MemoryDescriptor {
        low: 0,
        high: 0x3_FFFF_FFFF,
        is_virtual: false,
        kind: 1,
        subtype: 0,
    });
    let tag = MsgTag::protocol(protocol::SIGMA0, 0, 3, 0);
    assert_eq!(book.answer(ROOT, tag, [0x4000_0000 | 12 << 4 | 8, 0, 2]), page(0x2_4000_0000, 12));
    let short = MsgTag::protocol(protocol::SIGMA0, 0, 2, 0);
    assert_eq!(book.answer(ROOT, short, [0x4000_0000 | 12 << 4 | 8, 0, 2]), NOTHING);
}

#[test]
fn ports_have_one_owner() {
    let mut book = book();
    let uart = Fpage::io(0x3F8, 3);
    let given = Answer::Map(MapItem::map(uart.with_rights(Rights::RWX), 0x3F8));
    assert_eq!(ask(&mut book, ROOT, uart.0), given);
    assert_eq!(ask(&mut book, ROOT, uart.0), given);
    assert_eq!(ask(&mut book, OTHER, uart.0), NOTHING);
    assert_eq!(ask(&mut book, ROOT, Fpage::io(0x20, 0).0), NOTHING);
    assert_eq!(ask(&mut book, ROOT, !0x3FF | 2 << 4), NOTHING);
    let io = MsgTag::protocol(protocol::IO_FAULT, 6, 2, 0);
    assert!(
        matches!(book.answer(OTHER, io, [Fpage::io(0x60, 0).0, 0, 0]), Answer::Map(item) if !item.fpage.is_nil())
    );
    assert_eq!(book.answer(OTHER, io, [Fpage::io(0x3FA, 1).0, 0, 0]), NOTHING);
}

#[test]
fn malformed_messages_get_no_answer() {
    let mut book = book();
    for tag in [
        MsgTag::protocol(protocol::SIGMA0, 0, 1, 0),
        MsgTag::protocol(protocol::SIGMA0, 0, 2, 2),
        MsgTag::protocol(-7, 0, 2, 0),
        MsgTag::new(0, 2, 0),
        MsgTag::protocol(protocol::PAGE_FAULT, 4, 1, 0),
    ] {
        assert_eq!(book.answer(ROOT, tag, [0x1000_0000 | 12 << 4, 0, 0]), Answer::Silence);
    }
    let tag = MsgTag::protocol(protocol::SIGMA0, 0, 2, 0);
    assert_eq!(book.answer(ROOT, tag, [0x1000_0000 | 12 << 4, 1, 0]), NOTHING);
}

#[test]
fn extended_requests() {
    let mut book = book();
    let tag = MsgTag::protocol(protocol::SIGMA0_EXTENDED, 0, 2, 0);
    assert_eq!(book.answer(OTHER, tag, [1, 7, 0]), Answer::Silence);
    assert_eq!(book.verbosity, 0);
    assert_eq!(book.answer(ROOT, tag, [1, 7, 0]), Answer::Silence);
    assert_eq!(book.verbosity, 7);
    assert_eq!(book.answer(ROOT, tag, [2, 0, 0]), Answer::Dump { reply: false });
    assert_eq!(book.answer(ROOT, tag, [2, 1, 0]), Answer::Dump { reply: true });
    assert_eq!(book.answer(ROOT, tag, [3, 0, 0]), Answer::Empty);
    assert_eq!(fault(&mut book, OTHER, 0x150_0000), NOTHING);
    assert_eq!(fault(&mut book, ROOT, 0x150_0000), page(0x150_0000, 12));
}

#[test]
fn the_kernels_devices_are_nobodys() {
    let mut book = book();
    for address in [0xFEE0_0000, 0xFEE0_1000, 0xFEEF_F000, 0xFEC0_0000] {
        assert_eq!(ask(&mut book, ROOT, Fpage::memory(address, 12, Rights::NONE).0), NOTHING);
        assert_eq!(fault(&mut book, ROOT, address), NOTHING);
    }
    assert_eq!(ask(&mut book, ROOT, Fpage::memory(0xC000_0000, 30, Rights::NONE).0), NOTHING);
    for port in [0x20, 0x40, 0x42, 0x43, 0x61, 0xA1] {
        assert_eq!(ask(&mut book, ROOT, Fpage::io(port, 0).0), NOTHING);
    }
}

/// An id that is only near the initial servers' gets nothing: sigma1's number is anybody's
/// when there is no sigma1.
#[test]
fn a_closed_book_serves_the_root_task_alone() {
    let mut book = book();
    let request = MsgTag::protocol(protocol::SIGMA0_EXTENDED, 0, 2, 0);
    assert_eq!(book.answer(ROOT, request, [3, 0, 0]), Answer::Empty);
    let ported = Fpage::io(0xCF8, 3).0;
    for other in [OTHER, ThreadId::SIGMA1, ThreadId::global(ROOT.number(), ROOT.version() + 1)] {
        assert_eq!(ask(&mut book, other, ported), NOTHING);
        assert_eq!(fault(&mut book, other, 0x150_0000), NOTHING);
        assert_eq!(book.answer(other, request, [2, 1, 0]), Answer::Silence);
    }
    assert_ne!(ask(&mut book, ROOT, ported), NOTHING);
}

#[test]
fn an_id_that_no_initial_server_has_is_not_served() {
    let sigma1 = ThreadId::SIGMA1;
    let own_version = ThreadId::global(ROOT.number(), 2);
    let tag = MsgTag::protocol(protocol::SIGMA0_EXTENDED, 0, 2, 0);
    let mut book = book();
    assert_eq!(book.answer(sigma1, tag, [1, 7, 0]), Answer::Silence);
    assert_eq!(book.answer(ROOT, tag, [3, 0, 0]), Answer::Empty);
    for thief in [sigma1, own_version, ThreadId::SIGMA0] {
        assert_eq!(fault(&mut book, thief, 0x150_0000), NOTHING);
        assert_eq!(ask(&mut book, thief, Fpage::io(0x60, 0).0), NOTHING);
        assert_eq!(book.answer(thief, tag, [2, 1, 0]), Answer::Silence);
    }
    book.know_sigma1();
    assert_eq!(fault(&mut book, sigma1, 0x150_0000), page(0x150_0000, 12));
}
