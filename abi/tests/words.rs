//! Ids, tags, items, errors, memory descriptors, call numbers: every word that is
//! made can be read again, and means what X.2 says.

mod common;

use abi::error::{IpcErrorKind, Phase};
use abi::id::{SYSTEM_BASE, THREAD_BITS, USER_BASE};
use abi::item::{Acceptor, Item, MapItem, StringItem};
use abi::kip::MemoryDescriptor;
use abi::syscall::{COMPLETE_PATH, Call};
use abi::{CallError, Fpage, IpcError, MsgTag, Rights, ThreadId, layout, protocol, utcb};
use common::Random;

#[test]
fn an_id_is_of_one_kind() {
    let mut random = Random::new(1);
    for _ in 0..100_000 {
        let id = ThreadId(random.any_size() << (random.next() % 12));
        let kinds = [id.is_nil(), id.is_local(), id.is_global(), id == ThreadId::ANY];
        assert_eq!(kinds.iter().filter(|is| **is).count(), 1, "{:#x} is {kinds:?}", id.0);
        assert!(!id.is_irq() || id.is_global());
    }
    for special in [ThreadId::NIL, ThreadId::ANY, ThreadId::ANY_LOCAL] {
        assert!(!special.is_global() && !special.is_irq());
    }
    assert!(
        ThreadId::ANY_LOCAL.is_local() && !ThreadId::ANY.is_local() && !ThreadId::NIL.is_local()
    );
}

#[test]
fn global_ids_keep_number_and_version() {
    let mut random = Random::new(2);
    for _ in 0..10_000 {
        let (number, version) =
            ((random.next() as u32) >> (32 - THREAD_BITS), random.next() as u32 | 1);
        let id = ThreadId::global(number, version);
        assert_eq!((id.number(), id.version()), (number, version));
        assert!(id.is_global());
        assert_eq!(id.is_irq(), number < SYSTEM_BASE);
        assert_eq!(id.to_string(), format!("{number}.{version}"));
    }
    assert_eq!(
        [ThreadId::SIGMA0, ThreadId::SIGMA1, ThreadId::ROOT].map(ThreadId::number),
        [USER_BASE, USER_BASE + 1, USER_BASE + 2]
    );
    assert_eq!(ThreadId::local(0xBF00_0A3F), ThreadId(0xBF00_0A00));
    assert_eq!(ThreadId::local(0xBF00_0A00).to_string(), "local 0xbf000a00");
}

#[test]
fn tags_keep_their_fields() {
    let mut random = Random::new(3);
    for _ in 0..10_000 {
        let (label, untyped, typed) =
            (random.next() >> 16, random.next() as u32 & 63, random.next() as u32 & 63);
        let tag = MsgTag::new(label, untyped, typed);
        assert_eq!(
            (tag.label(), tag.untyped(), tag.typed()),
            (label, untyped as usize, typed as usize)
        );
        assert!(!tag.is_error() && !tag.is_propagated());
        let flagged =
            tag.with(MsgTag::ERROR | MsgTag::PROPAGATED | MsgTag::XCPU | MsgTag::REDIRECTED);
        assert!(flagged.is_error() && flagged.is_propagated());
        assert_eq!(flagged.0 & 0xF000, 0xF000);
        assert_eq!((flagged.without_flags(), flagged.label()), (tag, label));
    }
}

#[test]
fn kernel_messages_have_the_tags_of_the_manual() {
    let fault = MsgTag::protocol(protocol::PAGE_FAULT, 2, 2, 0);
    assert_eq!(fault.0, 0xFFFF_FFFF_FFE2_0002);
    assert_eq!((fault.protocol_label(), fault.label() & 0xF), (protocol::PAGE_FAULT, 2));
    for label in [
        protocol::INTERRUPT,
        protocol::PREEMPTION,
        protocol::EXCEPTION,
        protocol::SIGMA0,
        protocol::IO_FAULT,
        protocol::SIGMA0_EXTENDED,
    ] {
        assert_eq!(MsgTag::protocol(label, 0, 0, 0).protocol_label(), label);
    }
}

#[test]
fn items_can_be_read_again() {
    let mut random = Random::new(4);
    for _ in 0..10_000 {
        let fpage = Fpage::memory(random.next(), 12 + (random.next() % 20) as u32, Rights::RW);
        let base = random.next();
        for item in [MapItem::map(fpage, base), MapItem::grant(fpage, base)] {
            let [first, second] = item.words();
            assert_eq!(
                Item::decode(first, second),
                Item::Map(MapItem { send_base: base & !0x3FF, ..item })
            );
            assert_eq!(
                Item::decode(first | 1, second),
                Item::decode(first, second),
                "C does not matter"
            );
        }
        let (len, pieces, goes_on) =
            (random.next() >> 42, 1 + random.next() as u32 % 32, random.next() & 1 == 1);
        let string = StringItem::new(len, pieces, goes_on);
        assert_eq!(
            (string.len(), string.substrings(), string.is_continued()),
            (len, pieces as usize, goes_on)
        );
        assert_eq!((string.is_empty(), string.has_more()), (len == 0, false));
        for hints in 0..4 {
            assert_eq!(
                Item::decode(string.0 | hints << 1, 7),
                Item::String(StringItem(string.0 | hints << 1))
            );
        }
    }
    assert_eq!(StringItem::simple(0x1234, 9), [9 << 10, 0x1234]);
    assert_eq!([0xC, 0xE].map(|first| Item::decode(first, 0)), [Item::Reserved; 2]);
}

