//! What the processor can do and what the kernel switched on, decided once at boot.
//!
//! [`enable`] runs before the kernel's own page tables are built (they need
//! no-execute and global pages); afterwards the record only answers questions.

use bitflags::bitflags;
use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

#[cfg(target_os = "none")]
use super::mitigations;
use super::{cpu, inherited};

bitflags! {
    /// Features in use (CR4 and EFER bits are set for each of them).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Features: u32 {
        /// No-execute pages.
        const NX = 1 << 0;
        /// Pages of 1 GiB.
        const GIB_PAGES = 1 << 1;
        /// Global pages.
        const PGE = 1 << 2;
        /// Tagged TLB.
        const PCID = 1 << 3;
        /// INVPCID instruction.
        const INVPCID = 1 << 4;
        /// The kernel cannot execute user pages.
        const SMEP = 1 << 5;
        /// The kernel cannot touch user pages.
        const SMAP = 1 << 6;
        /// User level cannot read descriptor-table registers.
        const UMIP = 1 << 7;
        /// RDFSBASE and friends.
        const FSGSBASE = 1 << 8;
        /// XSAVE with XCR0.
        const XSAVE = 1 << 9;
        /// XSAVEOPT.
        const XSAVEOPT = 1 << 10;
        /// The time stamp counter runs at one rate in all power states.
        const INVARIANT_TSC = 1 << 11;
        /// Machine checks are exceptions.
        const MCE = 1 << 12;
        /// x87 pointers of another thread are left by a load of vector state (a defect: the
        /// kernel clears them).
        const X87_SURVIVES_LOAD = 1 << 14;
        /// They are left by a load of the initial state, too.
        const X87_SURVIVES_RESET = 1 << 15;
    }
}

/// Longest vector state that users know how to ask for, bytes: XSAVE's standard format up
/// to AVX-512. A thread has a frame for it; AMX's tiles (8 KiB) do not fit and stay off.
pub const XSAVE_LIMIT: u32 = 2_688;
/// Bytes of an FXSAVE area, used where there is no XSAVE.
const FXSAVE_BYTES: u32 = 512;
/// Components that fit: x87, SSE, AVX, and AVX-512's three.
const XCR0_WANTED: u64 = 0xE7;
/// x87 and SSE; always on.
const XCR0_BASE: u64 = 3;
const XCR0_AVX: u64 = 1 << 2;
const XCR0_AVX512: u64 = 7 << 5;

mod cr4 {
    pub const PAE: u64 = 1 << 5;
    pub const MCE: u64 = 1 << 6;
    pub const PGE: u64 = 1 << 7;
    pub const OSFXSR: u64 = 1 << 9;
    pub const OSXMMEXCPT: u64 = 1 << 10;
    pub const UMIP: u64 = 1 << 11;
    pub const FSGSBASE: u64 = 1 << 16;
    pub const PCIDE: u64 = 1 << 17;
    pub const OSXSAVE: u64 = 1 << 18;
    pub const SMEP: u64 = 1 << 20;
    pub const SMAP: u64 = 1 << 21;
}

/// CR0: protection, monitor coprocessor, extension type, numeric error, write protect,
/// paging. Caches on, no emulation, no alignment checks at user level. TS is `vector.rs`'s.
const CR0: u64 = 1 << 0 | 1 << 1 | 1 << 4 | 1 << 5 | 1 << 16 | 1 << 31;
/// EFER: SYSCALL, long mode enabled and active, no-execute. No fast FXSAVE, which would leave
/// vector registers out, no limits of segments, no virtual machines.
const EFER: u64 = 1 << 0 | 1 << 8 | 1 << 10 | 1 << 11;

static IN_USE: AtomicU32 = AtomicU32::new(0);
static XCR0: AtomicU64 = AtomicU64::new(0);
static VECTOR_BYTES: AtomicU32 = AtomicU32::new(FXSAVE_BYTES);

/// The features in use.
#[must_use]
pub fn in_use() -> Features {
    Features::from_bits_retain(IN_USE.load(Ordering::Relaxed))
}

/// State components that XSAVE handles; 0 without XSAVE.
#[must_use]
pub fn xcr0() -> u64 {
    XCR0.load(Ordering::Relaxed)
}

