//! From a booted machine to the first user instruction: the idle thread, the
//! interrupt threads, σ0, σ1 and the root task.

use abi::id::{SYSTEM_BASE, USER_BASE};
use abi::layout::{INITIAL_KIP, INITIAL_UTCB_AREA, INITIAL_UTCB_BITS};
use abi::{Fpage, Rights, ThreadId};

use crate::arch::root::RootWord;
use crate::arch::{self, TcbRef, cpu, frames_of};
use crate::boot::image::Server;
use crate::ipc::Kind;
use crate::ipc::rendezvous::{self, Busy};
use crate::mem::{self, AddressSpace, PhysFrame, Quota, frames};
use crate::space::{self, SpaceRef};
use crate::thread::lifecycle;
use crate::thread::tcb::Resume;
use crate::{kip, kprintln, sched};

/// Pages that σ0 may use: page tables and nodes for the initial mappings.
const SIGMA0_PAGES: u64 = 512;
/// Priority of the initial servers (X.2 5.5).
const INITIAL_PRIORITY: u8 = 255;

/// Every processor's idle thread has this name there.
const IDLE: ThreadId = ThreadId::global(SYSTEM_BASE, 1);

/// The first processor's waker has this one.
const WAKER: ThreadId = ThreadId::global(SYSTEM_BASE + 1, 1);

/// Starts the system: `servers` are σ0, σ1 and the root task as boot loaded them.
/// The frame pool and the memory layout are known; returns the first thread to run.
#[must_use]
pub fn start(servers: [Option<Server>; 3], kip: u64) -> TcbRef {
    kip::place(kip);
    arch::root::on_change(refresh_roots);
    // On the host nothing is reserved.
    #[allow(clippy::unnecessary_min_or_max)]
    let reserve = arch::kernel_tables::RESERVED_FRAMES.min(frames::free() / 8);
    make_interrupts();
    make_waker();
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
    kprintln!(
        "baton: {} threads, {} pages of kernel memory",
        cpu().registry.count(),
        frames::total()
    );
    sched::pick()
}

/// Closes the account of the kernel's memory: from here on it only moves.
fn seal() {
    let (mut limits, mut used) = (0, 0);
    cpu().spaces.for_each(|space| {
        limits += space.quota().limit();
        used += space.quota().used();
    });
    mem::check::seal(limits, used);
}

/// The space's root has another word now: its threads' copies follow.
fn refresh_roots(space: SpaceRef) {
    space.task.threads.each(|thread| thread.root.set(space.root().word()));
}

/// A thread of the kernel's own: no space, no UTCB, no vector registers, so that all have the same
/// frame for those, the first idle thread's.
fn kernel_thread(id: ThreadId) -> Option<TcbRef> {
    let vector = match cpu().scheduler.idle.get() {
        Some(idle) => PhysFrame::at(frames_of(idle)[0]),
        None => frames::take()?,
    };
    kernel_thread_in(id, [vector, frames::take()?])
}

/// The same in two frames, of which the second has been taken for it.
fn kernel_thread_in(id: ThreadId, [vector, top]: [PhysFrame; 2]) -> Option<TcbRef> {
    let thread = arch::install(id, vector, top)?;
    thread.id.set(id);
    thread.open_from.set(ThreadId::ANY);
    thread.timeslice_us.set(u64::MAX);
    thread.quantum_left_us.set(u64::MAX);
    rendezvous::set_busy(thread, Busy::Halted);
    Some(thread)
}

/// Makes the idle thread, the first current thread.
#[must_use]
pub fn make_idle(root: RootWord) -> TcbRef {
    let Some(idle) = kernel_thread(IDLE) else {
        panic!(
            "the kernel's memory is too small for the idle thread; give the machine more memory"
        );
    };
    idles(idle, root)
}

/// Makes the idle thread of another processor, which this one is, in `frames`, of which the first is that of
/// the first idle thread. `None` if there
/// is no table for it in this processor's tcb array.
#[must_use]
pub fn make_idle_in(frames: [PhysFrame; 2], root: RootWord) -> Option<TcbRef> {
    kernel_thread_in(IDLE, frames).map(|idle| idles(idle, root))
}

fn idles(idle: TcbRef, root: RootWord) -> TcbRef {
    idle.root.set(root);
    idle.resume.set(Resume::Idle);
    rendezvous::set_busy(idle, Busy::Ready);
    cpu().scheduler.idle.set(Some(idle));
    idle
}

/// Makes the thread that goes on with what is too much for a tick; without the memory for it
/// ticks do everything.
pub fn make_waker() {
    let Some(idle) = cpu().scheduler.idle.get() else { return };
    if let Some(waker) = kernel_thread(WAKER) {
        waker.root.set(idle.root.get());
        waker.resume.set(Resume::Wake);
        cpu().scheduler.waker.set(Some(waker));
    }
}

/// Makes the thread of each interrupt line.
pub fn make_interrupts() {
    for line in (0..SYSTEM_BASE).filter(|line| arch::line_exists(*line)) {
        if let Some(source) = kernel_thread(ThreadId::irq(line)) {
            source.kind.set(Kind::Interrupt);
            // Nilthread leads to the first of them.
            rendezvous::forbid_armed(source);
        }
    }
}

/// Makes an initial server: its space and its thread, ready to run.
fn initial(id: ThreadId, server: Server, pot: &Quota, pages: u64) -> Option<SpaceRef> {
    let space = AddressSpace::create(cpu().spaces.new_id(), pot, pages).ok()?;
    cpu().spaces.insert(space);
    space.task.privileged.set(true);
    if id == ThreadId::SIGMA0 {
        space.make_sigma0();
    }
    let kip = Fpage::memory(INITIAL_KIP, 12, Rights::NONE);
    let utcbs = Fpage::memory(INITIAL_UTCB_AREA, INITIAL_UTCB_BITS, Rights::NONE);
    space::control::initialise(space, kip, utcbs).ok()?;
    let thread = lifecycle::create(id, space, ThreadId::ROOT).ok()?;
    thread.priority.set(INITIAL_PRIORITY);
    lifecycle::place_utcb(thread, INITIAL_UTCB_AREA).ok()?;
    let pager = if id == ThreadId::SIGMA0 { ThreadId::NIL } else { ThreadId::SIGMA0 };
    lifecycle::activate_running(thread, pager, server.entry, 0);
    debug_assert!(id.number() >= USER_BASE);
    Some(space)
}
