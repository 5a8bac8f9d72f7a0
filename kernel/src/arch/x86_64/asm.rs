//! Instructions that the running kernel uses beside those of `cpu.rs`.

use core::arch::asm;

use super::cpu::{self, read_cr3, read_cr4};
use super::features::{self, Features};
use super::frame::{FRAME_SIZE, Frame, TrapFrame};

/// Model-specific registers the running kernel writes.
pub mod msr {
    /// Segment selectors of SYSCALL and SYSRET.
    pub const STAR: u32 = 0xC000_0081;
    /// Entry point of SYSCALL.
    pub const LSTAR: u32 = 0xC000_0082;
    /// Flags that SYSCALL clears.
    pub const SFMASK: u32 = 0xC000_0084;
    /// FS base.
    pub const FS_BASE: u32 = 0xC000_0100;
    /// GS base.
    pub const GS_BASE: u32 = 0xC000_0101;
}

const CR4_PGE: u64 = 1 << 7;

/// Invalidates the translations of the page at `address`, global ones too.
pub fn invlpg(address: u64) {
    // SAFETY: dropping a translation never breaks memory safety.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags)) };
}

/// Invalidates every translation, global ones too.
pub fn flush_all() {
    let cr4 = read_cr4();
    // SAFETY: both values are legal; only translations are dropped.
    unsafe {
        if cr4 & CR4_PGE == 0 {
            cpu::write_cr3(read_cr3());
        } else {
            cpu::write_cr4(cr4 & !CR4_PGE);
            cpu::write_cr4(cr4);
        }
    }
}

/// Sets GS base, through which a thread finds its UTCB.
pub fn write_gs_base(value: u64, fsgsbase: bool) {
    // SAFETY: the kernel itself does not use GS; with `fsgsbase` CR4 allows the instruction.
    unsafe {
        if fsgsbase {
            asm!("wrgsbase {}", in(reg) value, options(nostack, preserves_flags));
        } else {
            cpu::write_msr(msr::GS_BASE, value);
        }
    }
}

/// Sets FS base.
pub fn write_fs_base(value: u64) {
    // SAFETY: as `write_gs_base`.
    unsafe {
        if features::in_use().contains(Features::FSGSBASE) {
            asm!("wrfsbase {}", in(reg) value, options(nostack, preserves_flags));
        } else {
            cpu::write_msr(msr::FS_BASE, value);
        }
    }
}

/// FS and GS base.
pub fn read_bases() -> (u64, u64) {
    if !features::in_use().contains(Features::FSGSBASE) {
        // SAFETY: both registers exist on every processor with 64-bit mode.
        return unsafe { (cpu::read_msr(msr::FS_BASE), cpu::read_msr(msr::GS_BASE)) };
    }
    let (fs, gs);
    // SAFETY: with the feature in use, CR4 allows the instructions; they only read.
    unsafe {
        asm!("rdfsbase {}", "rdgsbase {}", out(reg) fs, out(reg) gs,
             options(nomem, nostack, preserves_flags));
    }
    (fs, gs)
}

/// Address of the last page fault.
#[must_use]
pub fn fault_address() -> u64 {
    let value;
    // SAFETY: reading a control register has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Says that the last page fault was at `address`.
pub fn set_fault_address(address: u64) {
    // SAFETY: the register has no effect on anything.
    unsafe { asm!("mov cr2, {}", in(reg) address, options(nomem, nostack, preserves_flags)) };
}

/// Copies `len` bytes upwards, eight at a time, then the rest.
///
/// # Safety
/// `len` bytes are readable at `from` and writable at `to`.
pub unsafe fn copy_bytes(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller vouches for both ranges; the direction flag is clear.
    unsafe {
        asm!(
            "rep movsq",
            "mov ecx, {rest:e}",
            "rep movsb",
            rest = in(reg) len & 7,
            inout("rcx") len >> 3 => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags),
        );
    }
}

/// Copies the registers of `from` to `to`, which is another frame; nobody runs on either.
pub fn copy_frame(from: Frame, to: Frame) {
    let (from, to): (*const TrapFrame, *const TrapFrame) = (from, to);
    // SAFETY: both are frames, all of cells.
    unsafe { copy_bytes(to.cast_mut().cast(), from.cast(), FRAME_SIZE) };
}

/// Fills a page with a word, eight bytes at a time.
///
/// # Safety
/// The page at `page` is the caller's.
pub unsafe fn fill_page(page: *mut u8, word: u64) {
    // SAFETY: the caller vouches for the page; the direction flag is clear.
    unsafe {
        asm!("rep stosq", inout("rcx") 512_u64 => _, inout("rdi") page => _, in("rax") word,
             options(nostack, preserves_flags));
    }
}

unsafe extern "C" {
    fn baton_window();
    /// Leaves the kernel for the thread whose tcb is at the address in RAX.
    pub fn baton_resume() -> !;
}

/// Lets pending interrupts in; they only note their lines (`Cpu::pending_lines`).
pub fn window() {
    // SAFETY: the handlers save all registers and touch nothing but the note.
    unsafe { baton_window() };
}