/// Bytes that a thread's vector state takes, at most [`XSAVE_LIMIT`].
#[must_use]
pub fn vector_bytes() -> u32 {
    VECTOR_BYTES.load(Ordering::Relaxed)
}

/// Width of physical addresses, bits.
#[must_use]
pub fn physical_bits() -> u32 {
    let bits = cpu::cpuid(0x8000_0008, 0).eax & 0xFF;
    if bits == 0 { 36 } else { bits }
}

/// What CPUID offers.
fn offered() -> Features {
    let (basic, structured) = (cpu::cpuid(1, 0), cpu::cpuid(7, 0));
    let (extended, power) = (cpu::cpuid(0x8000_0001, 0), cpu::cpuid(0x8000_0007, 0));
    let table = [
        (extended.edx, 20, Features::NX),
        (extended.edx, 26, Features::GIB_PAGES),
        (basic.edx, 13, Features::PGE),
        (basic.edx, 7, Features::MCE),
        (basic.ecx, 17, Features::PCID),
        (structured.ebx, 10, Features::INVPCID),
        (structured.ebx, 7, Features::SMEP),
        (structured.ebx, 20, Features::SMAP),
        (structured.ecx, 2, Features::UMIP),
        (structured.ebx, 0, Features::FSGSBASE),
        (basic.ecx, 26, Features::XSAVE),
        (cpu::cpuid(0xD, 1).eax, 0, Features::XSAVEOPT),
        (power.edx, 8, Features::INVARIANT_TSC),
    ];
    let on = table.into_iter().filter(|(register, bit, _)| register >> bit & 1 != 0);
    on.fold(Features::empty(), |all, (_, _, feature)| all | feature)
}

/// Switches everything on that the processor offers, and everything off that firmware or
/// loader left on.
///
/// # Safety
/// Once, at boot, with interrupts off; the low 12 bits of CR3 must be zero (PCID),
/// and no page that the kernel uses may be a user page (SMEP, SMAP).
pub unsafe fn enable() {
    let mut features = offered();
    // SAFETY: the caller upholds what the bits need.
    unsafe { set_registers(features) };
    if features.contains(Features::XSAVE) {
        // SAFETY: CR4.OSXSAVE has just been set.
        unsafe { enable_vector_state() };
    } else {
        features.remove(Features::XSAVEOPT);
    }
    #[cfg(target_os = "none")]
    // SAFETY: XCR0 has just been set if there is XSAVE.
    features.insert(unsafe { super::xsave::survivors(features.contains(Features::XSAVE)) });
    IN_USE.store(features.bits(), Ordering::Relaxed);
}

/// Sets another processor up as [`enable`] has set up the first; false if it lacks something
/// that is in use, and then its registers are as they were.
///
/// # Safety
/// On the kernel's own tables, with interrupts off; the low 12 bits of CR3 must be zero.
#[cfg(target_os = "none")]
pub unsafe fn join() -> bool {
    let wanted = in_use();
    let lacking = wanted - offered() - (Features::X87_SURVIVES_LOAD | Features::X87_SURVIVES_RESET);
    if !lacking.is_empty() || xcr0() & !supported() != 0 {
        return false;
    }
    // SAFETY: the caller upholds what the bits need; the processor has what is in use.
    unsafe {
        set_registers(wanted);
        if wanted.contains(Features::XSAVE) {
            cpu::write_xcr0(xcr0());
        }
    }
    true
}

/// Sets the control registers for `features`, and clears what was left on.
///
/// # Safety
/// As [`enable`], and the processor has the features.
#[inline(never)] // one copy for the first processor and all others
unsafe fn set_registers(features: Features) {
    // SAFETY: the caller upholds what the bits need; the registers exist on x86-64.
    unsafe {
        cpu::write_msr(cpu::msr::EFER, EFER);
        cpu::write_cr0(CR0);
        cpu::write_cr4(cr4_of(features));
        inherited::clear();
    }
}

/// The components of vector state that the processor has.
fn supported() -> u64 {
    let low = cpu::cpuid(0xD, 0);
    u64::from(low.edx) << 32 | u64::from(low.eax)
}

