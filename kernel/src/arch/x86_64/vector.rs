//! The lazy coprocessor (Liedtke 1993, 5.5.6): vector and floating-point state
//! stays in the registers until another thread touches them.
//!
//! While the current thread may use the unit (CR0.TS clear), LSTAR leads around
//! the fast path, so that leaving the thread always passes through `leave`, which
//! sets TS again. The fast path itself never looks. Nothing leaks into another
//! thread: its first vector instruction traps and loads its own state.

use core::arch::asm;

use super::asm::{msr, set_task_switched};
use super::cpu::write_msr;
use super::features::{self, Features};
use super::percpu::cpu;
use super::tcbs::TcbRef;

unsafe extern "C" {
    fn baton_ipc_entry();
    fn baton_special_entry();
}

/// Points SYSCALL at the fast path, or around it.
pub fn set_entry(special: bool) {
    let fast = crate::techniques::FAST_PATH && features::in_use().contains(Features::FSGSBASE);
    let entry = if special || !fast {
        baton_special_entry as *const ()
    } else {
        baton_ipc_entry as *const ()
    };
    // SAFETY: both are system-call entries of the kernel.
    unsafe { write_msr(msr::LSTAR, entry as u64) };
}

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
    set_entry(true);
}

/// Takes the unit away before another thread runs; the state stays where it is.
pub fn leave() {
    let cpu = cpu();
    if cpu.vector_live.replace(false) {
        set_task_switched(true);
        set_entry(false);
    }
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
        // SAFETY: as in `save`. An area with an empty component bitmap restores
        // the initial state; the legacy part needs its control words.
        unsafe {
            area.write_bytes(0, 576);
            area.cast::<u16>().write(0x037F);
            area.add(24).cast::<u32>().write(0x1F80);
        }
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
