//! What a message's items say at its receiver is what has arrived, whatever another thread of the
//! sender's makes of the sender's registers meanwhile.

use std::cell::Cell;

use crate::common::tasks::{ipc, machine, registers, thread};
use crate::common::{Machine, RAM, apart, marker};
use abi::utcb::BR0;
use abi::{Fpage, Item, MapItem, MsgTag, Rights, StringItem, ThreadId};
use kernel::arch::{entry, virt_to_phys};
use kernel::check;
use kernel::ipc::wait::waits;
use kernel::mem::{MapJob, frames};
use kernel::space::SpaceRef;
use kernel::thread::rendezvous::{Busy, Waits};
use kernel::thread::{TcbRef, set_current};
use kernel::usermem;

/// Where strings are, a page each, and where they go.
const STRINGS: u64 = 0x40_0000;
const BUFFERS: u64 = 0x80_0000;
/// A page that can be mapped on, and one without anything.
const PAGE: u64 = 0x100_0000;
const NOTHING: u64 = PAGE + 4096;
/// What strings consist of, and what buffers hold before.
const FULL: u8 = 0xA5;
const EMPTY: u8 = 0;

struct Pair {
    machine: Machine,
    client: TcbRef,
    /// The client's pager, a thread of its task.
    pager: TcbRef,
    server: TcbRef,
}

fn show(space: SpaceRef, page: u64, byte: u8) {
    let frame = frames::take().expect("a frame is free").address();
    space.map_kernel_page(page, frame, Rights::RW).expect("quota suffices");
    fill(space, page, byte);
}

fn fill(space: SpaceRef, page: u64, byte: u8) {
    let bytes = vec![Cell::new(byte); 4096];
    usermem::copy_from_cells(space, page, &bytes).expect("it is there");
}

/// How many bytes have arrived at `page`, from its beginning on.
fn arrived(space: SpaceRef, page: u64) -> u64 {
    let bytes = vec![Cell::new(0); 4096];
    usermem::copy_to_cells(space, page, &bytes).expect("it is there");
    let count = bytes.iter().take_while(|byte| byte.get() == FULL).count();
    assert!(bytes[count..].iter().all(|byte| byte.get() == EMPTY));
    count as u64
}

impl Pair {
    /// A server with two buffers and a window, which waits for all.
    fn new() -> Self {
        let (machine, spaces) = machine(2);
        let pager = thread(spaces[0], 1, ThreadId::NIL);
        let client = thread(spaces[0], 0, pager.id.get());
        let server = thread(spaces[1], 2, ThreadId::NIL);
        for buffer in [BUFFERS, BUFFERS + 4096] {
            show(spaces[1], buffer, EMPTY);
        }
        let item = MapItem::map(Fpage::memory(RAM, 12, Rights::RW), PAGE);
        let mut job = MapJob::new(machine.spaces[0], spaces[0], item, Fpage::COMPLETE, marker());
        job.finish().expect("quota suffices");
        let [size, first] = StringItem::simple(BUFFERS, 4096);
        let accepted = [Fpage::COMPLETE.0 | 1, size | 1, first, size, first + 4096];
        for (at, word) in (0..).zip(accepted) {
            registers(server).set_word(BR0 - at, word);
        }
        Self { machine, client, pager, server }
    }

    fn space(&self, of: TcbRef) -> SpaceRef {
        of.space().expect("it has one")
    }

    /// The server waits, and the client sends `items`; who runs next.
    fn send(&self, items: &[u64]) -> TcbRef {
        let _ = ipc(self.server, ThreadId::NIL, ThreadId::ANY);
        let tag = MsgTag::new(0, 0, items.len() as u32);
        (1..).zip(items).for_each(|(at, word)| registers(self.client).set_mr(at, *word));
        registers(self.client).set_mr(0, tag.0);
        ipc(self.client, self.server.id.get(), ThreadId::NIL)
    }

    /// The items of the message are what has arrived.
    fn agrees(&self, count: usize) {
        assert_eq!(waits(self.server), Waits::Busy(Busy::Ready));
        let (utcb, space) = (registers(self.server), self.space(self.server));
        assert!(!MsgTag(utcb.mr(0)).is_error(), "it has come");
        let (mut at, mut buffer, mut page) = (1, BUFFERS, false);
        while at <= count {
            match Item::decode(utcb.mr(at), utcb.mr(at + 1)) {
                Item::String(string) => {
                    assert_eq!(arrived(space, buffer), string.len(), "at {at}");
                    buffer += 4096;
                    at += 1 + string.substrings();
                }
                Item::Map(item) => {
                    page |= item.fpage.base() == PAGE;
                    at += 2;
                }
                Item::Reserved => panic!("at {at}"),
            }
        }
        assert_eq!(space.page(PAGE).is_some(), page);
        assert_eq!(check::violations(), 0);
    }
}

