//! Which words of a linked file are absolute addresses of what moves: those of the kernel, which
//! boot moves, and of programs, which the root task moves.
//!
//! The linker leaves what it resolved in the file (`--emit-relocs`). An address that counts
//! names something in the linked image and is absolute, of four or eight bytes; or is a word of
//! the table through which code finds what is elsewhere, for which there is no relocation, but
//! one for each instruction that looks there.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use anyhow::{Context, Result, bail, ensure};
use object::elf::{
    R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_GOTPCREL, R_X86_64_GOTPCRELX, R_X86_64_PC32,
    R_X86_64_PLT32, R_X86_64_REX_GOTPCRELX,
};
use object::read::elf::ElfFile64;
use object::{
    LittleEndian, Object, ObjectSection, ObjectSymbol, Relocation, RelocationFlags,
    RelocationTarget, SectionKind,
};

/// A word that is no place, but so many bytes of way.
const LONG_WAY: (u16, u64) = (u16::MAX, u16::MAX as u64 - 1);

/// A file that was read.
pub type Elf<'data> = ElfFile64<'data, LittleEndian>;

/// A linked file, and which of it moves.
pub struct Linked<'data> {
    /// What messages call it.
    pub name: &'data str,
    /// The file.
    pub elf: Elf<'data>,
    /// The addresses that are looked at.
    pub loaded: RangeInclusive<u64>,
    /// Those that move, together.
    pub moves: RangeInclusive<u64>,
    /// What an address of four bytes without a sign is.
    pub short: Short,
}

/// What `R_X86_64_32` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// An address like others.
    Moves,
    /// A physical address: what is named was brought down by the whole distance.
    Stays,
}

/// The list of a program's places, as the root task reads it, counted from one byte before
/// the program; only its end if the program has to stay where it was linked.
///
/// # Errors
/// When the file has a relocation that is not known, or code that finds something by its distance
/// that does not move with it.
pub fn of_program(name: &str, data: &[u8], range: RangeInclusive<u64>) -> Result<Vec<u16>> {
    let elf = Elf::parse(data).with_context(|| format!("{name} is no ELF file"))?;
    let start = range.start() - 1;
    let linked = Linked { name, elf, loaded: range.clone(), moves: range, short: Short::Moves };
    Ok(encode(&linked.places()?, start))
}

impl Linked<'_> {
    /// The addresses of all words that change when what moves does.
    ///
    /// # Errors
    /// As [`of_program`].
    pub fn places(&self) -> Result<BTreeSet<u64>> {
        let mut places = BTreeSet::new();
        for section in self.elf.sections().filter(|section| self.is_loaded(section)) {
            for (at, relocation) in section.relocations() {
                if let Some(place) = self.place(&section, at, &relocation)? {
                    places.insert(place);
                }
            }
        }
        Ok(places)
    }

    fn is_loaded<'data>(&self, section: &impl ObjectSection<'data>) -> bool {
        use SectionKind::{Data, ReadOnlyData, Text};
        let holds = matches!(section.kind(), Text | Data | ReadOnlyData);
        holds && self.loaded.contains(&section.address())
    }

    /// The address of the word that changes because of `relocation` at address `at`, if one does.
    fn place<'data>(
        &self,
        section: &impl ObjectSection<'data>,
        at: u64,
        relocation: &Relocation,
    ) -> Result<Option<u64>> {
        let name = self.name;
        let RelocationTarget::Symbol(index) = relocation.target() else { return Ok(None) };
        let symbol = self.elf.symbol_by_index(index)?;
        let RelocationFlags::Elf { r_type, .. } = relocation.flags() else {
            bail!("{name} has a relocation at {at:#x} that is not an ELF file's");
        };
        let is_absolute = symbol.section_index().is_none();
        let moves = self.moves.contains(&symbol.address()) && !is_absolute;
        match r_type {
            R_X86_64_64 | R_X86_64_32S => Ok(moves.then_some(at)),
            R_X86_64_32 => Ok((moves && self.short == Short::Moves).then_some(at)),
            R_X86_64_PC32 | R_X86_64_PLT32 => {
                ensure!(
                    moves == self.moves.contains(&at),
                    "the code of {name} at {at:#x} and {} are on two sides of what moves: the way \
                     between them must be an absolute address",
                    symbol.name().unwrap_or("what it names")
                );
                Ok(None)
            }
            R_X86_64_GOTPCREL | R_X86_64_GOTPCRELX | R_X86_64_REX_GOTPCRELX => {
                self.looked_up(section, at, moves.then(|| symbol.address()))
            }
            other => {
                bail!("{name} has a relocation at {at:#x} of a kind ({other:?}) that is unknown")
            }
        }
    }

    /// The word of the table that the instruction with its displacement at `at` looks into, if
    /// what it finds there is `target`: the linker may have done without the table.
    fn looked_up<'data>(
        &self,
        section: &impl ObjectSection<'data>,
        at: u64,
        target: Option<u64>,
    ) -> Result<Option<u64>> {
        let name = self.name;
        let displacement = section
            .data_range(at, 4)?
            .and_then(|bytes| bytes.try_into().ok())
            .map(i32::from_le_bytes)
            .with_context(|| {
                format!("the relocation of {name} at {at:#x} is beyond its section")
            })?;
        let slot = at.wrapping_add(4).wrapping_add_signed(i64::from(displacement));
        let Some(target) = target else { return Ok(None) };
        if self.word(slot) == Some(target) {
            return Ok(Some(slot));
        }
        // Instead of a look into the table the instruction may have the address itself now, as
        // its displacement, which is right wherever the image is.
        ensure!(
            slot == target,
            "the instruction of {name} with a displacement at {at:#x} finds {target:#x} in a way \
             that is unknown"
        );
        Ok(None)
    }

    /// The word at `address`.
    fn word(&self, address: u64) -> Option<u64> {
        let holder = self.elf.sections().find(|section| {
            (section.address()..section.address() + section.size()).contains(&address)
                && self.is_loaded(section)
        })?;
        let bytes = holder.data_range(address, 8).ok().flatten()?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// The list as boot and the root task read it: each place by its distance from the last one, the
/// first one from `start`, and a zero.
#[must_use]
pub fn encode(places: &BTreeSet<u64>, start: u64) -> Vec<u16> {
    let (mut list, mut last) = (Vec::new(), start);
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

    const START: u64 = 0x20_0000;

    /// As `boot_move` in `boot.S` reads it.
    fn decode(list: &[u16]) -> Vec<u64> {
        let (mut places, mut at) = (Vec::new(), START);
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
        let mut at = START;
        let places: BTreeSet<u64> = ways
            .iter()
            .map(|way| {
                at += way;
                at
            })
            .collect();
        let list = encode(&places, START);
        assert_eq!(decode(&list), places.into_iter().collect::<Vec<_>>());
        assert_eq!(list.iter().filter(|&&word| word == 0).count(), 1);
    }
}
