//! The list of the addresses in the kernel's image that depend on where it is: boot moves the
//! image to a random place, and adds the distance to each (`kernel/src/arch/x86_64/place.rs`).
//!
//! The linker leaves what it resolved in the file (`--emit-relocs`). An address that counts
//! names something in the linked image and is absolute, of four or eight bytes; or is a word of
//! the table through which code finds what is elsewhere, for which there is no relocation, but
//! one for each instruction that looks there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use object::elf::{
    R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_GOTPCREL, R_X86_64_GOTPCRELX, R_X86_64_PC32,
    R_X86_64_PLT32, R_X86_64_REX_GOTPCRELX, SHT_RELA, SectionHeader64,
};
use object::read::elf::ElfFile64;
use object::{
    LittleEndian, Object, ObjectSection, ObjectSymbol, Relocation, RelocationFlags,
    RelocationTarget, SectionKind,
};

/// What is linked above this moves; the rest is boot's, at its physical address.
const MOVES: u64 = 0xFFFF_FFFF_8000_0000;
/// The physical address that the list counts from.
const LOAD: u64 = 0x20_0000;
/// The section that has room for the list is filled; its symbol.
const LIST: &str = "boot_places";
/// A word that is no place, but so many bytes of way.
const LONG_WAY: (u16, u64) = (u16::MAX, u16::MAX as u64 - 1);

type Elf<'data> = ElfFile64<'data, LittleEndian>;

/// Writes the kernel at `linked` with its list filled in beside it; returns that file.
///
/// # Errors
/// When the file is not as the kernel's linker script makes it, or the list does not fit.
pub fn fill(linked: &Path) -> Result<PathBuf> {
    let to = linked.with_extension("elf");
    let mut data = std::fs::read(linked)
        .with_context(|| format!("the kernel {} cannot be read", linked.display()))?;
    let (list, room, relocations) = {
        let elf = Elf::parse(&*data).context("the kernel is no ELF file")?;
        (encode(&places(&elf)?), room(&elf)?, relocations(&elf))
    };
    let bytes: Vec<u8> = list.iter().flat_map(|word| word.to_le_bytes()).collect();
    ensure!(
        bytes.len() <= room.len(),
        "the kernel has {} bytes for the list of its addresses, which takes {}: raise \
         PLACES_BYTES in kernel/src/main.rs",
        room.len(),
        bytes.len()
    );
    data.get_mut(room)
        .and_then(|room| room.get_mut(..bytes.len()))
        .context("the kernel is truncated")?
        .copy_from_slice(&bytes);
    for header in relocations {
        data.get_mut(header).context("the kernel is truncated")?.fill(0);
    }
    if std::fs::read(&to).ok().as_deref() != Some(&*data) {
        std::fs::write(&to, &data).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(to)
}

/// Where in the file the headers of the sections of relocations are. These have been read, and
/// GRUB loads no file that has any.
fn relocations(elf: &Elf<'_>) -> Vec<std::ops::Range<usize>> {
    const HEADER: usize = size_of::<SectionHeader64<LittleEndian>>();
    let first = elf.elf_header().e_shoff.get(LittleEndian) as usize;
    let headers = (first..).step_by(HEADER).map(|at| at..at + HEADER);
    let sections = elf.elf_section_table().iter().zip(headers);
    let relocations = sections.filter(|(section, _)| section.sh_type.get(LittleEndian) == SHT_RELA);
    relocations.map(|(_, header)| header).collect()
}

/// Where in the file the list goes.
fn room(elf: &Elf<'_>) -> Result<std::ops::Range<usize>> {
    let symbol = elf
        .symbols()
        .find(|symbol| symbol.name() == Ok(LIST))
        .with_context(|| format!("the kernel has no symbol {LIST}"))?;
    let index = symbol.section_index().with_context(|| format!("{LIST} is in no section"))?;
    let section = elf.section_by_index(index)?;
    let (offset, size) = section.file_range().with_context(|| format!("{LIST} has no bytes"))?;
    let start = offset + (symbol.address() - section.address());
    Ok(start as usize..(start + bytes_of_list(elf, symbol.address())?).min(offset + size) as usize)
}

/// Bytes from the list's start to its end.
fn bytes_of_list(elf: &Elf<'_>, start: u64) -> Result<u64> {
    let end = elf.symbols().find(|symbol| symbol.name() == Ok("boot_places_end"));
    let end = end.context("the kernel has no symbol boot_places_end")?.address();
    end.checked_sub(start).context("the list of the kernel's addresses ends before it begins")
}

/// The physical addresses of all words that change when the image moves.
fn places(elf: &Elf<'_>) -> Result<BTreeSet<u64>> {
    let mut places = BTreeSet::new();
    for section in elf.sections().filter(|section| is_loaded(section.kind(), section.address())) {
        for (at, relocation) in section.relocations() {
            if let Some(place) = place(elf, &section, at, &relocation)? {
                places.insert(physical(place));
            }
        }
    }
    ensure!(!places.is_empty(), "the kernel was linked without --emit-relocs");
    Ok(places)
}

fn is_loaded(kind: SectionKind, address: u64) -> bool {
    let holds = matches!(kind, SectionKind::Text | SectionKind::Data | SectionKind::ReadOnlyData);
    holds && address >= LOAD
}

const fn physical(address: u64) -> u64 {
    if address >= MOVES { address - MOVES } else { address }
}

/// The address of the word that changes because of `relocation` at address `at`, if one does.
fn place<'data>(
    elf: &Elf<'data>,
    section: &impl ObjectSection<'data>,
    at: u64,
    relocation: &Relocation,
) -> Result<Option<u64>> {
    let RelocationTarget::Symbol(index) = relocation.target() else { return Ok(None) };
    let symbol = elf.symbol_by_index(index)?;
    let RelocationFlags::Elf { r_type, .. } = relocation.flags() else {
        bail!("the kernel has a relocation at {at:#x} that is not an ELF file's");
    };
    let is_absolute = symbol.section_index().is_none();
    let moves = symbol.address() >= MOVES && !is_absolute;
    match r_type {
        R_X86_64_64 | R_X86_64_32S => Ok(moves.then_some(at)),
        // A physical address: what is named was brought down by the whole distance.
        R_X86_64_32 => Ok(None),
        R_X86_64_PC32 | R_X86_64_PLT32 => {
            ensure!(
                moves == (at >= MOVES),
                "the kernel's code at {at:#x} and {} are on two sides of what moves: the way \
                 between them must be an absolute address",
                symbol.name().unwrap_or("what it names")
            );
            Ok(None)
        }
        R_X86_64_GOTPCREL | R_X86_64_GOTPCRELX | R_X86_64_REX_GOTPCRELX => {
            looked_up(elf, section, at, moves.then(|| symbol.address()))
        }
        other => {
            bail!("the kernel has a relocation at {at:#x} of a kind ({other:?}) that is unknown")
        }
    }
}

