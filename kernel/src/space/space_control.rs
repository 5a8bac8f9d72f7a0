//! SpaceControl (X.2 5.9): gives a space its KIP and UTCB areas.

use abi::layout::USER_END;
use abi::{CallError, Fpage, Rights, ThreadId};

use super::SpaceRef;
use crate::mem::space::Area;
use crate::mem::{NoMemory, frames};
use crate::thread::TcbRef;

/// Smallest UTCB and KIP area, log2 bytes.
const AREA_BITS: u32 = 12;
/// Largest, log2 bytes: as many UTCBs as there are thread numbers.
const MAX_BITS: u32 = 27;

/// The most frames that [`initialise`] takes: the tables on the way to the KIP, and a twin.
const KIP_FRAMES: u64 = 4;

/// Carries out SpaceControl for `caller`; the old control word is always 0. The caller may have to make its call again
/// ([`frames::is_interrupted_before`]).
pub fn space_control(
    caller: TcbRef,
    specifier: ThreadId,
    kip: Fpage,
    utcbs: Fpage,
) -> Result<(), CallError> {
    let member = super::controlled(caller, specifier, CallError::InvalidSpace)?;
    let space = member.space().ok_or(CallError::InvalidSpace)?;
    if space.is_initialised() {
        return Ok(());
    }
    if !is_area(utcbs) {
        return Err(CallError::UtcbArea);
    }
    if !is_area(kip) || overlap(kip, utcbs) {
        return Err(CallError::KipArea);
    }
    if frames::is_interrupted_before(KIP_FRAMES) {
        caller.calls_again();
        return Ok(());
    }
    initialise(space, kip, utcbs).map_err(|_| CallError::NoMemory)
}

/// Maps the KIP and reserves the UTCB area.
pub fn initialise(space: SpaceRef, kip: Fpage, utcbs: Fpage) -> Result<(), NoMemory> {
    space.map_kernel_page(kip.base(), crate::kip::frame(), Rights::R)?;
    space.set_areas(area(kip), area(utcbs));
    Ok(())
}

fn area(fpage: Fpage) -> Area {
    Area { start: fpage.base(), end: fpage.base() + fpage.size() }
}

fn is_area(fpage: Fpage) -> bool {
    let bits = fpage.bits();
    !fpage.is_complete()
        && (AREA_BITS..=MAX_BITS).contains(&bits)
        && fpage.base() < USER_END
        && USER_END - fpage.base() >= fpage.size()
}

fn overlap(one: Fpage, other: Fpage) -> bool {
    one.contains(other.base()) || other.contains(one.base())
}
