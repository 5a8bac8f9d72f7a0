//! Threads with which something is special while they run: vector registers in use, or
//! registers of a foreign thread that others do not have (FS and GS base), messages in user
//! mode (`armed`), or somebody waiting whom a direct switch could pass over
//! (`sched::keep_watch`). The fast path's limits are closed for them (`percpu`), so that leaving
//! them always passes through `entry::switch`, or through `vector.S`, `armed.S`, `beside.S` or `foreign.S`, which do the same.

use super::tcbs::TcbRef;
use crate::arch::x86_64::features::{self, Features};
use crate::arch::x86_64::percpu::{GATE_ARMED, GATE_BESIDE, GATE_VECTOR, LIMITS_OPEN, cpu};
use crate::thread::tcb::{ARMED, USES_VECTOR};

/// Whether open limits are possible: they promise WRGSBASE (`switch::activate`).
pub(crate) fn fast() -> bool {
    crate::techniques::FAST_PATH && features::in_use().contains(Features::FSGSBASE)
}

/// Sets the fast path's limits and gate for `thread`, which runs or is about to: all closed
/// if the first switch has to look at the ready queue.
pub fn update(thread: TcbRef) {
    let cpu = cpu();
    let quiet = fast() && !cpu.look_first.get();
    let opens = quiet && thread.special.get() == 0;
    cpu.tss.limits.set(if opens { LIMITS_OPEN } else { 0 });
    cpu.tss.gate.set(if quiet { gate(thread) } else { 0 });
    let beside = quiet && thread.special.get() == ARMED | USES_VECTOR && !thread.is_foreign();
    cpu.tss.gate_beside.set(if beside { GATE_BESIDE } else { 0 });
}

/// Whether `vector.S` may serve threads that use vector registers. It clears the x87 pointers
/// where a load of kept registers leaves them, not where a reset does, too.
pub fn has_gate() -> bool {
    let features = features::in_use() & (Features::XSAVEOPT | Features::X87_SURVIVES_RESET);
    features == Features::XSAVEOPT
}

/// Which path serves `thread` as sender.
fn gate(thread: TcbRef) -> u32 {
    match thread.special.get() {
        _ if thread.is_foreign() => 0,
        ARMED => GATE_ARMED,
        USES_VECTOR if has_gate() => GATE_VECTOR,
        _ => 0,
    }
}

/// The same for a shadow that is about to run (`seats`), on another processor than the first.
pub fn update_shadow(shadow: TcbRef) {
    let tss = &cpu().tss;
    let (limits, gate) = match shadow.special.get() {
        0 => (LIMITS_OPEN, 0),
        _ if has_gate() => (0, GATE_VECTOR),
        _ => (0, 0),
    };
    tss.limits.set(limits);
    tss.gate.set(gate);
    tss.gate_beside.set(0);
}

/// Keeps the running thread out of the fast path.
pub fn close() {
    let cpu = cpu();
    cpu.tss.gate.set(0);
    cpu.tss.gate_beside.set(0);
    cpu.tss.limits.set(0);
}

/// Whether something about the running thread is special.
#[inline(always)]
pub fn is_closed() -> bool {
    cpu().tss.limits.get() != LIMITS_OPEN
}
