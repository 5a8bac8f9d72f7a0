//! From a booted machine to the first user instruction: σ0, σ1 and the root task.

use crate::space::spaces;
use crate::thread::{TcbRef, own, registry};
use abi::id::USER_BASE;
use abi::layout::{INITIAL_KIP, INITIAL_UTCB_AREA, INITIAL_UTCB_BITS};
use abi::{Fpage, Rights, ThreadId};

use crate::arch;
use crate::boot::image::Server;
use crate::control::lifecycle;
use crate::mem::{self, AddressSpace, Quota, frames};
use crate::space::{self, SpaceRef};
use crate::{kip, kprintln, sched};

/// Pages that σ0 may use: page tables and nodes for the initial mappings.
const SIGMA0_PAGES: u64 = 512;
/// Priority of the initial servers (X.2 5.5).
const INITIAL_PRIORITY: u8 = 255;

/// Starts the system: `servers` are σ0, σ1 and the root task as boot loaded them.
/// The frame pool and the memory layout are known; returns the first thread to run.
#[must_use]
pub fn start(servers: [Option<Server>; 3], kip: u64) -> TcbRef {
    kip::place(kip);
    mem::root::on_change(refresh_roots);
    // On the host nothing is reserved.
    #[allow(clippy::unnecessary_min_or_max)]
    let reserve = arch::kernel_tables::RESERVED_FRAMES.min(frames::free() / 8);
    own::make_interrupts();
    own::make_waker();
    let pot = Quota::new(frames::free().saturating_sub(reserve));
    let ids = [ThreadId::SIGMA0, ThreadId::SIGMA1, ThreadId::ROOT];
    let mut sigma0 = None;
    for (id, server) in ids.into_iter().zip(servers) {
        let Some(server) = server else { continue };
        let pages =
            if id == ThreadId::ROOT { pot.limit() } else { SIGMA0_PAGES.min(pot.limit() / 8) };
        match initial(id, server, &pot, pages) {
            Some(space) => sigma0 = sigma0.or(Some(space)),
            None => panic!(
                "the kernel's memory is too small for {id}; give the machine more memory or kmem= a larger size"
            ),
        }
    }
    seal();
    kprintln!("baton: {} threads, {} pages of kernel memory", registry().count(), frames::total());
    sched::pick()
}

/// Closes the account of the kernel's memory: from here on it only moves.
fn seal() {
    let (mut limits, mut used) = (0, 0);
    spaces().for_each(|space| {
        limits += space.quota().limit();
        used += space.quota().used();
    });
    mem::check::seal(limits, used);
}

/// The space's root has another word now: its threads' copies follow.
fn refresh_roots(space: SpaceRef) {
    space.task.threads.each(|thread| thread.root.set(space.root().word()));
}

/// Makes an initial server: its space and its thread, ready to run.
fn initial(id: ThreadId, server: Server, pot: &Quota, pages: u64) -> Option<SpaceRef> {
    let space = AddressSpace::create(spaces().new_id(), pot, pages).ok()?;
    spaces().insert(space);
    space.task.privileged.set(true);
    if id == ThreadId::SIGMA0 {
        space.make_sigma0();
    }
    let kip = Fpage::memory(INITIAL_KIP, 12, Rights::NONE);
    let utcbs = Fpage::memory(INITIAL_UTCB_AREA, INITIAL_UTCB_BITS, Rights::NONE);
    space::space_control::initialise(space, kip, utcbs).ok()?;
    let thread = lifecycle::create(id, space, ThreadId::ROOT).ok()?;
    thread.priority.set(INITIAL_PRIORITY);
    lifecycle::place_utcb(thread, INITIAL_UTCB_AREA).ok()?;
    let pager = if id == ThreadId::SIGMA0 { ThreadId::NIL } else { ThreadId::SIGMA0 };
    lifecycle::activate_running(thread, pager, server.entry, 0);
    debug_assert!(id.number() >= USER_BASE);
    Some(space)
}
