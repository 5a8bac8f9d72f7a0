//! What the processor's speculation gives away, and what is done about it: decided once, at
//! boot, from what CPUID and IA32_ARCH_CAPABILITIES say (docs/security.md has the table).
//!
//! [`plan`] is pure. [`apply`] writes the registers; code paths are diverted by `patch.rs`, so
//! that what is not needed costs no instruction.

use bitflags::bitflags;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use super::cpu::{cpuid, read_msr, write_msr};

bitflags! {
    /// What is done.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Actions: u32 {
        /// Indirect branches of the kernel follow no user's training: IBRS for good.
        const IBRS = 1 << 0;
        /// The same on AMD's processors: a bit of EFER.
        const AUTO_IBRS = 1 << 1;
        /// Nor users' branch history.
        const BHI_DIS = 1 << 2;
        /// Loads wait for the addresses of earlier stores.
        const SSBD = 1 << 3;
        /// VERW empties the processor's buffers before each return to a program.
        const VERW = 1 << 4;
        /// Branch predictions are forgotten between spaces; the fast path is closed.
        const IBPB = 1 << 5;
        /// No transactional memory.
        const NO_TSX = 1 << 6;
        /// The microcode's protection of random numbers and gathered data is on.
        const MICROCODE = 1 << 7;
    }
}

bitflags! {
    /// What is known and not prevented.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Open: u32 {
        const MELTDOWN = 1 << 0;
        const SPECTRE_V2_KERNEL = 1 << 1;
        const SPECTRE_V2_USER = 1 << 2;
        const BHI = 1 << 3;
        const RETBLEED = 1 << 4;
        const INCEPTION = 1 << 5;
        const MDS = 1 << 6;
        const TAA = 1 << 7;
        const SSB = 1 << 8;
        const EVERYTHING = 1 << 9;
    }
}

/// What the command line says (`mitigations=`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Choice {
    /// Nothing.
    Off,
    /// What the processor needs and does not cost the fast path its life.
    #[default]
    Auto,
    /// Everything that is built, whatever the processor says.
    On,
}

impl Choice {
    /// Reads the option's value; what is not understood is `auto`.
    #[must_use]
    pub fn read(value: Option<&str>) -> Self {
        match value {
            Some("off") => Self::Off,
            Some("on") => Self::On,
            _ => Self::Auto,
        }
    }
}

/// Who made the processor, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vendor {
    /// Software that does not speculate (QEMU without hardware virtualisation).
    Emulator,
    /// AMD, and Hygon, which builds its designs.
    Amd,
    /// Intel, and everybody else: nothing is taken for granted.
    Other,
}

/// What the processor says about itself.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Who made it.
    pub vendor: Vendor,
    /// Its family, extended.
    pub family: u32,
    /// IA32_ARCH_CAPABILITIES; 0 without.
    pub capabilities: u64,
    /// CPUID 7.0 EBX and EDX, 7.2 EDX.
    pub structured: [u32; 3],
    /// CPUID 8000_0008 EBX, 8000_0021 EAX and ECX.
    pub extended: [u32; 3],
}

/// Bits of IA32_ARCH_CAPABILITIES (Intel SDM 4, table 2-2).
mod capability {
    pub const RDCL_NO: u64 = 1 << 0;
    pub const IBRS_ALL: u64 = 1 << 1;
    pub const SSB_NO: u64 = 1 << 4;
    pub const MDS_NO: u64 = 1 << 5;
    pub const TSX_CTRL: u64 = 1 << 7;
    pub const TAA_NO: u64 = 1 << 8;
    /// No stale data from devices' registers: three kinds.
    pub const MMIO_NO: u64 = 7 << 13;
    pub const FB_CLEAR: u64 = 1 << 17;
    pub const BHI_NO: u64 = 1 << 20;
    pub const GDS_CTRL: u64 = 1 << 25;
    pub const RFDS_NO: u64 = 1 << 27;
    pub const RFDS_CLEAR: u64 = 1 << 28;
}

impl Facts {
    const fn can(&self, capability: u64) -> bool {
        self.capabilities & capability == capability
    }

    const fn structured(&self, word: usize, bit: u32) -> bool {
        self.structured[word] >> bit & 1 != 0
    }

    const fn extended(&self, word: usize, bit: u32) -> bool {
        self.extended[word] >> bit & 1 != 0
    }

    fn has_ibpb(&self) -> bool {
        self.structured(1, 26) || self.extended(0, 12) || self.vendor == Vendor::Emulator
    }

    const fn has_ssbd(&self) -> bool {
        self.structured(1, 31)
    }

