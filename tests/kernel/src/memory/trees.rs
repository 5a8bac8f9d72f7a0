//! Trees of mappings over three and more spaces (Liedtke 1995, 2.1).

use abi::inspect::What;
use abi::protocol::PAGE_FAULT;
use abi::{Fpage, MapItem, MsgTag, Rights, ThreadId, utcb};
use runtime::kernel;

use super::{PLACE, page, place};
use crate::report::{Outcome, case};
use crate::victim::{LOAD, STORE, Victim, at, item_tag};
use crate::{check, machine, same, world};

/// Runs the tests.
pub fn run() {
    case("a_grandparents_flush_reaches_grandchildren", grandchildren);
    case("unmap_in_the_middle_leaves_the_parent", middle);
    case("grant_moves_a_page", grant);
    case("a_deleted_space_takes_its_derivations_along", deletion);
    case("an_overwritten_page_takes_its_derivations_along", overwrite);
    case("rights_shrink_along_the_tree", shrink);
    case("a_page_granted_on_and_flushed_at_its_root", grant_chain);
}

/// `child` faults at `address` running `code`; `parent` answers as its pager with `item`.
fn hand_on(parent: &Victim, child: &Victim, item: MapItem, code: &[u8], address: u64) -> Outcome {
    child.set_word(utcb::PAGER, parent.id().0)?;
    child.begin(code, at(address, 0))?;
    let (from, mr) = parent.ipc(ThreadId::NIL, child.id(), 0, [0; 8])?;
    same!("the faulting thread", from, child.id());
    same!("the message", MsgTag(mr[0]).protocol_label(), PAGE_FAULT);
    same!("the fault's address", mr[1], address);
    let [first, second] = item.words();
    let (_, mr) =
        parent.ipc(child.id(), ThreadId::NIL, 0, [item_tag(), first, second, 0, 0, 0, 0, 0])?;
    check!(!MsgTag(mr[0]).is_error(), "the pager's answer failed with {:#x}", parent.error_code()?);
    child.expect_parked()?;
    child.set_word(utcb::PAGER, ThreadId::ROOT.0)
}

/// Spaces A, B, C with test page 0 at PLACE, derived one from the other.
fn chain(rights: Rights) -> Outcome<[Victim; 3]> {
    let base = page(0)?;
    machine::write(base, 0xBA70);
    let spaces = [Victim::task()?, Victim::task()?, Victim::task()?];
    place(&spaces[0], MapItem::map(Fpage::memory(base, 12, rights), PLACE), LOAD, PLACE)?;
    for pair in [(0, 1), (1, 2)] {
        let item = MapItem::map(Fpage::memory(PLACE, 12, rights), PLACE);
        hand_on(&spaces[pair.0], &spaces[pair.1], item, LOAD, PLACE)?;
    }
    Ok(spaces)
}

fn end(spaces: [Victim; 3]) -> Outcome {
    for victim in spaces {
        victim.delete()?;
    }
    world::sound()
}

/// Who still reaches PLACE.
fn readers(spaces: &[Victim; 3]) -> Outcome<[bool; 3]> {
    let mut reached = [false; 3];
    for (victim, slot) in spaces.iter().zip(&mut reached) {
        *slot = victim.load_fault(PLACE)?.is_none();
    }
    Ok(reached)
}

fn unmap(fpage: Fpage, control: u64) {
    machine::unmap(control, [fpage.0, 0, 0, 0, 0, 0, 0, 0]);
}

fn grandchildren() -> Outcome {
    let spaces = chain(Rights::RWX)?;
    let base = page(0)?;
    let mut depths = [0u64; 5];
    for (index, depth) in (0..).zip(&mut depths) {
        *depth = kernel::inspect(What::Mapping, index, base).map_or(99, |words| words[0]);
    }
    same!("the depths in the tree", depths, [0, 1, 2, 3, 4]);
    check!(kernel::inspect(What::Mapping, 5, base).is_none(), "the tree has a sixth node");
    same!("who reads", readers(&spaces)?, [true; 3]);
    spaces[2].store(PLACE, 0x4711)?;
    same!("what the last one wrote", machine::read(base), 0x4711);
    unmap(Fpage::memory(base, 12, Rights::RWX), 0);
    same!("who reads after the unmap", readers(&spaces)?, [false; 3]);
    end(spaces)
}

