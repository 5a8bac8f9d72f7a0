//! ACPI's list of processors and interrupt controllers, with the way to it. The first byte chooses: the
//! others are the list alone, to which everything leads as it should; or all of firmware's memory.

use kernel::boot::acpi::RootTable;
use kernel::boot::madt::{self, MAX_IO_APICS, MAX_PROCESSORS, Madt};
use kernel::boot::memory::{PAGE, PhysicalMemory, Range};

use crate::loader::{Memory, PLACE};

/// Where firmware tells the segment of its data in low memory, and what it says.
const DATA_SEGMENT: Range = Range::new(0x40E, 0x410);
const SEGMENT: [u8; 2] = ((PLACE >> 4) as u16).to_le_bytes();
/// Bytes of the data, and of the header of a table.
const DATA_BYTES: usize = 1024;
const HEADER_BYTES: usize = 36;
/// Where the root table and the list are behind the pointer.
const ROOT: usize = 48;
const LIST: usize = 96;
/// End of the addresses that a device can have, and of the inputs of I/O APICs.
const ADDRESS_END: u64 = 1 << 46;
const MAX_INPUT: u32 = 4096;

/// A machine whose firmware has left data in low memory.
struct Firmware<'a>(Memory<'a>);

impl PhysicalMemory for Firmware<'_> {
    fn bytes(&self, range: Range) -> Option<&[u8]> {
        if range == DATA_SEGMENT { Some(&SEGMENT) } else { self.0.bytes(range) }
    }
}

/// Reads the list.
pub fn madt(bytes: &[u8]) -> bool {
    let Some((way, rest)) = bytes.split_first() else { return false };
    let (memory, root) = match way & 3 {
        0 => (firmware(rest.to_vec()), Some(RootTable::Xsdt(PLACE + ROOT as u64))),
        1 => (firmware(rest.to_vec()), None),
        _ => {
            let mut memory = rest.to_vec();
            memory.resize(memory.len().max(DATA_BYTES), 0);
            (memory, None)
        }
    };
    match madt::find(&Firmware(Memory(&memory)), root) {
        Ok(madt) => {
            check(&madt);
            true
        }
        Err(defect) => {
            assert!(!defect.to_string().is_empty());
            false
        }
    }
}

/// What the kernel relies on.
fn check(madt: &Madt) {
    let is_place = |address: u64, multiple| {
        address != 0 && address.is_multiple_of(multiple) && address < ADDRESS_END
    };
    assert!(is_place(madt.local, PAGE), "{:#x}", madt.local);
    let processors = madt.processors.as_slice();
    assert!((1..=MAX_PROCESSORS).contains(&processors.len()));
    for (at, one) in processors.iter().enumerate() {
        assert!(processors[..at].iter().all(|other| other.apic != one.apic), "{one:?} twice");
    }
    assert!(madt.processors.dropped == 0 || processors.len() == MAX_PROCESSORS);
    let apics = madt.io_apics.as_slice();
    assert!((1..=MAX_IO_APICS).contains(&apics.len()));
    assert!(apics.iter().all(|apic| is_place(apic.address, 16) && apic.first < MAX_INPUT));
    assert_eq!(madt.devices().count(), 1 + apics.len());
    let inputs: Vec<_> = madt.isa.iter().flatten().map(|input| input.number).collect();
    for (at, input) in inputs.iter().enumerate() {
        assert!(!inputs[..at].contains(input), "two lines at input {input}");
    }
    assert!(madt.local_nmis.as_slice().iter().all(|nmi| nmi.pin < 2));
}

/// Firmware's memory with `list`, whose length and checksum are put right, and what leads to it.
pub fn firmware(mut list: Vec<u8>) -> Vec<u8> {
    finish(&mut list);
    let mut root = b"XSDT".to_vec();
    root.resize(HEADER_BYTES, 0);
    root.extend((PLACE + LIST as u64).to_le_bytes());
    finish(&mut root);
    let mut memory = crate::samples::rsdp(PLACE + ROOT as u64);
    memory.resize(ROOT, 0);
    memory.extend(root);
    memory.resize(LIST, 0);
    memory.extend(list);
    memory.resize(memory.len().max(DATA_BYTES), 0);
    memory
}

/// Gives a table its length and checksum.
fn finish(table: &mut [u8]) {
    if table.len() < HEADER_BYTES {
        return;
    }
    let len = table.len() as u32;
    table[4..8].copy_from_slice(&len.to_le_bytes());
    table[9] = 0;
    table[9] = table.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
}

/// What a PC says: three processors, one of which cannot be used, an I/O APIC, the lines of the
/// ISA bus that are not at their own input, a pin for non-maskable interrupts.
pub fn usual() -> Vec<u8> {
    let mut list = header();
    for (uid, flags) in [(0, 1), (1, 1), (2, 0)] {
        list.extend([0, 8, uid, uid, flags, 0, 0, 0]);
    }
    list.extend([1, 12, 0, 0, 0, 0, 0xC0, 0xFE, 0, 0, 0, 0]);
    list.extend([2, 10, 0, 0, 2, 0, 0, 0, 0, 0]);
    list.extend([2, 10, 0, 9, 9, 0, 0, 0, 0xD, 0]);
    list.extend([4, 6, 0xFF, 0, 0, 1]);
    list
}

/// One with entries of every kind: processors with large numbers, two I/O APICs, another address of
/// the local APIC.
pub fn newer() -> Vec<u8> {
    let mut list = header();
    for (apic, uid) in [(0_u32, 7_u32), (0x1234, 77)] {
        list.extend([9, 16, 0, 0]);
        list.extend([apic, 1, uid].iter().flat_map(|word| word.to_le_bytes()));
    }
    for (place, first) in [(0xFEC0_0000_u32, 0_u32), (0xFEC0_1000, 24)] {
        list.extend([1, 12, 0, 0]);
        list.extend([place, first].iter().flat_map(|word| word.to_le_bytes()));
    }
    list.extend([3, 8, 0xF, 0, 20, 0, 0, 0]);
    list.extend([5, 12, 0, 0]);
    list.extend(0x12_FEE0_0000_u64.to_le_bytes());
    list.extend([10, 12, 5, 0, 77, 0, 0, 0, 1, 0, 0, 0]);
    list.extend([0x7F, 4, 1, 2]);
    list
}

/// A header, the local APIC's address, and that there are 8259s, too.
fn header() -> Vec<u8> {
    let mut list = b"APIC".to_vec();
    list.resize(HEADER_BYTES, 0);
    list.extend(0xFEE0_0000_u32.to_le_bytes());
    list.extend([1, 0, 0, 0]);
    list
}