    /// Whether a return to a program has to empty buffers, and can.
    fn needs_verw(&self) -> bool {
        use capability::{FB_CLEAR, MDS_NO, MMIO_NO, RFDS_CLEAR, RFDS_NO, TAA_NO, TSX_CTRL};
        let amd = self.extended(1, 5) && self.extended[2] >> 1 & 3 != 3;
        let samples = !self.can(MDS_NO) && self.structured(1, 10);
        let aborts = self.structured(0, 11) && !self.can(TAA_NO) && !self.can(TSX_CTRL);
        let devices = self.can(FB_CLEAR) && !self.can(MMIO_NO);
        let registers = self.can(RFDS_CLEAR) && !self.can(RFDS_NO);
        match self.vendor {
            Vendor::Emulator => false,
            Vendor::Amd => amd,
            Vendor::Other => samples || aborts && self.structured(1, 10) || devices || registers,
        }
    }
}

/// What is done on a processor like this, and what stays open.
#[must_use]
pub fn plan(facts: &Facts, choice: Choice) -> (Actions, Open) {
    let (mut actions, mut open) = match facts.vendor {
        Vendor::Emulator => (Actions::empty(), Open::empty()),
        Vendor::Amd => amd(facts),
        Vendor::Other => intel(facts),
    };
    actions.set(Actions::VERW, facts.needs_verw());
    if choice == Choice::Off {
        let none = facts.vendor == Vendor::Emulator;
        return (Actions::empty(), if none { open } else { Open::EVERYTHING });
    }
    if choice == Choice::On {
        actions |= Actions::VERW;
        actions.set(Actions::IBPB, facts.has_ibpb());
        actions.set(Actions::SSBD, facts.has_ssbd());
        open.set(Open::SSB, open.contains(Open::SSB) && !facts.has_ssbd());
        open.set(Open::SPECTRE_V2_USER, !facts.has_ibpb());
    }
    (actions, open)
}

fn intel(facts: &Facts) -> (Actions, Open) {
    use capability::{BHI_NO, GDS_CTRL, IBRS_ALL, MDS_NO, RDCL_NO, SSB_NO, TAA_NO, TSX_CTRL};
    let (mut actions, mut open) = (Actions::empty(), Open::SPECTRE_V2_USER);
    let history = facts.structured(2, 4);
    let transactions = facts.structured(0, 11);
    actions.set(Actions::IBRS, facts.can(IBRS_ALL));
    actions.set(Actions::BHI_DIS, history && !facts.can(BHI_NO));
    actions.set(Actions::NO_TSX, transactions && facts.can(TSX_CTRL) && !facts.can(TAA_NO));
    actions.set(Actions::MICROCODE, facts.structured(1, 9) || facts.can(GDS_CTRL));
    open.set(Open::MELTDOWN, !facts.can(RDCL_NO));
    open.set(Open::SPECTRE_V2_KERNEL | Open::RETBLEED, !facts.can(IBRS_ALL));
    open.set(Open::BHI, facts.can(IBRS_ALL) && !facts.can(BHI_NO) && !history);
    open.set(Open::MDS, !facts.can(MDS_NO) && !facts.structured(1, 10));
    let unclear = !facts.can(TSX_CTRL) && !facts.structured(1, 10);
    open.set(Open::TAA, transactions && !facts.can(TAA_NO) && unclear);
    open.set(Open::SSB, !facts.can(SSB_NO));
    (actions, open)
}

fn amd(facts: &Facts) -> (Actions, Open) {
    let (mut actions, mut open) = (Actions::empty(), Open::SPECTRE_V2_USER | Open::SSB);
    actions.set(Actions::AUTO_IBRS, facts.extended(1, 8));
    open.set(Open::SPECTRE_V2_KERNEL, !facts.extended(1, 8));
    open.set(Open::RETBLEED, matches!(facts.family, 0x15..=0x18));
    open.set(Open::INCEPTION, matches!(facts.family, 0x17..=0x19) && !facts.extended(1, 29));
    (actions, open)
}

/// Reads what the processor says.
#[must_use]
pub fn facts() -> Facts {
    let (name, signature) = (cpuid(0, 0), cpuid(1, 0));
    let text = |words: [u32; 3]| words.map(u32::to_le_bytes).concat_bytes();
    let is_amd =
        [*b"AuthenticAMD", *b"HygonGenuine"].contains(&text([name.ebx, name.edx, name.ecx]));
    let host = cpuid(0x4000_0000, 0);
    let is_guest = signature.ecx >> 31 & 1 != 0;
    let vendor = if is_guest && text([host.ebx, host.ecx, host.edx]) == *b"TCGTCGTCGTCG" {
        Vendor::Emulator
    } else if is_amd {
        Vendor::Amd
    } else {
        Vendor::Other
    };
    let base = signature.eax >> 8 & 0xF;
    let family = if base == 0xF { base + (signature.eax >> 20 & 0xFF) } else { base };
    let structured = cpuid(7, 0);
    let has_capabilities = structured.edx >> 29 & 1 != 0;
    Facts {
        vendor,
        family,
        // SAFETY: CPUID says that the register exists.
        capabilities: if has_capabilities { unsafe { read_msr(ARCH_CAPABILITIES) } } else { 0 },
        structured: [structured.ebx, structured.edx, cpuid(7, 2).edx],
        extended: [cpuid(0x8000_0008, 0).ebx, cpuid(0x8000_0021, 0).eax, cpuid(0x8000_0021, 0).ecx],
    }
}