/// The word of the table that the instruction with its displacement at `at` looks into, if
/// what it finds there is `target`: the linker may have done without the table.
fn looked_up<'data>(
    elf: &Elf<'data>,
    section: &impl ObjectSection<'data>,
    at: u64,
    target: Option<u64>,
) -> Result<Option<u64>> {
    let word = |address: u64, bytes: u64| -> Option<Vec<u8>> {
        let holder = elf.sections().find(|holder| {
            (holder.address()..holder.address() + holder.size()).contains(&address)
                && is_loaded(holder.kind(), holder.address())
        })?;
        holder.data_range(address, bytes).ok().flatten().map(<[u8]>::to_vec)
    };
    let displacement = section
        .data_range(at, 4)?
        .and_then(|bytes| bytes.try_into().ok())
        .map(i32::from_le_bytes)
        .with_context(|| format!("the kernel's relocation at {at:#x} is beyond its section"))?;
    let slot = at.wrapping_add(4).wrapping_add_signed(i64::from(displacement));
    let Some(target) = target else { return Ok(None) };
    let found = word(slot, 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    if found == Some(target) { Ok(Some(slot)) } else { relaxed(at, slot, target) }
}

/// Instead of a look into the table the instruction may have the address itself now, as its
/// displacement, which is right wherever the image is.
fn relaxed(at: u64, slot: u64, target: u64) -> Result<Option<u64>> {
    ensure!(
        slot == target,
        "the kernel's instruction with a displacement at {at:#x} finds {target:#x} in a way that \
         is unknown"
    );
    Ok(None)
}

/// The list as boot reads it: each place by its distance from the last one, and a zero.
fn encode(places: &BTreeSet<u64>) -> Vec<u16> {
    let (mut list, mut last) = (Vec::new(), LOAD);
    for &place in places {
        let mut way = place - last;
        while way > LONG_WAY.1 {
            list.push(LONG_WAY.0);
            way -= LONG_WAY.1;
        }
        list.push(way as u16);
        last = place;
    }
    list.push(0);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `boot_move` in `boot.S` reads it.
    fn decode(list: &[u16]) -> Vec<u64> {
        let (mut places, mut at) = (Vec::new(), LOAD);
        for &word in list.iter().take_while(|&&word| word != 0) {
            if word == LONG_WAY.0 {
                at += LONG_WAY.1;
            } else {
                at += u64::from(word);
                places.push(at);
            }
        }
        places
    }

    #[test]
    fn the_list_leads_to_the_places() {
        let ways = [1, 8, 0xFFFD, 0xFFFE, 0xFFFF, 0x1_0000, 0x1_FFFC, 0x1_FFFD, 0x50_0000, 4];
        let mut at = LOAD;
        let places: BTreeSet<u64> = ways
            .iter()
            .map(|way| {
                at += way;
                at
            })
            .collect();
        let list = encode(&places);
        assert_eq!(decode(&list), places.into_iter().collect::<Vec<_>>());
        assert_eq!(list.iter().filter(|&&word| word == 0).count(), 1);
    }
}
