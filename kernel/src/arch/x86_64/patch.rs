//! Instructions that only some processors need: assembled in place, and replaced by
//! no-operations at boot where they would be wrong or useless.
//!
//! A site is written with the macro `patch_site` of `patch.S`, which notes it in the
//! section `.patches`. Paths that only some mitigations need leave the main line by a jump
//! that is written over it (`divert`). [`apply`] runs once, before the kernel's own page tables make the
//! text read-only.

use super::apic_kind::Kind;
use super::features::Features;
use super::mitigations::Actions;

/// A condition beside [`Actions`]: the processor lacks an instruction of the fast paths, and
/// all calls take the complete one.
pub const LACKS_FAST: u32 = 1 << 31;
/// Another one: local APICs have no page of registers.
pub const X2APIC: u32 = 1 << 30;
const _: () = assert!(Actions::all().bits() & (LACKS_FAST | X2APIC) == 0);

/// What the fast paths execute without asking.
#[cfg(any(test, target_os = "none"))]
const FAST: Features = Features::FSGSBASE.union(Features::XSAVE);

/// The conditions of diverts that hold.
#[cfg(any(test, target_os = "none"))]
fn conditions(features: Features, actions: Actions, apics: Kind) -> u64 {
    let lacks = if features.contains(FAST) { 0 } else { LACKS_FAST };
    let x2 = if apics == Kind::X2 { X2APIC } else { 0 };
    u64::from(actions.bits() | lacks | x2)
}

/// A note about a site (`patch_site`).
#[cfg(any(test, target_os = "none"))]
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Site {
    /// Address of its first byte.
    address: u64,
    /// Bytes of its instructions.
    bytes: u32,
    /// The feature that it needs, a bit of [`Features`].
    feature: u32,
}

/// A note about code that can be diverted (`divert` of `patch.S`).
#[cfg(target_os = "none")]
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Divert {
    /// Address of its first byte.
    address: u64,
    /// Where it leads to instead.
    target: u64,
    /// For which of [`Actions`], or for [`LACKS_FAST`].
    conditions: u64,
}

/// The bytes of a jump, or of a call, if a call was there, from `address` to `target`.
#[cfg(any(test, target_os = "none"))]
fn detour(address: u64, target: u64, first: u8) -> [u8; 5] {
    const CALL: u8 = 0xE8;
    const JUMP: u8 = 0xE9;
    let [a, b, c, d] = (target.wrapping_sub(address + 5) as u32).to_le_bytes();
    [if first == CALL { CALL } else { JUMP }, a, b, c, d]
}