/// Twelve bytes of a processor's or a hypervisor's name.
trait ConcatBytes {
    fn concat_bytes(self) -> [u8; 12];
}

impl ConcatBytes for [[u8; 4]; 3] {
    fn concat_bytes(self) -> [u8; 12] {
        core::array::from_fn(|index| self[index / 4][index % 4])
    }
}

const ARCH_CAPABILITIES: u32 = 0x10A;
const SPEC_CTRL: u32 = 0x48;
const PRED_CMD: u32 = 0x49;
const TSX_CTRL: u32 = 0x122;
const MCU_OPT_CTRL: u32 = 0x123;
/// MCU_OPT_CTRL: the microcode's protections are off: random numbers, gathered data.
const MICROCODE_OFF: u64 = 1 << 0 | 1 << 4;

static CHOSEN: AtomicU64 = AtomicU64::new(0);

/// What EFER holds beside what the kernel always sets.
#[must_use]
pub fn efer() -> u64 {
    let chosen = Actions::from_bits_truncate(CHOSEN.load(Ordering::Relaxed) as u32);
    if chosen.contains(Actions::AUTO_IBRS) { 1 << 21 } else { 0 }
}

/// Writes what `actions` need into the processor's registers.
///
/// # Safety
/// Once, at boot, with actions that [`plan`] chose for this processor.
pub unsafe fn apply(actions: Actions) {
    CHOSEN.store(u64::from(actions.bits()), Ordering::Relaxed);
    // SAFETY: the caller's promise.
    unsafe { write(actions) };
}

/// Likewise on another processor.
///
/// # Safety
/// On a processor like the one for which the actions were chosen.
#[cfg(target_os = "none")]
pub unsafe fn join() {
    // SAFETY: the caller's promise.
    unsafe { write(Actions::from_bits_truncate(CHOSEN.load(Ordering::Relaxed) as u32)) };
}

/// # Safety
/// As [`apply`].
#[inline(never)] // one copy for the first processor and all others
unsafe fn write(actions: Actions) {
    let bits = [(Actions::IBRS, 0), (Actions::SSBD, 2), (Actions::BHI_DIS, 10)];
    let set = bits.into_iter().filter(|(action, _)| actions.contains(*action));
    let control: u64 = set.map(|(_, bit)| 1 << bit).sum();
    // SAFETY: `plan` chooses an action only where the processor has its register.
    unsafe {
        if control != 0 {
            write_msr(SPEC_CTRL, control);
        }
        if actions.contains(Actions::AUTO_IBRS) {
            write_msr(super::cpu::msr::EFER, read_msr(super::cpu::msr::EFER) | efer());
        }
        if actions.contains(Actions::NO_TSX) {
            write_msr(TSX_CTRL, 3);
        }
        if actions.contains(Actions::MICROCODE) {
            write_msr(MCU_OPT_CTRL, read_msr(MCU_OPT_CTRL) & !MICROCODE_OFF);
        }
    }
}

/// Whether branch predictions are to be forgotten between spaces.
#[cfg(target_os = "none")]
#[must_use]
pub fn forgets_predictions() -> bool {
    CHOSEN.load(Ordering::Relaxed) & u64::from(Actions::IBPB.bits()) != 0
}

/// Forgets all branch predictions.
pub fn flush_predictions() {
    // SAFETY: only called where `plan` has chosen `Actions::IBPB`; nothing but predictions
    // is lost.
    unsafe { write_msr(PRED_CMD, 1) };
}

/// Choice, actions and what is open, in one line.
pub struct Summary(pub Choice, pub Actions, pub Open);

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |f: &mut fmt::Formatter<'_>, mut list: &mut dyn Iterator<Item = &str>| {
            let mut any = false;
            for name in &mut list {
                write!(f, " {name}")?;
                any = true;
            }
            if any { Ok(()) } else { write!(f, " none") }
        };
        let choice = match self.0 {
            Choice::Off => "off",
            Choice::Auto => "auto",
            Choice::On => "on",
        };
        write!(f, "mitigations={choice}; built and needed:")?;
        names(f, &mut self.1.iter_names().map(|(name, _)| name))?;
        write!(f, "; not prevented:")?;
        names(f, &mut self.2.iter_names().map(|(name, _)| name))
    }
}

#[cfg(test)]
mod tests;
