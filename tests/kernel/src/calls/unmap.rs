//! Unmap: status, partial rights, flush, several flexpages in one call.

use abi::{Fpage, MapItem, Rights};
use runtime::utcb;

use crate::machine::{self, unmap};
use crate::memory::{self, PLACE};
use crate::report::{Outcome, case};
use crate::victim::{LOAD, STORE, Victim};
use crate::{check, same};

/// Control bit of Unmap: the own mapping too.
const FLUSH: u64 = 0x40;

/// Runs the tests.
pub fn run() {
    case("unmap_reports_and_resets_status", status);
    case("unmap_takes_rights_one_by_one", partial);
    case("unmap_leaves_the_own_mapping_and_flush_takes_it", flush);
    case("unmap_takes_many_flexpages", many);
    case("unmap_ignores_what_is_not_there", nothing);
}

fn one(control: u64, fpage: Fpage) -> Fpage {
    let mut mr = [0; 8];
    mr[0] = fpage.0;
    Fpage(unmap(control, mr)[0])
}

fn status() -> Outcome {
    let base = memory::page(0)?;
    let victim = Victim::task()?;
    let own = Fpage::memory(base, 12, Rights::NONE);
    memory::place(&victim, MapItem::map(own.with_rights(Rights::RWX), PLACE), LOAD, PLACE)?;
    let seen = one(0, own);
    same!("the fpage without its rights", seen.with_rights(Rights::NONE), own);
    check!(
        seen.rights().contains(Rights::R),
        "a page that was read has status {:?}",
        seen.rights()
    );
    check!(
        !seen.rights().contains(Rights::W),
        "a page that was only read has status {:?}",
        seen.rights()
    );
    same!("the status after a reset", one(0, own).rights(), Rights::NONE);
    victim.store(PLACE, 0x00CC_CCCC_CCCC_CCCC)?;
    check!(one(0, own).rights().contains(Rights::W), "a page that was written has no status w");
    same!("the status after a reset", one(0, own).rights(), Rights::NONE);
    check!(victim.load_fault(PLACE)?.is_none(), "reading the status took the page away");
    victim.delete()
}

fn partial() -> Outcome {
    let base = memory::page(0)?;
    let victim = Victim::task()?;
    let own = Fpage::memory(base, 12, Rights::NONE);
    machine::write_bytes(base, &[0xCC]);
    memory::place(&victim, MapItem::map(own.with_rights(Rights::RWX), PLACE), LOAD, PLACE)?;
    one(0, own.with_rights(Rights::W));
    check!(victim.load_fault(PLACE)?.is_none(), "without w the page cannot be read");
    let fault = victim.store_fault(PLACE)?;
    same!("the access of the fault", fault.map(|fault| fault.access), Some(Rights::W));
    same!("where an execution stops", memory::execute(&victim, PLACE)?, None);
    one(0, own.with_rights(Rights::X));
    same!("the access of the fault", memory::execute(&victim, PLACE)?, Some(Rights::X));
    check!(victim.load_fault(PLACE)?.is_none(), "without x the page cannot be read");
    one(0, own.with_rights(Rights::R));
    check!(victim.load_fault(PLACE)?.is_some(), "without r the page can be read");
    victim.delete()
}

fn flush() -> Outcome {
    let base = memory::page(1)?;
    machine::write(base, 0x1234);
    let victim = Victim::task()?;
    let own = Fpage::memory(base, 12, Rights::RWX);
    let item = MapItem::map(own, PLACE);
    memory::place(&victim, item, LOAD, PLACE)?;
    one(0, own);
    check!(victim.load_fault(PLACE)?.is_some(), "unmap left the derived page");
    same!("the own page after unmap", machine::read(base), 0x1234);
    memory::place(&victim, item, LOAD, PLACE)?;
    machine::write(base, 0x5678);
    let seen = one(FLUSH, own);
    check!(
        seen.rights().contains(Rights::W),
        "flush reports status {:?} of a page written here",
        seen.rights()
    );
    check!(victim.load_fault(PLACE)?.is_some(), "flush left the derived page");
    // sigma0 gives the same page again.
    same!("the page after flush", machine::read(base), 0x5678);
    memory::place(&victim, item, STORE, PLACE)?;
    victim.delete()
}

fn many() -> Outcome {
    let victim = Victim::task()?;
    for index in 0..64 {
        let item =
            MapItem::map(Fpage::memory(memory::page(index)?, 12, Rights::RW), PLACE + index * 4096);
        memory::place(&victim, item, LOAD, PLACE + index * 4096)?;
    }
    let fpage =
        |index: u64| -> Outcome<u64> { Ok(Fpage::memory(memory::page(index)?, 12, Rights::RWX).0) };
    let mut mr = [0; 8];
    for (index, word) in (0..).zip(&mut mr) {
        *word = fpage(index)?;
    }
    for index in 8..64 {
        utcb::set_mr(index as usize, fpage(index)?);
    }
    let seen = unmap(62, mr);
    check!(
        seen.iter().all(|word| Fpage(*word).rights().contains(Rights::R)),
        "a register's status is missing: {seen:x?}"
    );
    check!(
        (8..63).all(|index| Fpage(utcb::mr(index)).rights().contains(Rights::R)),
        "a status in memory is missing"
    );
    same!("the word that was not named", utcb::mr(63), fpage(63)?);
    for index in [0, 7, 8, 62] {
        check!(victim.load_fault(PLACE + index * 4096)?.is_some(), "page {index} is still there");
    }
    check!(victim.load_fault(PLACE + 63 * 4096)?.is_none(), "a page that was not named is gone");
    victim.delete()
}

fn nothing() -> Outcome {
    let words = [
        0,
        0x10_00B7,
        0xFFFF_8000_0000_00C7,
        1 << 63 | 0xC7,
        Fpage::memory(0x7000_0000_0000, 40, Rights::RWX).0,
    ];
    for word in words {
        let seen = one(0, Fpage(word));
        same!("the fpage word", seen.0 & !7, word & !7);
        same!("its status", seen.rights(), Rights::NONE);
    }
    // The KIP and the UTCBs stay, whatever is flushed.
    one(FLUSH, Fpage::memory(abi::layout::INITIAL_KIP, 12, Rights::RWX));
    one(FLUSH, Fpage::memory(abi::layout::INITIAL_UTCB_AREA, 18, Rights::RWX));
    same!("the KIP's magic number", runtime::kip::get().word(0), abi::kip::MAGIC);
    same!("MyGlobalId", utcb::my_global_id(), abi::ThreadId::ROOT);
    Ok(())
}
