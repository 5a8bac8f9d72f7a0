//! Page sizes: 4 KiB, 2 MiB, 1 GiB; cutting and filling them up again.

use abi::inspect::What;
use abi::{Fpage, MapItem, Rights};
use runtime::kernel;

use super::{PLACE, block, page, place};
use crate::report::{Outcome, Sentence, because, case};
use crate::victim::{Event, LOAD, STORE, Victim, at};
use crate::{check, machine, same, world};

const MIB2: u64 = 1 << 21;

/// Runs the tests.
pub fn run() {
    case("large_pages_are_mapped_whole", large);
    case("large_pages_are_cut_and_filled_up", cut);
    case("a_large_flexpage_of_small_pages", small);
    case("a_gibibyte_page", gibibyte);
    case("windows_and_send_bases", windows);
}

/// A victim with the first 2 MiB of the block at PLACE.
fn with_large(rights: Rights) -> Outcome<Victim> {
    let victim = Victim::task()?;
    for offset in [0, MIB2 - 4096] {
        let _ = machine::read(block()? + offset);
    }
    place(&victim, MapItem::map(Fpage::memory(block()?, 21, rights), PLACE), LOAD, PLACE + 0x1000)?;
    Ok(victim)
}

fn large() -> Outcome {
    // A fresh block: the other one has been cut by earlier tests.
    let Some(window) = runtime::sigma0::memory(None, 21) else {
        return Err(Sentence::new(format_args!("sigma0 gave no 2 MiB")));
    };
    let victim = Victim::task()?;
    let fpage = Fpage::memory(window.base(), 21, Rights::RW);
    place(&victim, MapItem::map(fpage, PLACE), STORE, PLACE + 0x1F_F008)?;
    let node = kernel::inspect(What::Mapping, 2, window.base()).unwrap_or_default();
    same!("address and size of the victim's page", (node[2], node[3]), (PLACE, 21));
    victim.store(PLACE + 0x10_0000, 77)?;
    same!("what it wrote", machine::read(window.base() + 0x10_0000), 77);
    machine::unmap(0, [fpage.with_rights(Rights::RWX).0, 0, 0, 0, 0, 0, 0, 0]);
    check!(victim.load_fault(PLACE)?.is_some(), "the large page outlived the unmap");
    victim.delete()
}

fn cut() -> Outcome {
    let victim = with_large(Rights::RW)?;
    let hole = Fpage::memory(block()? + 0x5000, 12, Rights::RWX);
    machine::unmap(0, [hole.0, 0, 0, 0, 0, 0, 0, 0]);
    check!(victim.load_fault(PLACE + 0x5000)?.is_some(), "the page cut out is still there");
    for offset in [0, 0x4000, 0x6000, MIB2 - 8] {
        check!(
            victim.load_fault(PLACE + offset)?.is_none(),
            "the page at {offset:#x} went with its neighbour"
        );
    }
    world::sound()?;
    let whole = MapItem::map(Fpage::memory(block()?, 21, Rights::RW), PLACE);
    place(&victim, whole, LOAD, PLACE + 0x5000)?;
    // One right of one page less.
    let page = Fpage::memory(block()? + 0x8000, 12, Rights::W);
    machine::unmap(0, [page.0, 0, 0, 0, 0, 0, 0, 0]);
    check!(victim.store_fault(PLACE + 0x8000)?.is_some(), "a page without w can be written");
    check!(victim.load_fault(PLACE + 0x8000)?.is_none(), "a page without w cannot be read");
    check!(victim.store_fault(PLACE + 0x9000)?.is_none(), "its neighbour cannot be written");
    place(&victim, whole, STORE, PLACE + 0x8000)?;
    world::sound()?;
    victim.delete()
}