#[test]
fn the_acceptor_has_a_window_and_a_bit() {
    let window = Fpage::memory(0x80_0000, 20, Rights::RWX);
    let acceptor = Acceptor::window(window);
    assert_eq!(acceptor.receive_window(), window.with_rights(Rights::NONE));
    assert!(!acceptor.accepts_strings() && Acceptor(acceptor.0 | 1).accepts_strings());
    assert_eq!(Acceptor(acceptor.0 | 1).receive_window(), acceptor.receive_window());
    assert!(
        Acceptor::UNTYPED.receive_window().is_nil() && Acceptor::STRINGS.receive_window().is_nil()
    );
}

#[test]
fn errors_can_be_read_again() {
    use IpcErrorKind::{
        Aborted, Cancelled, NonExisting, Overflow, Timeout, XferTimeoutOwn, XferTimeoutPartner,
    };
    let kinds =
        [Timeout, NonExisting, Cancelled, Overflow, XferTimeoutOwn, XferTimeoutPartner, Aborted];
    for (number, kind) in (1..).zip(kinds) {
        for phase in [Phase::Send, Phase::Receive] {
            for offset in [0, 1, 4095, 1 << 40] {
                let error = IpcError { kind, phase, offset };
                assert_eq!(error.word(), offset << 4 | number << 1 | phase as u64);
                assert_eq!(IpcError::decode(error.word()), Some(error));
            }
            assert_eq!(IpcError::new(kind, phase), IpcError { kind, phase, offset: 0 });
        }
    }
    assert_eq!((IpcError::decode(0), IpcError::decode(0x101)), (None, None));
    for code in 0..20 {
        assert_eq!(
            CallError::decode(code).map(|error| error as u64),
            (1..=8).contains(&code).then_some(code)
        );
    }
}

#[test]
fn memory_descriptors_can_be_read_again() {
    let mut random = Random::new(5);
    for _ in 0..10_000 {
        let low = random.next() & !0x3FF;
        let descriptor = MemoryDescriptor {
            low,
            high: low | random.next() | 0x3FF,
            is_virtual: random.next() & 1 == 1,
            kind: random.next() as u8 & 0xF,
            subtype: random.next() as u8 & 0xF,
        };
        let [first, second] = descriptor.words();
        assert_eq!(MemoryDescriptor::decode([first, second]), descriptor);
        assert_eq!(
            (first & 0x1FF, second & 0x3FF),
            (u64::from(descriptor.subtype) << 4 | u64::from(descriptor.kind), 0)
        );
    }
}

#[test]
fn no_call_looks_like_an_ipc_that_the_fast_path_serves() {
    const FAST_PATH_REFUSES: u64 = 0xFFFF_FFFF_8000_FFFF;
    for number in 0..100_u64 {
        let word = number.wrapping_neg();
        match Call::decode(word) {
            Some(call) => {
                // All numbers behind the last one are calls of procedures (docs/decisions/0095).
                assert_eq!(call as u64, number.min(Call::LrpcCall as u64));
                assert_ne!(word & FAST_PATH_REFUSES, 0);
                assert!((word as i64) < 0, "the entry tells calls by their sign");
            }
            None => assert!(![2, 3, 4, 5, 6, 7, 8, 9, 16, 17].contains(&number)),
        }
    }
    assert_ne!(COMPLETE_PATH & FAST_PATH_REFUSES, 0);
    assert!(COMPLETE_PATH as i64 > 0 && Call::decode(COMPLETE_PATH).is_none());
}

#[test]
fn the_utcb_has_a_place_for_every_word() {
    let controls = [
        utcb::MY_GLOBAL_ID,
        utcb::PROCESSOR_NO,
        utcb::USER_DEFINED_HANDLE,
        utcb::PAGER,
        utcb::EXCEPTION_HANDLER,
        utcb::FLAGS,
        utcb::ERROR_CODE,
        utcb::XFER_TIMEOUTS,
        utcb::INTENDED_RECEIVER,
        utcb::VIRTUAL_SENDER,
        utcb::THREAD_WORD1,
        utcb::THREAD_WORD0,
        utcb::WORD_SIZE_MASK,
        utcb::SELF,
        utcb::LIPC_WAIT,
        utcb::LIPC_SP,
        utcb::LIPC_STATE,
        utcb::LIPC_CURRENT,
    ];
    let buffers = (0..utcb::BRS as isize).map(|index| utcb::BR0 - index);
    let mut words: Vec<isize> =
        controls.into_iter().chain(buffers).chain(0..utcb::MRS as isize).collect();
    words.sort_unstable();
    assert!(words.windows(2).all(|pair| pair[0] < pair[1]), "two words share a place");
    let lowest = -((utcb::POINTER_OFFSET / 8) as isize);
    assert!(words[0] >= lowest && words[words.len() - 1] < lowest + (utcb::SIZE / 8) as isize);
    // The stubs read MyGlobalId at id - 120.
    assert_eq!(utcb::MY_GLOBAL_ID * 8, -120);
}

#[test]
fn stubs_fit_their_page_below_the_data_page() {
    assert_eq!(layout::stub_address(layout::stub::INSPECT), layout::STUBS + 12 * layout::STUB_SIZE);
    assert!(layout::stub_address(layout::stub::COUNT) <= layout::USER_DATA);
    assert_eq!(layout::USER_END % 4096, 0);
}
