//! ACPI's tables: sound ones are understood, anything else is refused with a reason.

use proptest::prelude::*;

use super::FakeMemory;
use crate::boot::acpi::{self, Defect, RootTable};
use crate::boot::madt::{self, Input, IoApic, Madt, Processor, Signal};

/// A table with its header and checksum.
fn table(signature: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut bytes = signature.to_vec();
    bytes.extend((36 + body.len() as u32).to_le_bytes());
    bytes.resize(36, 0);
    bytes.extend(body);
    seal(&mut bytes);
    bytes
}

fn seal(bytes: &mut [u8]) {
    bytes[9] = 0;
    bytes[9] = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
}

fn processor(uid: u8, apic: u8, flags: u8) -> Vec<u8> {
    vec![0, 8, uid, apic, flags, 0, 0, 0]
}

/// What the emulator's PC says, with three processors, one of them not enabled.
fn body() -> Vec<u8> {
    let mut body = 0xFEE0_0000_u32.to_le_bytes().to_vec();
    body.extend([1, 0, 0, 0]);
    body.extend([processor(0, 0, 1), processor(1, 1, 1), processor(2, 2, 0)].concat());
    body.extend([1, 12, 0, 0, 0, 0, 0xC0, 0xFE, 0, 0, 0, 0]);
    body.extend([2, 10, 0, 0, 2, 0, 0, 0, 0, 0]);
    for line in [5, 9, 10, 11] {
        body.extend([2, 10, 0, line, line, 0, 0, 0, 0xD, 0]);
    }
    body.extend([4, 6, 0xFF, 0, 0, 1]);
    body
}

fn read(body: &[u8]) -> Result<Madt, Defect> {
    madt::read(&table(b"APIC", body))
}

fn with(extra: &[u8]) -> Result<Madt, Defect> {
    read(&[&body(), extra].concat())
}

#[test]
fn a_processor_with_everybodys_number_is_none() {
    let madt = with(&processor(9, 0xFF, 1)).expect("a sound table");
    assert_eq!(madt.processors.as_slice().len(), 2);
    let madt = with(&processor(9, 0xFE, 1)).expect("a sound table");
    assert_eq!(madt.processors.as_slice().len(), 3);
}

#[test]
fn a_pc_is_understood() {
    let madt = read(&body()).expect("a sound table");
    assert_eq!((madt.local, madt.has_8259), (0xFEE0_0000, true));
    let known = [Processor { apic: 0, uid: 0 }, Processor { apic: 1, uid: 1 }];
    assert_eq!(madt.processors.as_slice(), known);
    assert_eq!(madt.io_apics.as_slice(), [IoApic { address: 0xFEC0_0000, first: 0 }]);
    let at = |line: usize| madt.isa[line].map(|input| (input.number, input.signal.is_level));
    assert_eq!(
        [at(0), at(1), at(2), at(9)],
        [Some((2, false)), Some((1, false)), None, Some((9, true))]
    );
    assert!(madt.isa.iter().flatten().all(|input| !input.signal.is_low));
    let [nmi] = madt.local_nmis.as_slice() else { panic!("one pin") };
    assert_eq!((nmi.uid, nmi.pin, nmi.signal), (None, 1, Signal::default()));
}

#[test]
fn newer_entries_are_understood() {
    let mut extra = vec![9, 16, 0, 0];
    for word in [0x1234_u32, 1, 77] {
        extra.extend(word.to_le_bytes());
    }
    extra.extend([5, 12, 0, 0]);
    extra.extend(0x12_FEE0_0000_u64.to_le_bytes());
    extra.extend([10, 12, 0xF, 0, 77, 0, 0, 0, 0, 0, 0, 0]);
    extra.extend([3, 8, 0, 0, 20, 0, 0, 0]);
    extra.extend([0x7F, 4, 1, 2]);
    let madt = with(&extra).expect("a sound table");
    assert_eq!(madt.local, 0x12_FEE0_0000);
    assert_eq!(madt.processors.as_slice()[2], Processor { apic: 0x1234, uid: 77 });
    let signal = Signal { is_level: true, is_low: true };
    let nmi = madt.local_nmis.as_slice()[1];
    assert_eq!((nmi.uid, nmi.pin, nmi.signal), (Some(77), 0, signal));
    assert_eq!(madt.nmis.as_slice(), [Input { number: 20, signal: Signal::default() }]);
}

