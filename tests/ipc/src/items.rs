//! Map and grant items in messages: window arithmetic, refusals, several items,
//! items beside strings and words (X.2 4.2 to 4.4). What came to be mapped is read
//! from the kernel's mapping database by Inspect.

use abi::inspect::What;
use abi::{Fpage, IpcErrorKind, MapItem, Phase, Rights};
use runtime::kernel;

use crate::forms::{failed, succeeded};
use crate::places;
use crate::puppet::{Order, Puppet};
use crate::raw::{differs, fill};
use crate::stage::{Stage, settle};
use crate::strings::{SENT, TARGET};
use crate::verdict::{Test, Verdict};
use crate::{ensure, same};

/// The tests.
pub const TESTS: &[Test] = &[
    ("fpage_smaller_than_window", smaller),
    ("fpage_larger_than_window", larger),
    ("fpage_into_the_complete_space", complete),
    ("rights_never_grow", rights),
    ("no_window_is_overflow", no_window),
    ("nil_fpage_moves_nothing", nil),
    ("grant_moves_the_mapping", grant),
    ("several_items_words_and_strings", mixed),
    ("items_before_an_overflow_stay", before_overflow),
];

/// A window of 1 MiB that no space uses for anything else.
const WINDOW: u64 = 0x4000_0000;
const WINDOW_BITS: u32 = 20;
const PAGE: u64 = 4096;

/// The sender (root space) and the receiver (third space).
fn actors(stage: &Stage) -> (Puppet, Puppet) {
    stage.reset();
    stage.unmap_memory();
    (stage.puppet(0), stage.puppet(8))
}

fn window() -> Fpage {
    Fpage::memory(WINDOW, WINDOW_BITS, Rights::NONE)
}

fn play(sender: Puppet, receiver: Puppet, send: Order, receive: Order) {
    receiver.order(receive);
    settle();
    sender.order(send);
    settle();
}

/// The space of a thread, as the kernel numbers it.
fn space(puppet: &Puppet) -> u64 {
    kernel::inspect(What::Thread, u64::from(puppet.id.number()), 0).map_or(!0, |record| record[2])
}

/// Where the frame at `phys` is mapped in `puppet`'s space: address and rights.
/// The root task's memory is at its physical address.
fn mapped(phys: u64, puppet: &Puppet) -> Option<(u64, u64)> {
    let space = space(puppet);
    (0..64)
        .map_while(|index| kernel::inspect(What::Mapping, index, phys))
        .find(|record| record[1] == space)
        .map(|record| (record[2], record[4]))
}

/// Complains unless the frame at `phys` is mapped at `address`, with these rights.
fn is_mapped(phys: u64, puppet: &Puppet, address: u64, rights: Rights) -> Verdict {
    let Some((at, with)) = mapped(phys, puppet) else {
        return Err(crate::verdict::Complaint::new(format_args!(
            "frame {phys:#x} is not mapped in the receiver's space"
        )));
    };
    same!(format_args!("the address of frame {phys:#x}"), at, address);
    same!(format_args!("the rights of frame {phys:#x}"), with, u64::from(rights.0));
    Ok(())
}

fn is_unmapped(phys: u64, puppet: &Puppet) -> Verdict {
    let found = mapped(phys, puppet);
    ensure!(found.is_none(), "frame {phys:#x} is mapped at {:#x}", found.unwrap_or_default().0);
    Ok(())
}

