//! What nobody can map, unmap or grant: KIP, UTCBs, the kernel's half.

use abi::layout::{INITIAL_KIP, INITIAL_UTCB_AREA, STUBS, USER_DATA, USER_END, stub};
use abi::protocol::exception as reg;
use abi::{Fpage, MapItem, MsgTag, Rights, ThreadId, kip, utcb};

use super::{PLACE, page};
use crate::report::{Outcome, Sentence, case};
use crate::victim::{Event, LOAD, STORE, Victim, at, item_tag, registers};
use crate::{check, machine, same, world};

/// Runs the tests.
pub fn run() {
    case("kip_and_utcbs_cannot_be_mapped_over", mapped_over);
    case("kip_and_utcbs_cannot_be_unmapped", unmapped);
    case("kip_and_utcbs_cannot_be_given_away", given_away);
    case("the_kernels_half_is_out_of_reach", kernel_half);
}

fn mapped_over() -> Outcome {
    machine::write(page(4)?, 0xEE);
    let victim = Victim::task()?;
    let before = victim.word(utcb::MY_GLOBAL_ID)?;
    for target in [INITIAL_KIP, INITIAL_UTCB_AREA, INITIAL_UTCB_AREA + 0x3000] {
        for grant in [false, true] {
            victim.begin(LOAD, at(PLACE, 0))?;
            check!(matches!(victim.event(), Event::PageFault(_)), "an empty page did not fault");
            victim.give(MapItem {
                send_base: target,
                fpage: Fpage::memory(page(4)?, 12, Rights::RWX),
                grant,
            })?;
            victim.abandon()?;
        }
    }
    // A large flexpage around both goes everywhere but there.
    victim.begin(LOAD, at(0xBF80_0000, 0))?;
    check!(matches!(victim.event(), Event::PageFault(_)), "an empty page did not fault");
    victim.give(MapItem::map(Fpage::memory(super::block()?, 22, Rights::RW), 0xBFC0_0000))?;
    victim.abandon()?;
    same!("the KIP's magic number", victim.load(INITIAL_KIP)?, kip::MAGIC);
    same!("MyGlobalId", victim.word(utcb::MY_GLOBAL_ID)?, before);
    check!(victim.store_fault(INITIAL_KIP)?.is_some(), "the KIP can be written");
    victim.delete()?;
    world::sound()
}

fn unmap_by(victim: &Victim, fpage: Fpage) -> Outcome {
    let mut regs = registers();
    (regs[reg::RDX], regs[reg::RDI], regs[reg::R9]) = (0x40, victim.utcb, fpage.0);
    victim.call(stub::UNMAP, regs).map(|_| ())
}

fn unmapped() -> Outcome {
    let victim = Victim::task()?;
    let before = victim.word(utcb::MY_GLOBAL_ID)?;
    for fpage in [
        Fpage::memory(INITIAL_KIP, 12, Rights::RWX),
        Fpage::memory(INITIAL_UTCB_AREA, 14, Rights::RWX),
        Fpage::memory(0x8000_0000, 31, Rights::RWX),
        Fpage::COMPLETE.with_rights(Rights::RWX),
    ] {
        unmap_by(&victim, fpage)?;
        same!("the KIP's magic number", victim.load(INITIAL_KIP)?, kip::MAGIC);
        same!("MyGlobalId", victim.word(utcb::MY_GLOBAL_ID)?, before);
    }
    victim.delete()
}

fn given_away() -> Outcome {
    let (giver, taker) = (Victim::task()?, Victim::task()?);
    for source in [INITIAL_KIP, INITIAL_UTCB_AREA, STUBS, USER_DATA] {
        for grant in [false, true] {
            taker.set_word(utcb::PAGER, giver.id().0)?;
            taker.begin(LOAD, at(PLACE, 0))?;
            giver.ipc(ThreadId::NIL, taker.id(), 0, [0; 8])?;
            let item =
                MapItem { send_base: PLACE, fpage: Fpage::memory(source, 12, Rights::RWX), grant };
            let [first, second] = item.words();
            let (_, mr) = giver.ipc(
                taker.id(),
                ThreadId::NIL,
                0,
                [item_tag(), first, second, 0, 0, 0, 0, 0],
            )?;
            check!(!MsgTag(mr[0]).is_error(), "the message failed with {:#x}", giver.error_code()?);
            let (from, mr) = giver.ipc(ThreadId::NIL, taker.id(), 0, [0; 8])?;
            same!("who faults again", (from, mr[1]), (taker.id(), PLACE));
            taker.abandon()?;
        }
    }
    same!("the giver's KIP", giver.load(INITIAL_KIP)?, kip::MAGIC);
    same!("the giver's id", giver.word(utcb::MY_GLOBAL_ID)?, giver.id().0);
    giver.delete()?;
    taker.delete()
}

fn kernel_half() -> Outcome {
    let victim = Victim::task()?;
    same!("the stubs can be read", victim.load_fault(STUBS)?.is_none(), true);
    same!("the clock page can be read", victim.load_fault(USER_DATA)?.is_none(), true);
    for address in [
        STUBS,
        USER_DATA,
        0xFFFF_8000_0000_0000,
        0xFFFF_FFFF_8000_0000,
        0xFFFF_FFFF_A000_0000,
        0xFFFF_FF00_0000_0000,
        USER_END,
    ] {
        let fault = victim.store_fault(address)?;
        same!("the access of the fault", fault.map(|fault| fault.access), Some(Rights::W));
    }
    for address in
        [0xFFFF_8000_0000_0000, 0xFFFF_FFFF_8000_0000, 0xFFFF_FFFF_FFFF_FFF8, 0xFFFF_FF00_0000_0000]
    {
        check!(
            victim.load_fault(address)?.is_some(),
            "the kernel's memory at {address:#x} can be read"
        );
        // What a pager answers there changes nothing.
        victim.begin(LOAD, at(address, 0))?;
        check!(matches!(victim.event(), Event::PageFault(_)), "the kernel's memory can be read");
        victim.give(MapItem::map(Fpage::memory(page(4)?, 12, Rights::RWX), address))?;
        check!(matches!(victim.event(), Event::PageFault(_)), "a page was mapped at {address:#x}");
        victim.abandon()?;
    }
    for address in [0x8000_0000_0000, 0xFFFF_7FFF_FFFF_FFF8] {
        match victim.run(STORE, at(address, 0))? {
            Event::Exception(regs) => same!("the vector", regs[reg::VECTOR], 13),
            other => {
                return Err(Sentence::new(format_args!(
                    "an access to {address:#x} led to {other:x?}"
                )));
            }
        }
        victim.abandon()?;
    }
    victim.delete()
}
