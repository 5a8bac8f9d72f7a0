//! SpaceControl: errors, areas, privilege.

use abi::CallError::{InvalidSpace, KipArea, NoPrivilege, UtcbArea};
use abi::layout::{INITIAL_KIP, INITIAL_UTCB_AREA, USER_END, stub};
use abi::protocol::exception as reg;
use abi::{Fpage, Rights, ThreadId, kip};
use runtime::kernel;

use crate::report::{Outcome, because, case};
use crate::victim::{Victim, registers};
use crate::{same, world};

/// Runs the tests.
pub fn run() {
    case("space_control_errors", errors);
    case("space_control_needs_privilege", privilege);
    case("space_control_leaves_a_configured_space", configured);
}

fn area(base: u64, bits: u32) -> Fpage {
    Fpage::memory(base, bits, Rights::NONE)
}

fn errors() -> Outcome {
    let id = world::fresh();
    because(kernel::create(id, id, ThreadId::ROOT, !0), "creating a space")?;
    let (kip, utcbs) = (area(INITIAL_KIP, 12), area(INITIAL_UTCB_AREA, 14));
    for bad in [world::fresh(), ThreadId::NIL, ThreadId::ANY] {
        same!("no space", kernel::configure_space(bad, kip, utcbs), Err(InvalidSpace));
    }
    for bad in [
        Fpage::NIL,
        Fpage::COMPLETE,
        area(0x1000, 11),
        area(1 << 47, 12),
        area(USER_END & !0xFFFF, 16),
        area(1 << 63, 12),
    ] {
        same!("a bad UTCB area", kernel::configure_space(id, kip, bad), Err(UtcbArea));
        same!("a bad KIP area", kernel::configure_space(id, bad, utcbs), Err(KipArea));
    }
    let inside = area(INITIAL_UTCB_AREA + 0x1000, 12);
    same!("overlapping areas", kernel::configure_space(id, inside, utcbs), Err(KipArea));
    same!(
        "overlapping areas",
        kernel::configure_space(id, area(INITIAL_UTCB_AREA, 20), utcbs),
        Err(KipArea)
    );
    same!("good areas", kernel::configure_space(id, kip, utcbs), Ok(()));
    world::delete(id)
}

fn privilege() -> Outcome {
    let (one, other) = (Victim::task()?, Victim::task()?);
    for dest in [other.id(), ThreadId::ROOT, ThreadId::SIGMA0] {
        let mut regs = registers();
        (regs[reg::RDI], regs[reg::RDX], regs[reg::R8]) =
            (dest.0, area(0x5000, 12).0, area(0x8000, 12).0);
        same!("SpaceControl on a stranger", one.call(stub::SPACE_CONTROL, regs)?[reg::RAX], 0);
        same!("its error", one.error_code()?, NoPrivilege as u64);
    }
    one.delete()?;
    other.delete()
}

fn configured() -> Outcome {
    let victim = Victim::task()?;
    let again = kernel::configure_space(victim.id(), area(0x5000, 12), area(0x8000, 12));
    same!("SpaceControl again", again, Ok(()));
    same!("the KIP where it was", victim.load(INITIAL_KIP)?, kip::MAGIC);
    victim.delete()
}