/// Window base + (send base mod window size), aligned down to the send size.
fn smaller(stage: &Stage) -> Verdict {
    let memory = stage.memory.base();
    for (bits, send_base) in [
        (12, 0),
        (12, 0x5000),
        (12, 0x1234_5000 + (1 << WINDOW_BITS)),
        (14, 0x7000),
        (16, 0xF_F000),
        (20, 0x3000),
    ] {
        let (a, b) = actors(stage);
        let fpage = Fpage::memory(memory + (1 << 20), bits, Rights::RW);
        let item = MapItem::map(fpage, send_base).words();
        play(a, b, Order::send(b.id).item(&item), Order::wait().window(window()));
        succeeded(&a, 0)?;
        succeeded(&b, 0)?;
        same!("the item's first word", b.outcome(0).mr[1], item[0]);
        same!("the item's second word", b.outcome(0).mr[2], item[1]);
        let offset = (send_base & ((1 << WINDOW_BITS) - 1)) >> bits << bits;
        for page in [0, (1 << bits) - PAGE] {
            is_mapped(fpage.base() + page, &b, WINDOW + offset + page, Rights::RW)?;
        }
        is_unmapped(fpage.base() + (1 << bits), &b)?;
        is_unmapped(fpage.base() - PAGE, &b)?;
    }
    Ok(())
}

/// The part of the fpage that the send base chooses, in window size.
fn larger(stage: &Stage) -> Verdict {
    let memory = stage.memory.base();
    for (window_bits, send_base) in [(12, 0), (12, 0x5000), (13, 0xB000), (14, 0x7F_5000)] {
        let (a, b) = actors(stage);
        let bits = 16;
        let fpage = Fpage::memory(memory + (2 << 20), bits, Rights::RX);
        let narrow = Fpage::memory(WINDOW, window_bits, Rights::NONE);
        play(
            a,
            b,
            Order::send(b.id).item(&MapItem::map(fpage, send_base).words()),
            Order::wait().window(narrow),
        );
        succeeded(&a, 0)?;
        let chosen = (send_base & ((1 << bits) - 1)) >> window_bits << window_bits;
        for page in (0..1u64 << bits).step_by(4096) {
            let inside = page >= chosen && page < chosen + (1 << window_bits);
            if inside {
                is_mapped(fpage.base() + page, &b, WINDOW + page - chosen, Rights::RX)?;
            } else {
                is_unmapped(fpage.base() + page, &b)?;
            }
        }
    }
    Ok(())
}

fn complete(stage: &Stage) -> Verdict {
    let (a, b) = actors(stage);
    let fpage = Fpage::memory(stage.memory.base() + (3 << 20), 13, Rights::RWX);
    let item = MapItem::map(fpage, 0x4100_2000).words();
    play(a, b, Order::send(b.id).item(&item), Order::wait().window(Fpage::COMPLETE));
    succeeded(&b, 0)?;
    is_mapped(fpage.base(), &b, 0x4100_2000, Rights::RWX)?;
    is_mapped(fpage.base() + PAGE, &b, 0x4100_3000, Rights::RWX)
}

/// From the second space, which has the page read-only, to the third.
fn rights(stage: &Stage) -> Verdict {
    let phys = stage.memory.base() + (4 << 20);
    for (has, asks) in [(Rights::R, Rights::RWX), (Rights::RX, Rights::RW), (Rights::RW, Rights::R)]
    {
        let (a, b) = actors(stage);
        let middle = stage.puppet(4);
        let first = MapItem::map(Fpage::memory(phys, 12, has), phys).words();
        play(a, middle, Order::send(middle.id).item(&first), Order::wait().window(window()));
        let at = WINDOW + (phys & ((1 << WINDOW_BITS) - 1));
        is_mapped(phys, &middle, at, has)?;
        let second = MapItem::map(Fpage::memory(at, 12, asks), 0).words();
        play(middle, b, Order::send(b.id).item(&second), Order::wait().window(window()));
        succeeded(&b, 0)?;
        is_mapped(phys, &b, WINDOW, has.and(asks))?;
    }
    Ok(())
}

fn no_window(stage: &Stage) -> Verdict {
    let phys = stage.memory.base();
    for grant in [false, true] {
        let (a, b) = actors(stage);
        let item = MapItem { send_base: 0, fpage: Fpage::memory(phys, 12, Rights::R), grant };
        for receive in [Order::wait(), Order::wait().buffer(phys + TARGET, 100)] {
            play(a, b, Order::send(b.id).words(&[9]).item(&item.words()), receive);
            failed(&a, 0, IpcErrorKind::Overflow, Phase::Send, 0)?;
            failed(&b, 0, IpcErrorKind::Overflow, Phase::Receive, 0)?;
            same!("the word before the refused item", b.outcome(0).mr[1], 9);
            is_unmapped(phys, &b)?;
        }
    }
    Ok(())
}