/// The no-operation of `index + 1` bytes (Intel SDM 2B, NOP).
#[cfg(any(test, target_os = "none"))]
const NOPS: [&[u8]; 8] = [
    &[0x90],
    &[0x66, 0x90],
    &[0x0F, 0x1F, 0x00],
    &[0x0F, 0x1F, 0x40, 0x00],
    &[0x0F, 0x1F, 0x44, 0x00, 0x00],
    &[0x66, 0x0F, 0x1F, 0x44, 0x00, 0x00],
    &[0x0F, 0x1F, 0x80, 0x00, 0x00, 0x00, 0x00],
    &[0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
];

/// Fills `code` with as few no-operations as there can be.
#[cfg(any(test, target_os = "none"))]
fn erase(code: &mut [u8]) {
    for piece in code.chunks_mut(NOPS.len()) {
        piece.copy_from_slice(NOPS[piece.len() - 1]);
    }
}

#[cfg(target_os = "none")]
unsafe extern "C" {
    static kernel_patches_start: Site;
    static kernel_patches_end: Site;
    static kernel_diverts_start: Divert;
    static kernel_diverts_end: Divert;
    static kernel_bases_start: u64;
    static kernel_bases_end: u64;
}

/// Diverts the code that `actions` need to be diverted, without `features` that it needs
/// the fast paths, and, if local `apics` have no page, what writes to it.
///
/// # Safety
/// Once, while the kernel's text can be written and before any of it runs.
#[cfg(target_os = "none")]
pub unsafe fn divert(features: Features, actions: Actions, apics: Kind) {
    let conditions = conditions(features, actions, apics);
    let (first, end) = (&raw const kernel_diverts_start, &raw const kernel_diverts_end);
    // SAFETY: the linker script puts the notes between the two symbols, aligned.
    let notes = unsafe { core::slice::from_raw_parts(first, end.offset_from_unsigned(first)) };
    for note in notes.iter().filter(|note| conditions & note.conditions != 0) {
        let code = note.address as *mut [u8; 5];
        // SAFETY: the note names five bytes of the kernel's text; the caller vouches for the rest.
        unsafe { code.write(detour(note.address, note.target, (*code)[0])) };
    }
}

/// On the host there is nothing to divert.
///
/// # Safety
/// None needed.
#[cfg(not(target_os = "none"))]
pub unsafe fn divert(_features: Features, _actions: Actions, _apics: Kind) {}

/// Writes `base` wherever the kernel's text has the base of the map of physical memory.
///
/// # Safety
/// Once, while the kernel's text can be written; nobody has asked `physmap::base` yet, and
/// nobody does before the map is there.
#[cfg(target_os = "none")]
pub unsafe fn set_base(base: u64) {
    let (first, end) = (&raw const kernel_bases_start, &raw const kernel_bases_end);
    // SAFETY: the linker script puts the notes, addresses of constants, between the symbols.
    let places = unsafe { core::slice::from_raw_parts(first, end.offset_from_unsigned(first)) };
    for place in places {
        // SAFETY: as above; the caller vouches for the rest. Constants are not aligned.
        unsafe { (*place as *mut u64).write_unaligned(base) };
    }
}

/// On the host the map is where it is.
///
/// # Safety
/// None needed.
#[cfg(not(target_os = "none"))]
pub unsafe fn set_base(_base: u64) {}

/// Erases the sites whose feature is not among `features`.
///
/// # Safety
/// Once, while the kernel's text can be written and before any site runs.
#[cfg(target_os = "none")]
pub unsafe fn apply(features: Features) {
    let (first, end) = (&raw const kernel_patches_start, &raw const kernel_patches_end);
    let count = (end as usize - first as usize) / size_of::<Site>();
    // SAFETY: the linker script puts the notes between the two symbols, aligned.
    let sites = unsafe { core::slice::from_raw_parts(first, count) };
    for site in sites.iter().filter(|site| features.bits() & site.feature == 0) {
        // SAFETY: the note names instructions of the kernel; the caller vouches for the rest.
        erase(unsafe {
            core::slice::from_raw_parts_mut(site.address as *mut u8, site.bytes as usize)
        });
    }
}

/// On the host there is nothing to patch.
///
/// # Safety
/// None needed.
#[cfg(not(target_os = "none"))]
pub unsafe fn apply(_features: Features) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detours_lead_where_they_should() {
        assert_eq!(detour(0x1000, 0x1005, 0x48), [0xE9, 0, 0, 0, 0]);
        assert_eq!(detour(0x1000, 0x0FFF, 0xE8), [0xE8, 0xFA, 0xFF, 0xFF, 0xFF]);
    }

    #[test]
    fn fast_paths_are_left_where_an_instruction_is_missing() {
        let needed = FAST | Features::NX;
        assert_eq!(conditions(needed, Actions::empty(), Kind::Page), 0);
        assert_eq!(conditions(needed, Actions::empty(), Kind::X2), X2APIC.into());
        for missing in FAST.iter() {
            let found = conditions(needed - missing, Actions::VERW, Kind::Page);
            assert_eq!(found, u64::from(LACKS_FAST | Actions::VERW.bits()));
        }
    }

    #[test]
    fn no_operations_have_the_length_they_are_listed_under() {
        for (index, nop) in NOPS.into_iter().enumerate() {
            assert_eq!(nop.len(), index + 1);
        }
        let mut code = [0xCC; 11];
        erase(&mut code);
        assert_eq!(code[..8], *NOPS[7]);
        assert_eq!(code[8..], *NOPS[2]);
        assert_eq!(size_of::<Site>(), 16);
    }
}
