//! The lazy coprocessor (Liedtke 1993, 5.5.6): vector and floating-point state
//! stays in the registers until another thread touches them.
//!
//! While the current thread may use the unit (CR0.TS clear), the fast path is closed
//! (`percpu`), so that leaving the thread always passes through `special::leave`,
//! which sets TS again. The fast path itself never looks. Nothing leaks into another
//! thread: its first vector instruction traps and loads its own state.

use core::arch::asm;
use core::cell::Cell;

use super::asm::set_task_switched;
use super::features::{self, Features};
use super::percpu::cpu;
use super::special;
use super::tcbs::{TcbRef, VECTOR_AREA};

/// Device-not-available: gives the unit to `thread`.
pub fn enter(thread: TcbRef) {
    let cpu = cpu();
    set_task_switched(false);
    if cpu.vector_owner.get() != Some(thread) {
        if let Some(owner) = cpu.vector_owner.get() {
            save(owner);
        }
        load(thread);
        cpu.vector_owner.set(Some(thread));
    }
    cpu.vector_live.set(true);
    special::close();
}

/// The saved vector state of `thread`, which is not the current one, and its size in
/// bytes; nothing of it is in the registers afterwards.
pub fn saved(thread: TcbRef) -> (&'static [Cell<u8>], usize) {
    let cpu = cpu();
    if cpu.vector_owner.get() == Some(thread) {
        set_task_switched(false);
        save(thread);
        set_task_switched(true);
        cpu.vector_owner.set(None);
    }
    if !thread.vector_valid.replace(true) {
        initialise(thread.vector_area());
    }
    // SAFETY: the area is part of the thread's block, and nothing else refers to it: the
    // state is not in the registers, so no instruction reads or writes it meanwhile.
    let area = unsafe { core::slice::from_raw_parts(thread.vector_area().cast(), VECTOR_AREA) };
    (area, features::vector_bytes() as usize)
}

/// Makes whatever was written to the saved state of `thread` one that XRSTOR accepts:
/// known components only, the standard format, no reserved bits (Intel SDM 1, 13.8.1).
pub fn sanitise(thread: TcbRef) {
    const MXCSR: usize = 24;
    const HEADER: usize = 512;
    let (area, _) = saved(thread);
    let word = |at: usize| u64::from_le_bytes(core::array::from_fn(|byte| area[at + byte].get()));
    let set = |at: usize, bytes: &[u8]| {
        area[at..].iter().zip(bytes).for_each(|(cell, byte)| cell.set(*byte));
    };
    set(MXCSR, &(word(MXCSR) as u32 & 0xFFFF).to_le_bytes());
    set(HEADER, &(word(HEADER) & features::xcr0()).to_le_bytes());
    set(HEADER + 8, &[0; 56]);
}

/// Forgets the state of a thread that is being deleted.
pub fn forget(thread: TcbRef) {
    let cpu = cpu();
    if cpu.vector_owner.get() == Some(thread) {
        cpu.vector_owner.set(None);
    }
}

fn save(owner: TcbRef) {
    owner.vector_valid.set(true);
    // SAFETY: the area is in the owner's block, 64-byte aligned and at least as
    // large as the state that `features` enabled; TS is clear.
    unsafe {
        if features::in_use().contains(Features::XSAVE) {
            asm!("xsave64 [{}]", in(reg) owner.vector_area(), in("eax") !0u32, in("edx") !0u32, options(nostack));
        } else {
            asm!("fxsave64 [{}]", in(reg) owner.vector_area(), options(nostack));
        }
    }
}

fn load(thread: TcbRef) {
    let area = thread.vector_area();
    if !thread.vector_valid.replace(true) {
        initialise(area);
    }
    // SAFETY: as in `save`; the area holds a state that `save` or the lines above made.
    unsafe {
        if features::in_use().contains(Features::XSAVE) {
            asm!("xrstor64 [{}]", in(reg) area, in("eax") !0u32, in("edx") !0u32, options(nostack));
        } else {
            asm!("fxrstor64 [{}]", in(reg) area, options(nostack));
        }
    }
}

/// The state of a thread that has not used the unit yet.
fn initialise(area: *mut u8) {
    // SAFETY: the area is a thread's, and at least this large. With an empty component
    // bitmap it restores the initial state; the legacy part needs its control words.
    unsafe {
        area.write_bytes(0, 576);
        area.cast::<u16>().write(0x037F);
        area.add(24).cast::<u32>().write(0x1F80);
    }
}