fn nil(stage: &Stage) -> Verdict {
    let (a, b) = actors(stage);
    for fpage in [Fpage::NIL, Fpage::memory(stage.memory.base(), 11, Rights::RW)] {
        let item = MapItem::map(fpage, 0).words();
        play(a, b, Order::send(b.id).item(&item), Order::wait().window(window()));
        succeeded(&a, 0)?;
        succeeded(&b, 0)?;
        same!("the item's second word", b.outcome(0).mr[2], fpage.0);
        is_unmapped(stage.memory.base(), &b)?;
    }
    Ok(())
}

/// Root maps to the second space, which grants to the third.
fn grant(stage: &Stage) -> Verdict {
    let phys = stage.memory.base() + (5 << 20);
    let (a, b) = actors(stage);
    let middle = stage.puppet(4);
    let first = MapItem::map(Fpage::memory(phys, 13, Rights::RW), 0).words();
    play(a, middle, Order::send(middle.id).item(&first), Order::wait().window(window()));
    is_mapped(phys, &middle, WINDOW, Rights::RW)?;
    let second = MapItem::grant(Fpage::memory(WINDOW, 13, Rights::RW), 0x8000).words();
    play(middle, b, Order::send(b.id).item(&second), Order::wait().window(window()));
    succeeded(&b, 0)?;
    same!("the grant item", b.outcome(0).mr[1], second[0]);
    for page in [0, PAGE] {
        is_unmapped(phys + page, &middle)?;
        is_mapped(phys + page, &b, WINDOW + 0x8000 + page, Rights::RW)?;
    }
    // It is still the root task's to take back.
    let _ = kernel::unmap(Fpage::memory(phys, 13, Rights::RWX));
    is_unmapped(phys, &b)
}

/// Words, a map item, a string, and a map item.
fn mixed(stage: &Stage) -> Verdict {
    let (a, b) = actors(stage);
    let memory = stage.memory.base();
    fill(memory, 5000, SENT, 0);
    let map = |page: u64, base: u64| {
        MapItem::map(Fpage::memory(memory + page, 12, Rights::R), base).words()
    };
    let (first, last) = (map(6 << 20, 0x1000), map(7 << 20, 0x3000));
    let send = Order::send(b.id)
        .label(1)
        .words(&[11, 12, 13])
        .item(&first)
        .string(memory, 5000)
        .item(&last);
    play(a, b, send, Order::wait().window(window()).buffer(memory + TARGET, 5000));
    succeeded(&a, 0)?;
    succeeded(&b, 0)?;
    let outcome = b.outcome(0);
    same!("the tag", outcome.mr[0], send.mr[0] | places::flag(a.id, b.index));
    ensure!(outcome.mr[1..10] == send.mr[1..10], "words or items did not arrive as they were sent");
    is_mapped(memory + (6 << 20), &b, WINDOW + 0x1000, Rights::R)?;
    is_mapped(memory + (7 << 20), &b, WINDOW + 0x3000, Rights::R)?;
    ensure!(
        differs(memory + TARGET, 5000, SENT, 0).is_none(),
        "the string between two map items did not arrive"
    );
    Ok(())
}

/// A map item, then a string without a buffer: the mapping stays.
fn before_overflow(stage: &Stage) -> Verdict {
    let (a, b) = actors(stage);
    let phys = stage.memory.base() + (6 << 20);
    let map = MapItem::map(Fpage::memory(phys, 12, Rights::R), 0).words();
    play(a, b, Order::send(b.id).item(&map).string(phys, 10), Order::wait().window(window()));
    failed(&a, 0, IpcErrorKind::Overflow, Phase::Send, 0)?;
    failed(&b, 0, IpcErrorKind::Overflow, Phase::Receive, 0)?;
    is_mapped(phys, &b, WINDOW, Rights::R)
}
