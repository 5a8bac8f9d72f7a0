//! Rights are enforced: r, w, x; the fault says which was missing.

use abi::{Fpage, MapItem, Rights};

use super::{PLACE, execute, page};
use crate::report::{Outcome, Sentence, case};
use crate::victim::{Event, LOAD, STORE, Victim, at, registers};
use crate::{check, machine, same};

/// Runs the tests.
pub fn run() {
    case("every_combination_of_rights", combinations);
    case("a_mapping_without_read_is_none", without_read);
    case("an_access_across_two_pages", across);
}

/// Maps test page 3 at PLACE with `rights`, whatever the access was.
fn with_rights(rights: Rights) -> Outcome<Victim> {
    machine::write_bytes(page(3)?, &[0xCC; 8]);
    let victim = Victim::task()?;
    victim.begin(LOAD, at(PLACE, 0))?;
    match victim.event() {
        Event::PageFault(fault) => same!("the first fault's access", fault.access, Rights::R),
        other => return Err(Sentence::new(format_args!("a first access led to {other:x?}"))),
    }
    victim.give(MapItem::map(Fpage::memory(page(3)?, 12, rights), PLACE))?;
    Ok(victim)
}

fn combinations() -> Outcome {
    for rights in [Rights::R, Rights::RW, Rights::RX, Rights::RWX] {
        let victim = with_rights(rights)?;
        victim.expect_parked()?;
        let expected = if rights.contains(Rights::W) { None } else { Some(Rights::W) };
        machine::write_bytes(page(3)?, &[0xCC; 8]);
        let missing = if rights.contains(Rights::X) { None } else { Some(Rights::X) };
        same!("the access of an execution's fault", execute(&victim, PLACE)?, missing);
        same!(
            "the access of a write's fault",
            victim.store_fault(PLACE)?.map(|fault| fault.access),
            expected
        );
        victim.delete()?;
    }
    Ok(())
}

fn without_read() -> Outcome {
    for rights in [Rights::NONE, Rights::W, Rights::X, Rights(3)] {
        let victim = with_rights(rights)?;
        match victim.event() {
            Event::PageFault(fault) => same!("the address of the next fault", fault.address, PLACE),
            other => {
                return Err(Sentence::new(format_args!(
                    "a mapping with rights {rights:?} led to {other:x?}"
                )));
            }
        }
        victim.abandon()?;
        victim.delete()?;
    }
    Ok(())
}

fn across() -> Outcome {
    let victim = Victim::task()?;
    super::place(
        &victim,
        MapItem::map(Fpage::memory(page(3)?, 12, Rights::RW), PLACE),
        LOAD,
        PLACE,
    )?;
    for code in [LOAD, STORE] {
        victim.begin(code, at(PLACE + 4092, 0))?;
        match victim.event() {
            Event::PageFault(fault) => {
                check!(fault.address == PLACE + 4096, "the fault is {fault:x?}")
            }
            other => {
                return Err(Sentence::new(format_args!(
                    "an access across the border led to {other:x?}"
                )));
            }
        }
        victim.abandon()?;
    }
    // A fetch across the border: a two-byte instruction's second byte.
    machine::write_bytes(page(3)? + 4095, &[0x0F]);
    super::place(
        &victim,
        MapItem::map(Fpage::memory(page(3)?, 12, Rights::RWX), PLACE),
        STORE,
        PLACE + 8,
    )
    .err();
    let _ = victim.recover();
    let mut regs = registers();
    regs[abi::protocol::exception::RIP] = PLACE + 4095;
    victim.go(regs)?;
    match victim.event() {
        // The page was mapped without x: the first byte faults already.
        Event::PageFault(fault) => {
            same!("the access of the fault", fault.access, Rights::X);
            check!(
                [PLACE + 4095, PLACE + 4096].contains(&fault.address),
                "the fault is {fault:x?}"
            );
            same!("its instruction pointer", fault.ip, PLACE + 4095);
        }
        other => {
            return Err(Sentence::new(format_args!("a fetch across the border led to {other:x?}")));
        }
    }
    victim.abandon()?;
    victim.delete()
}
