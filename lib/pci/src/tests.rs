//! Against a bus of words, with what a device's registers do when they are written.

use core::cell::RefCell;
use std::collections::BTreeMap;
use std::vec::Vec;

use abi::kip::LineMessage;

use super::*;

/// Functions by place, their words, and which bits of each word can be written.
#[derive(Default)]
struct Bus(RefCell<BTreeMap<(u8, u8, u8), Vec<(u32, u32)>>>);

impl Bus {
    fn add(&self, place: (u8, u8, u8), words: &[(u8, u32, u32)]) {
        let mut all = std::vec![(0, 0); 64];
        for (at, value, writable) in words {
            all[usize::from(*at) / 4] = (*value, *writable);
        }
        self.0.borrow_mut().insert(place, all);
    }
}

impl Access for Bus {
    fn read(&self, place: Place, offset: u8) -> u32 {
        assert_eq!(offset % 4, 0);
        let functions = self.0.borrow();
        let words = functions.get(&(place.bus, place.device, place.function));
        words.map_or(!0, |words| words[usize::from(offset) / 4].0)
    }

    fn write(&self, place: Place, offset: u8, value: u32) {
        let mut functions = self.0.borrow_mut();
        let Some(words) = functions.get_mut(&(place.bus, place.device, place.function)) else {
            return;
        };
        let (word, writable) = &mut words[usize::from(offset) / 4];
        *word = *word & !*writable | value & *writable;
    }
}

const MESSAGE: LineMessage = LineMessage { address: 0xFEE0_1000, data: 0x50 };

/// A function with MSI behind another capability, and registers of a MiB.
fn with_msi(bus: &Bus, place: (u8, u8, u8), flags: u32) {
    bus.add(
        place,
        &[
            (0x00, 0x11E8_1234, 0),
            (0x04, 1 << 20, 0xFFFF),
            (0x10, 0xFEA0_0000, 0xFFF0_0000),
            (0x34, 0x40, 0),
            (0x40, 0x5001, 0),
            (0x50, flags | 0x05, 0x0071_0000),
            (0x54, 0, !3),
            (0x58, 0, !0),
            (0x5C, 0, !0),
        ],
    );
}

#[test]
fn a_function_is_found_on_any_bus() {
    let bus = Bus::default();
    bus.add((0, 0, 0), &[(0, 0x1237_8086, 0)]);
    bus.add((0, 1, 0), &[(0, 0x7000_8086, 0), (0x0C, 0x80 << 16, 0)]);
    bus.add((0, 1, 3), &[(0, 0x7113_8086, 0)]);
    bus.add((0, 2, 5), &[(0, 0x9999_8086, 0)]);
    with_msi(&bus, (3, 31, 0), 0);
    let place = |vendor, device| Function::find(&bus, vendor, device).map(|it| it.place());
    assert_eq!(place(0x1234, 0x11E8), Some(Place { bus: 3, device: 31, function: 0 }));
    assert_eq!(place(0x8086, 0x7113), Some(Place { bus: 0, device: 1, function: 3 }));
    assert_eq!(place(0x8086, 0x9999), None, "a device without a first function is none");
    assert_eq!(place(0x8086, 0x1111), None);
    assert_eq!(Place { bus: 3, device: 31, function: 1 }.address(0x13), 0x8003_F910);
}

#[test]
fn the_size_of_registers_is_asked_and_everything_put_back() {
    let bus = Bus::default();
    with_msi(&bus, (0, 4, 0), 0);
    let function = Function::find(&bus, 0x1234, 0x11E8).unwrap();
    function.enable();
    assert_eq!(function.memory(0), Some(Memory { address: 0xFEA0_0000, bytes: 1 << 20 }));
    assert_eq!(function.read(0x10), 0xFEA0_0000);
    assert_eq!(function.read(0x04), 1 << 20 | 0b110);
    assert_eq!((function.memory(1), function.memory(6), function.memory(200)), (None, None, None));
    bus.add(
        (0, 5, 0),
        &[
            (0, 1, 0),
            (0x10, 0xC001, 0xFFFF_FFE0),
            (0x14, 0x8000_000C, 0xF000_0000),
            (0x18, 0x2, !0),
            (0x24, 0x0000_0004, !0xFFF),
        ],
    );
    let wide = Function::find(&bus, 1, 0).unwrap();
    assert_eq!(wide.memory(0), None, "ports are no memory");
    assert_eq!(wide.memory(1), Some(Memory { address: 0x2_8000_0000, bytes: 1 << 28 }));
    assert_eq!(wide.memory(5), None, "there is no seventh word");
}

#[test]
fn one_message_goes_where_the_capability_has_room_for_it() {
    for (flags, data) in [(0, 0x58), (1 << 23, 0x5C)] {
        let bus = Bus::default();
        // Firmware had it on, with several messages.
        with_msi(&bus, (0, 4, 0), flags | 1 << 16 | 0b010 << 20);
        let function = Function::find(&bus, 0x1234, 0x11E8).unwrap();
        assert_eq!(function.messages(), Some(Messages::One));
        assert!(function.signal_by(MESSAGE));
        assert_eq!((function.read(0x54), function.read(data)), (0xFEE0_1000, 0x50));
        assert_eq!(function.read(0x50), flags | 1 << 16 | 0x05);
        assert_eq!(function.read(0x04) & 1 << 10, 1 << 10, "the wire is off");
        let far = LineMessage { address: 1 << 32, data: 0 };
        assert_eq!(function.signal_by(far), flags != 0);
    }
}

#[test]
fn a_table_is_found_and_switched_on() {
    let bus = Bus::default();
    bus.add(
        (0, 4, 0),
        &[
            (0, 0x10D3_8086, 0),
            (0x04, 1 << 20, 0xFFFF),
            (0x34, 0xA0, 0),
            (0xA0, 4 << 16 | 1 << 30 | 0x11, 3 << 30),
            (0xA4, 0x2003, 0),
        ],
    );
    let function = Function::find(&bus, 0x8086, 0x10D3).unwrap();
    let table = Table { registers: 3, offset: 0x2000, entries: 5 };
    assert_eq!(function.messages(), Some(Messages::Table(table)));
    assert!(!function.signal_by(MESSAGE), "it has no single one");
    function.signal_by_table();
    assert_eq!(function.read(0xA0) >> 30, 0b10);
    assert_eq!(Table::entry(MESSAGE), [0xFEE0_1000, 0, 0x50, 0]);
}

#[test]
fn a_list_that_leads_in_a_circle_ends() {
    let bus = Bus::default();
    bus.add(
        (0, 4, 0),
        &[(0, 1, 0), (0x04, 1 << 20, 0), (0x34, 0x40, 0), (0x40, 0x5001, 0), (0x50, 0x4001, 0)],
    );
    let function = Function::find(&bus, 1, 0).unwrap();
    assert_eq!(function.messages(), None);
    bus.add((0, 4, 0), &[(0, 1, 0), (0x04, 1 << 20, 0), (0x34, 0x04, 0)]);
    assert_eq!(function.messages(), None, "a capability is behind the header");
    for kind in [0x05, 0x11] {
        bus.add((0, 4, 0), &[(0, 1, 0), (0x04, 1 << 20, 0), (0x34, 0xFC, 0), (0xFC, kind, !0)]);
        assert_eq!(function.messages(), None, "it has no room behind it");
        assert!(!function.signal_by(MESSAGE));
        function.signal_by_table();
        assert_eq!(function.read(0xFC), kind);
    }
}