/// Says to `note` which control register is not as [`enable`] left it.
#[cfg(target_os = "none")]
#[inline(never)] // one copy for the first processor and all others
pub fn check(note: &mut dyn FnMut(fmt::Arguments<'_>)) {
    // SAFETY: the register exists on x86-64.
    let efer = unsafe { cpu::read_msr(cpu::msr::EFER) };
    let table = [
        ("CR0", cpu::read_cr0(), CR0),
        ("CR4", cpu::read_cr4(), cr4_of(in_use())),
        ("EFER", efer, EFER | mitigations::efer()),
    ];
    for (name, is, expected) in table {
        if is != expected {
            note(format_args!("{name} is {is:#x}, and the kernel has set {expected:#x}"));
        }
    }
    inherited::check(note);
}

/// CR4, from nothing: no debugging extensions, no performance counters or descriptor tables
/// for users, no virtual machines, no keys. Users may read the time stamp counter: SystemClock
/// does (stubs.S).
fn cr4_of(features: Features) -> u64 {
    let table = [
        (Features::PGE, cr4::PGE),
        (Features::MCE, cr4::MCE),
        (Features::PCID, cr4::PCIDE),
        (Features::SMEP, cr4::SMEP),
        (Features::SMAP, cr4::SMAP),
        (Features::UMIP, cr4::UMIP),
        (Features::FSGSBASE, cr4::FSGSBASE),
        (Features::XSAVE, cr4::OSXSAVE),
    ];
    let on = table.into_iter().filter(|(feature, _)| features.contains(*feature));
    on.fold(cr4::PAE | cr4::OSFXSR | cr4::OSXMMEXCPT, |all, (_, bit)| all | bit)
}

/// Sets XCR0 to the most components whose area fits in [`XSAVE_LIMIT`].
///
/// # Safety
/// CR4.OSXSAVE must be set.
unsafe fn enable_vector_state() {
    for components in candidates(supported()) {
        // SAFETY: the components are supported and legal together.
        unsafe { cpu::write_xcr0(components) };
        let bytes = cpu::cpuid(0xD, 0).ebx;
        if bytes <= XSAVE_LIMIT {
            XCR0.store(components, Ordering::Relaxed);
            VECTOR_BYTES.store(bytes, Ordering::Relaxed);
            return;
        }
    }
}

/// Sets of components to try, largest first. AVX-512 needs all of its parts and
/// AVX (Intel SDM 1, 13.3).
fn candidates(supported: u64) -> [u64; 3] {
    let base = XCR0_BASE;
    let avx = base | supported & XCR0_AVX;
    let all = supported & XCR0_WANTED | base;
    let is_legal = all & XCR0_AVX512 == XCR0_AVX512 && all & XCR0_AVX != 0;
    [if is_legal { all } else { avx }, avx, base]
}

/// A terminal's width, and what each line of the summary begins with.
const COLUMNS: usize = 80;
const LINE_BEGINS: &str = "baton: processor:";

/// The record, in lines that fit a terminal; the first one has been begun.
pub struct Summary;

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut column = LINE_BEGINS.len();
        for (name, _) in in_use().iter_names() {
            if column + 1 + name.len() > COLUMNS {
                write!(f, "\n{LINE_BEGINS}")?;
                column = LINE_BEGINS.len();
            }
            write!(f, " {name}")?;
            column += 1 + name.len();
        }
        write!(f, "\n{LINE_BEGINS} xcr0={:#x} vector-state={} bytes", xcr0(), vector_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_components_are_always_legal_together() {
        for supported in 0..0x400 {
            for set in candidates(supported) {
                assert_eq!(set & XCR0_BASE, XCR0_BASE);
                assert_eq!(set & !(XCR0_WANTED & supported | XCR0_BASE), 0);
                let avx512 = set & XCR0_AVX512;
                assert!(avx512 == 0 || (avx512 == XCR0_AVX512 && set & XCR0_AVX != 0));
            }
        }
    }

    #[test]
    fn no_feature_asks_for_no_bit() {
        assert_eq!(cr4_of(Features::empty()), cr4::PAE | cr4::OSFXSR | cr4::OSXMMEXCPT);
        assert_eq!(cr4_of(Features::SMAP) & cr4::SMAP, cr4::SMAP);
    }
}