fn small() -> Outcome {
    // 16 pages in any order at one go, each found where it belongs.
    let base = block()? + MIB2;
    for index in 0..16 {
        machine::write(base + index * 4096, index ^ 0xAA);
    }
    let victim = Victim::task()?;
    place(&victim, MapItem::map(Fpage::memory(base, 16, Rights::R), PLACE), LOAD, PLACE)?;
    for index in 0..16 {
        same!("a page's contents", victim.load(PLACE + index * 4096)?, index ^ 0xAA);
    }
    check!(victim.load_fault(PLACE + 0x1_0000)?.is_some(), "more was mapped than sent");
    victim.delete()
}

/// What a page of 1 GiB costs with all that it can be split into, pages.
const SPLIT_PRICE: i64 = 1026;

fn gibibyte() -> Outcome {
    let free = [None, Some(1 << 30), Some(2 << 30), Some(4 << 30)]
        .into_iter()
        .find_map(|at| runtime::sigma0::memory(at, 30));
    let Some(window) = free else {
        // The machine has no free GiB: then nothing of that size may appear either.
        return no_gibibyte();
    };
    let victim = Victim::task()?;
    because(kernel::move_quota(victim.id(), SPLIT_PRICE), "giving the price of a split")?;
    place(
        &victim,
        MapItem::map(Fpage::memory(window.base(), 30, Rights::RW), PLACE),
        LOAD,
        PLACE + 0x2000_0000,
    )?;
    let node = kernel::inspect(What::Mapping, 2, window.base()).unwrap_or_default();
    same!("address and size of the victim's page", (node[2], node[3]), (PLACE, 30));
    let hole = Fpage::memory(window.base() + 0x1234_5000, 12, Rights::RWX);
    machine::unmap(0, [hole.0, 0, 0, 0, 0, 0, 0, 0]);
    check!(victim.load_fault(PLACE + 0x1234_5000)?.is_some(), "the page cut out is still there");
    check!(victim.load_fault(PLACE + 0x1234_6000)?.is_none(), "its neighbour went with it");
    world::sound()?;
    victim.delete()
}

/// A flexpage of 1 GiB around the block maps what is there, in smaller pages.
fn no_gibibyte() -> Outcome {
    let victim = Victim::task()?;
    let gib = block()? >> 30 << 30;
    let item = MapItem::map(Fpage::memory(gib, 30, Rights::R), PLACE);
    let inside = PLACE + (page(7)? - gib);
    place(&victim, item, LOAD, inside)?;
    let mut index = 0;
    while let Some(node) = kernel::inspect(What::Mapping, index, page(7)?) {
        check!(node[3] < 30, "a page of 1 GiB appeared from nowhere");
        index += 1;
    }
    check!(victim.load_fault(PLACE + (1 << 30))?.is_some(), "more was mapped than sent");
    victim.delete()
}

fn windows() -> Outcome {
    let victim = Victim::task()?;
    // A page fault opens the whole space: the send base is the address.
    machine::write(page(9)?, 0x99);
    let item = MapItem::map(Fpage::memory(page(9)?, 12, Rights::R), PLACE + 0x3000);
    victim.begin(LOAD, at(PLACE, 0))?;
    check!(matches!(victim.event(), Event::PageFault(_)), "an empty page did not fault");
    victim.give(item)?;
    // Mapped elsewhere: the same fault again, the page where it was sent.
    check!(
        matches!(victim.event(), Event::PageFault(fault) if fault.address == PLACE),
        "the fault was not repeated"
    );
    victim.abandon()?;
    same!("the page at the send base", victim.load(PLACE + 0x3000)?, 0x99);
    // Smaller than a page, nil, or of the kernel's half: nothing moves.
    for word in
        [0u64, Fpage::memory(page(9)?, 11, Rights::RWX).0, 0xFFFF_FFFF_8000_0000 | 21 << 4 | 7]
    {
        victim.begin(LOAD, at(PLACE, 0))?;
        check!(matches!(victim.event(), Event::PageFault(_)), "an empty page did not fault");
        victim.give(MapItem::map(Fpage(word), PLACE))?;
        check!(matches!(victim.event(), Event::PageFault(_)), "flexpage {word:#x} moved a page");
        victim.abandon()?;
    }
    victim.delete()
}
