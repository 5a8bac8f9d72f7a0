//! Single instructions of the processor, as functions.
//!
//! Called by the other modules of this architecture only. The functions that
//! can break the kernel's own invariants are unsafe and say how.

use core::arch::asm;
use core::arch::x86_64::CpuidResult;

/// Port of QEMU's `isa-debug-exit`, if the machine has it: ends the emulator.
pub const EXIT_PORT: u16 = 0xF4;
/// Written to [`EXIT_PORT`]: all went well (QEMU's status is 33).
pub const EXIT_SUCCESS: u8 = 0x10;
/// Written to [`EXIT_PORT`]: the kernel stopped on an error (QEMU's status is 35).
pub const EXIT_FAILURE: u8 = 0x11;

/// Model-specific registers.
pub mod msr {
    /// Extended features: SCE, LME, NXE.
    pub const EFER: u32 = 0xC000_0080;
}

/// Reads a byte from an I/O port.
///
/// # Safety
/// Reading the port must have no effect that the caller does not own.
#[must_use]
pub unsafe fn in_byte(port: u16) -> u8 {
    let value: u8;
    // SAFETY: the caller answers for the device; memory is not touched.
    unsafe {
        asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags))
    };
    value
}

/// Writes a byte to an I/O port.
///
/// # Safety
/// The caller must own the device behind the port.
pub unsafe fn out_byte(port: u16, value: u8) {
    // SAFETY: the caller answers for the device; memory is not touched.
    unsafe {
        asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags))
    };
}

/// The time stamp counter.
#[must_use]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has RDTSC; it only reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// CPUID of `leaf` and `subleaf`; zeros beyond the highest leaf.
#[must_use]
pub fn cpuid(leaf: u32, subleaf: u32) -> CpuidResult {
    let highest = core::arch::x86_64::__cpuid(leaf & 0xC000_0000).eax;
    if leaf > highest {
        return CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 };
    }
    core::arch::x86_64::__cpuid_count(leaf, subleaf)
}

/// Reads a model-specific register.
///
/// # Safety
/// The register must exist.
#[must_use]
pub unsafe fn read_msr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller says that the register exists.
    unsafe {
        asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model-specific register.
///
/// # Safety
/// The register must exist and the value must keep the kernel's assumptions.
pub unsafe fn write_msr(register: u32, value: u64) {
    let (low, high) = (value as u32, (value >> 32) as u32);
    // SAFETY: the caller answers for register and value.
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") low, in("edx") high, options(nostack, preserves_flags))
    };
}

macro_rules! control_register {
    ($name:literal, $read:ident, $write:ident) => {
        #[doc = concat!("Reads ", $name, ".")]
        #[must_use]
        pub fn $read() -> u64 {
            let value: u64;
            // SAFETY: reading a control register in ring 0 has no effect.
            unsafe { asm!(concat!("mov {}, ", $name), out(reg) value, options(nomem, nostack, preserves_flags)) };
            value
        }

        #[doc = concat!("Writes ", $name, ".")]
        ///
        /// # Safety
        /// The value must be legal and keep what the kernel assumes of memory.
        pub unsafe fn $write(value: u64) {
            // SAFETY: the caller answers for the value.
            unsafe { asm!(concat!("mov ", $name, ", {}"), in(reg) value, options(nostack, preserves_flags)) };
        }
    };
}

control_register!("cr0", read_cr0, write_cr0);
control_register!("cr3", read_cr3, write_cr3);
control_register!("cr4", read_cr4, write_cr4);

/// Writes XCR0.
///
/// # Safety
/// CR4.OSXSAVE must be set and `value` a legal set of state components.
pub unsafe fn write_xcr0(value: u64) {
    let (low, high) = (value as u32, (value >> 32) as u32);
    // SAFETY: the caller answers for the value.
    unsafe {
        asm!("xsetbv", in("ecx") 0, in("eax") low, in("edx") high, options(nomem, nostack, preserves_flags))
    };
}

/// Ends the machine: tells an emulator `code`, then halts for good.
pub fn exit(code: u8) -> ! {
    // SAFETY: the port is the emulator's exit device, or nobody's.
    unsafe { out_byte(EXIT_PORT, code) };
    loop {
        // SAFETY: interrupts off and halted: nothing runs any more.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) };
    }
}
