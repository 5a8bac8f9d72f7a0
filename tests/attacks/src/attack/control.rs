//! Control calls and resources that are somebody else's, or nobody's.

use abi::inspect::What;
use abi::syscall::state;
use abi::{Ceilings, Fpage, Numbers, Rights, ThreadId};
use alloc::format;
use alloc::string::String;
use proto::layout;
use runtime::window::Window;
use runtime::{kernel, root, schedule, syscall, thread};

use crate::hostile::{Hostile, Reached};
use crate::machine;
use crate::order::Help;

/// Pages that are the processor's and the board's: the local APIC, the I/O APIC, the HPET.
const DEVICES: [u64; 3] = [0xFEE0_0000, 0xFEC0_0000, 0xFED0_0000];
/// The text screen.
const SCREEN: u64 = 0xB8000;

/// Asks the root task for devices that its description does not name.
pub fn device_memory(_: &Hostile) -> Reached {
    for address in DEVICES.into_iter().chain([SCREEN]) {
        let Some(mut window) = Window::claim(layout::WINDOWS, 4096) else { continue };
        let got = root::memory(&mut window, Some(address)).is_ok();
        window.release();
        if got {
            return Some(format!("a task with an interrupt got the page at {address:#x}"));
        }
    }
    None
}

/// Takes the console's interrupt by ThreadControl.
pub fn interrupt(_: &Hostile) -> Reached {
    let taken = kernel::attach_irq(4, thread::me()).is_ok();
    taken.then(|| String::from("an ordinary task took an interrupt"))
}

/// Every call that changes or reads another task's thread or space.
pub fn control_of_another(hostile: &Hostile) -> Reached {
    let victim = ThreadId(hostile.ask(Help::Victim, 0)[0]);
    let area = Fpage::memory(layout::UTCBS, layout::UTCB_BITS, Rights::NONE);
    let tried = [
        ("halted", machine::halt(victim)),
        ("read the registers of", thread::registers(victim).is_some()),
        ("changed the pager of", kernel::set_pager(victim, victim, thread::me(), !0).is_ok()),
        ("took over the scheduling of", machine::set_scheduler(victim, thread::me())),
        ("moved", schedule::set_processor(victim, 0).is_ok()),
        ("changed the priority of", schedule::set_priority(victim, 1).is_ok()),
        ("took kernel memory from", kernel::move_quota(victim, -1).is_ok()),
        ("configured the space of", kernel::configure_space(victim, area, area).is_ok()),
        ("read the limits of", kernel::limits(victim).is_ok()),
        ("changed the limits of", kernel::limit(victim, None, Some(Ceilings::NONE)).is_ok()),
        ("stopped", syscall::thread_state(victim.0, state::STOP, &mut [])),
        ("read the state of", syscall::thread_state(victim.0, state::READ, &mut [])),
        ("made a thread in the space of", machine_in(hostile, victim)),
        ("deleted", kernel::delete(victim).is_ok()),
    ];
    let (what, _) = tried.into_iter().find(|(_, done)| *done)?;
    Some(format!("a task {what} the victim"))
}

fn machine_in(hostile: &Hostile, victim: ThreadId) -> bool {
    kernel::create(hostile.own_id(15), victim, thread::me(), !0).is_ok()
}

/// Gives itself, and a task that it has made, what no chief gave it.
pub fn own_limits(hostile: &Hostile) -> Reached {
    let me = thread::me();
    let id = hostile.own_id(14);
    let Ok((own, _)) = kernel::limits(me) else {
        return Some(String::from("a task cannot read its own limits"));
    };
    if kernel::create(id, id, me, !0).is_err() {
        return Some(String::from("the attacker cannot make a task with its own number"));
    }
    let more = Numbers { first: own.first, count: own.count + 1 };
    let sigma1 = Numbers { first: ThreadId::SIGMA1.number(), count: 1 };
    let high = Ceilings { priority: 255, ..Ceilings::NONE };
    let tried = [
        ("took numbers", kernel::limit(me, Some(more), None).is_ok()),
        ("raised its ceilings", kernel::limit(me, None, Some(high)).is_ok()),
        ("gave others' numbers to a task below", kernel::limit(id, Some(more), None).is_ok()),
        ("gave sigma1's number to a task below", kernel::limit(id, Some(sigma1), None).is_ok()),
        ("raised the ceilings of a task below", kernel::limit(id, None, Some(high)).is_ok()),
    ];
    let _ = kernel::delete(id);
    let (what, _) = tried.into_iter().find(|(_, done)| *done)?;
    Some(format!("a task {what}"))
}

/// Asks the kernel what the victim is doing.
pub fn inspect_another(hostile: &Hostile) -> Reached {
    let victim = ThreadId(hostile.ask(Help::Victim, 0)[0]);
    let record = kernel::inspect(What::Thread, u64::from(victim.number()), 0)?;
    (record[0] == victim.0).then(|| {
        format!(
            "Inspect tells IP {:#x}, SP {:#x} and partner of another task",
            record[5], record[6]
        )
    })
}
