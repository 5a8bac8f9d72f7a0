//! The kernel's own threads: the idle thread of each processor, the threads of the interrupt lines, the waker.

use abi::ThreadId;
use abi::id::SYSTEM_BASE;

use super::tcb::Resume;
use crate::arch::{self, cpu};
use crate::mem::{PhysFrame, RootWord, frames};
use crate::thread;
use crate::thread::rendezvous::{self, Busy};
use crate::thread::{Kind, TcbRef, frames_of};

/// Every processor's idle thread has this name there.
const IDLE: ThreadId = ThreadId::global(SYSTEM_BASE, 1);

/// The first processor's waker has this one.
const WAKER: ThreadId = ThreadId::global(SYSTEM_BASE + 1, 1);

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
    let thread = thread::install(id, vector, top)?;
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
