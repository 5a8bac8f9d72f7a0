//! The list of the addresses in the kernel's image that depend on where it is: boot moves the
//! image to a random place, and adds the distance to each (`kernel/src/arch/x86_64/place.rs`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use object::elf::{SHT_RELA, SectionHeader64};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};

use crate::image::places::{Elf, Linked, Short, encode};

/// What is linked above this moves; the rest is boot's, at its physical address.
const MOVES: u64 = 0xFFFF_FFFF_8000_0000;
/// The physical address that the list counts from.
const LOAD: u64 = 0x20_0000;
/// The section that has room for the list is filled; its symbol.
const LIST: &str = "boot_places";

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
        let (room, relocations) = (room(&elf)?, relocations(&elf));
        (encode(&places(elf)?, LOAD), room, relocations)
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
fn places(elf: Elf<'_>) -> Result<BTreeSet<u64>> {
    let (loaded, moves) = (LOAD..=u64::MAX, MOVES..=u64::MAX);
    let linked = Linked { name: "the kernel", elf, loaded, moves, short: Short::Stays };
    let places = linked.places()?;
    ensure!(!places.is_empty(), "the kernel was linked without --emit-relocs");
    Ok(places.into_iter().map(physical).collect())
}

const fn physical(address: u64) -> u64 {
    if address >= MOVES { address - MOVES } else { address }
}