#[test]
fn nonsense_is_refused() {
    let refused = |extra: &[u8]| with(extra).expect_err("the table should be refused");
    let at = 36 + body().len();
    assert_eq!(refused(&[0]), Defect::Entry(at));
    assert_eq!(refused(&[0, 0]), Defect::Entry(at));
    assert_eq!(refused(&[0, 1]), Defect::Entry(at));
    assert_eq!(refused(&[0, 8, 0]), Defect::Entry(at));
    assert_eq!(refused(&[0, 4, 9, 9]), Defect::Entry(at));
    assert_eq!(refused(&[2, 8, 0, 1, 1, 0, 0, 0]), Defect::Entry(at));
    let nonsense = |extra: &[u8]| matches!(refused(extra), Defect::Nonsense(_));
    assert!(nonsense(&[2, 10, 0, 16, 1, 0, 0, 0, 0, 0]), "no line 16");
    assert!(nonsense(&[2, 10, 1, 3, 3, 0, 0, 0, 0, 0]), "no other bus");
    assert!(nonsense(&[2, 10, 0, 3, 3, 0, 0, 0, 2, 0]), "no such polarity");
    assert!(nonsense(&[2, 10, 0, 3, 2, 0, 0, 0, 0, 0]), "the input of line 0");
    assert!(nonsense(&[4, 6, 0xFF, 0, 0, 2]), "no such pin");
    assert!(nonsense(&[1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), "an I/O APIC at 0");
    assert!(nonsense(&[1, 12, 0, 0, 0, 0, 0xC1, 0xFE, 0, 0, 0, 1]), "the input 16 million");
    assert!(nonsense(&[5, 12, 0, 0, 1, 0, 0xE0, 0xFE, 0, 0, 0, 0]), "an odd local APIC");
    assert!(read(&body()[..8]).is_err() && read(&body()[..7]).is_err() && read(&[]).is_err());
}

#[test]
fn more_than_there_is_room_for_is_counted() {
    let many: Vec<u8> = (3..=200).flat_map(|apic| processor(apic, apic, 1)).collect();
    let madt = with(&many).expect("a sound table");
    assert_eq!((madt.processors.as_slice().len(), madt.processors.dropped), (64, 136));
    let twice: Vec<u8> = [7; 200].into_iter().flat_map(|apic| processor(apic, apic, 1)).collect();
    let madt = with(&twice).expect("a sound table");
    assert_eq!((madt.processors.as_slice().len(), madt.processors.dropped), (3, 0));
}

const START: u64 = 0x1_0000;

/// Root table with `width` bytes an entry, another table, and the one that is wanted.
fn memory(width: usize) -> (FakeMemory, RootTable) {
    let others = [table(b"FACP", &[1; 80]), table(b"APIC", &body())];
    let list_bytes = 36 + 3 * width;
    let mut place = START + list_bytes as u64;
    let mut list = vec![0; width];
    for other in &others {
        list.extend(&place.to_le_bytes()[..width]);
        place += other.len() as u64;
    }
    let (name, root) = if width == 4 {
        (b"RSDT", RootTable::Rsdt(START))
    } else {
        (b"XSDT", RootTable::Xsdt(START))
    };
    (FakeMemory { start: START, bytes: [table(name, &list), others.concat()].concat() }, root)
}

#[test]
fn tables_are_found_by_signature() {
    for width in [4, 8] {
        let (mut memory, root) = memory(width);
        // The first entry is out of reach.
        assert!(madt::find(&memory, Some(root)).is_ok());
        assert_eq!(acpi::table(&memory, root, *b"HPET"), Err(Defect::Missing(*b"HPET")));
        let last = memory.bytes.len() - 1;
        memory.bytes[last] ^= 1;
        assert!(matches!(madt::find(&memory, Some(root)), Err(Defect::Checksum(_))));
        memory.bytes.truncate(last);
        assert!(matches!(madt::find(&memory, Some(root)), Err(Defect::Unreadable(_))));
        memory.bytes[0] = b'X' ^ b'R';
        assert_eq!(madt::find(&memory, Some(root)).err(), Some(Defect::Signature(START)));
    }
    let nowhere = FakeMemory { start: START, bytes: Vec::new() };
    assert_eq!(madt::find(&nowhere, None).err(), Some(Defect::NoPointer));
}

#[test]
fn the_firmware_s_area_is_searched() {
    let mut bytes = vec![0; 0x10_0000 - 0x400];
    let pointer = super::loader::rsdp(2);
    bytes[0xF_5AC0 - 0x400..][..36].copy_from_slice(&pointer);
    let mut memory = FakeMemory { start: 0x400, bytes };
    let expected = Some(RootTable::Xsdt(0xAABB_CCDD_0000));
    assert_eq!(acpi::search(&memory), expected);
    memory.bytes[0xF_5AC0 - 0x400] = 0;
    assert_eq!(acpi::search(&memory), None);
    memory.bytes[0xE..0x10].copy_from_slice(&0x9FC0_u16.to_le_bytes());
    memory.bytes[0x9_FC10 - 0x400..][..36].copy_from_slice(&pointer);
    assert_eq!(acpi::search(&memory), expected);
}

proptest! {
    /// Whatever the bytes say, they are read to an end; what is accepted keeps the rules.
    #[test]
    fn any_bytes_are_survived(tail in proptest::collection::vec(any::<u8>(), 0..300), head: bool) {
        let bytes = if head { [body(), tail].concat() } else { tail };
        if let Ok(madt) = read(&bytes) {
            prop_assert!(!madt.processors.as_slice().is_empty());
            prop_assert!(!madt.io_apics.as_slice().is_empty() && madt.local % 4096 == 0);
        }
    }

    /// Entries with their right lengths and any content.
    #[test]
    fn any_entries_are_survived(
        entries in proptest::collection::vec((0_u8..11, any::<[u8; 16]>()), 0..100),
    ) {
        const LENGTHS: [u8; 11] = [8, 12, 10, 8, 6, 12, 16, 16, 16, 16, 12];
        let mut bytes = body();
        for (kind, mut entry) in entries {
            let len = LENGTHS[usize::from(kind)];
            entry[..2].copy_from_slice(&[kind, len]);
            bytes.extend(&entry[..usize::from(len)]);
        }
        if let Ok(madt) = read(&bytes) {
            let mut inputs: Vec<u32> = madt.isa.iter().flatten().map(|input| input.number).collect();
            let count = inputs.len();
            inputs.sort_unstable();
            inputs.dedup();
            prop_assert_eq!(inputs.len(), count);
        }
    }

    /// A list of tables with any words in it.
    #[test]
    fn any_words_in_the_list_are_survived(at in 0_usize..400, value: u32, seals: bool) {
        let (mut memory, root) = memory(4);
        let at = at.min(memory.bytes.len() - 4);
        memory.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        if seals {
            seal(&mut memory.bytes[..48]);
        }
        let _ = madt::find(&memory, Some(root));
    }
}