fn string(which: u64, len: u64) -> [u64; 2] {
    StringItem::simple(STRINGS + which * 4096, len)
}

fn page(at: u64) -> [u64; 2] {
    MapItem::map(Fpage::memory(at, 12, Rights::R), at).words()
}

/// The client sends `items`, of which the first is a string whose page is missing; `changed` are its registers
/// when that is there.
fn changed_in_a_fault(items: &[u64], changed: &[u64]) {
    apart(|| fault(items, changed));
}

fn fault(items: &[u64], changed: &[u64]) {
    let pair = Pair::new();
    let space = pair.space(pair.client);
    show(space, STRINGS + 4096, FULL);
    let _ = ipc(pair.pager, ThreadId::NIL, ThreadId::ANY);
    assert!(pair.send(items) == pair.pager, "it is told of the fault");
    show(space, STRINGS, FULL);
    (1..).zip(changed).for_each(|(at, word)| registers(pair.client).set_mr(at, *word));
    registers(pair.pager).set_mr(0, 0);
    let _ = ipc(pair.pager, pair.client.id.get(), ThreadId::ANY);
    set_current(pair.client);
    let _ = entry::resume(pair.client);
    pair.agrees(items.len());
    assert_eq!(pair.machine.violations(false), vec![]);
}

#[test]
fn a_string_is_as_long_as_it_was_when_it_began() {
    let [size, address] = string(0, 4096);
    let others = [string(0, 1), string(0, 0), string(0, 1 << 20), page(PAGE)].map(|item| item[0]);
    // More addresses, a continuation, no item.
    for other in others.into_iter().chain([size | 1 << 4, size | 0x1F << 4, size | 1 << 9, 0xE]) {
        changed_in_a_fault(&[size, address], &[other, address]);
        changed_in_a_fault(&string(0, 100), &[other, address]);
    }
}

#[test]
fn what_comes_behind_a_string_is_what_the_receiver_is_told() {
    let [size, address] = string(0, 4096);
    let both = |[first, second]: [u64; 2]| [size, address, first, second];
    let items = [string(1, 4096), string(1, 7), page(PAGE), page(NOTHING)];
    for before in items {
        for after in items {
            changed_in_a_fault(&both(before), &both(after));
        }
    }
}

#[test]
fn the_words_of_map_items_are_those_that_were_carried_out() {
    let [size, address] = string(0, 9);
    let [there, nothing] = [page(PAGE), page(NOTHING)];
    let items =
        |[first, second]: [[u64; 2]; 2]| [size, address, first[0], first[1], second[0], second[1]];
    changed_in_a_fault(&items([nothing, nothing]), &items([nothing, there]));
    changed_in_a_fault(&items([nothing, there]), &items([nothing, nothing]));
}

/// Another processor may write the item while its string is copied. Here the string itself does: the buffer
/// lies where the sender's registers are.
fn overwrites_itself(len: u64) {
    let pair = Pair::new();
    show(pair.space(pair.client), STRINGS, FULL);
    let item = pair.client.utcb_k.get() + 8;
    let (frame, buffer) = (virt_to_phys(item as *const u8) & !0xFFF, BUFFERS + 8192);
    let shown = pair.space(pair.server).map_kernel_page(buffer, frame, Rights::RW);
    shown.expect("quota suffices");
    registers(pair.server).set_word(BR0 - 2, buffer + item % 4096);
    let sent = string(0, len);
    let _ = pair.send(&sent);
    assert_eq!(waits(pair.server), Waits::Busy(Busy::Ready));
    assert_eq!(registers(pair.client).mr(1), u64::from_ne_bytes([FULL; 8]));
    assert_eq!(registers(pair.server).mr(1), sent[0]);
}

#[test]
fn a_string_that_is_copied_at_once_is_as_long_as_it_says() {
    [8, 64].into_iter().for_each(|len| apart(|| overwrites_itself(len)));
}