/// Lets a victim unmap.
fn unmap_by(victim: &Victim, fpage: Fpage, control: u64) -> Outcome {
    let mut regs = at(0, 0);
    regs[abi::protocol::exception::RDX] = control;
    regs[abi::protocol::exception::RDI] = victim.utcb;
    regs[abi::protocol::exception::R9] = fpage.0;
    victim.call(abi::layout::stub::UNMAP, regs).map(|_| ())
}

fn middle() -> Outcome {
    let spaces = chain(Rights::RWX)?;
    unmap_by(&spaces[1], Fpage::memory(PLACE, 12, Rights::RWX), 0)?;
    same!("who reads after an unmap in the middle", readers(&spaces)?, [true, true, false]);
    unmap_by(&spaces[1], Fpage::memory(PLACE, 12, Rights::RWX), 0x40)?;
    same!("who reads after a flush in the middle", readers(&spaces)?, [true, false, false]);
    end(spaces)
}

fn grant() -> Outcome {
    let spaces = chain(Rights::RWX)?;
    // A's own page goes to B at another place; C's derivation from B's old one stays.
    let item = MapItem::grant(Fpage::memory(PLACE, 12, Rights::RWX), PLACE + 0x5000);
    hand_on(&spaces[0], &spaces[1], item, LOAD, PLACE + 0x5000)?;
    same!("who reads after the grant", readers(&spaces)?, [false, true, true]);
    same!("the page where it went", spaces[1].load(PLACE + 0x5000)?, 0xBA70);
    unmap(Fpage::memory(page(0)?, 12, Rights::RWX), 0);
    same!("who reads after the root's unmap", readers(&spaces)?, [false; 3]);
    check!(spaces[1].load_fault(PLACE + 0x5000)?.is_some(), "the granted page outlived its source");
    end(spaces)
}

fn deletion() -> Outcome {
    let [one, two, three] = chain(Rights::RW)?;
    one.delete()?;
    check!(
        two.load_fault(PLACE)?.is_some() && three.load_fault(PLACE)?.is_some(),
        "derivations outlived their source"
    );
    two.delete()?;
    three.delete()?;
    same!("the page here", machine::read(page(0)?), 0xBA70);
    world::sound()
}

fn overwrite() -> Outcome {
    let spaces = chain(Rights::RW)?;
    machine::write(page(1)?, 0xF00D);
    // B has the page for reading only from now on, so that writing faults again.
    unmap(Fpage::memory(page(0)?, 12, Rights::W), 0);
    place(&spaces[1], MapItem::map(Fpage::memory(page(1)?, 12, Rights::RW), PLACE), STORE, PLACE)?;
    same!("who reads after the page changed", readers(&spaces)?, [true, true, false]);
    same!("the overwritten page's new contents", machine::read(page(1)?), 0);
    same!("the old page", machine::read(page(0)?), 0xBA70);
    end(spaces)
}

fn shrink() -> Outcome {
    let spaces = chain(Rights::R)?;
    // Nobody can pass on a right that he does not have.
    let more = MapItem::map(Fpage::memory(PLACE, 12, Rights::RWX), PLACE + 0x1000);
    hand_on(&spaces[0], &spaces[1], more, LOAD, PLACE + 0x1000)?;
    let fault = spaces[1].store_fault(PLACE + 0x1000)?;
    same!("the access of the fault", fault.map(|fault| fault.access), Some(Rights::W));
    same!("where an execution stops", super::execute(&spaces[1], PLACE + 0x1000)?, Some(Rights::X));
    end(spaces)
}

fn grant_chain() -> Outcome {
    let base = page(2)?;
    machine::write(base, 0x6AB);
    let spaces = [Victim::task()?, Victim::task()?, Victim::task()?];
    let fpage = Fpage::memory(PLACE, 12, Rights::RW);
    place(&spaces[0], MapItem::map(Fpage::memory(base, 12, Rights::RW), PLACE), LOAD, PLACE)?;
    hand_on(&spaces[0], &spaces[1], MapItem::grant(fpage, PLACE), LOAD, PLACE)?;
    hand_on(&spaces[1], &spaces[2], MapItem::grant(fpage, PLACE), STORE, PLACE)?;
    same!("who reads after two grants", readers(&spaces)?, [false, false, true]);
    let last = kernel::inspect(What::Mapping, 2, base).unwrap_or_default();
    same!("the depth of the granted page", last[0], 2);
    check!(kernel::inspect(What::Mapping, 3, base).is_none(), "granting left nodes behind");
    unmap(Fpage::memory(base, 12, Rights::RWX), 0x40);
    same!("who reads after the root's flush", readers(&spaces)?, [false; 3]);
    end(spaces)
}
