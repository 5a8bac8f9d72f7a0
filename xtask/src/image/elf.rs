//! Reads an ELF file into what the image tool needs of it: the entry and the
//! loadable segments, checked once, here.
//!
//! The files come from a linker, but also from the command line (`--root FILE`),
//! so nothing in them is trusted. Every refusal names the file and says what to
//! change.

use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};
use object::LittleEndian;
use object::elf::{
    self, ELFCLASS64, ELFDATA2LSB, EM_X86_64, ET_DYN, ET_EXEC, FileHeader64, PF_W, PF_X, PT_LOAD,
};
use object::read::elf::{FileHeader, ProgramHeader};

/// Bytes of an ELF64 file header.
const FILE_HEADER_BYTES: usize = 64;

/// One loadable segment with memory behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Physical load address (`p_paddr`).
    pub phys: u64,
    /// Virtual address (`p_vaddr`).
    pub virt: u64,
    /// The bytes that the file holds.
    pub bytes: Vec<u8>,
    /// Bytes in memory; the rest is zero.
    pub mem_bytes: u64,
    /// May be written.
    pub writable: bool,
    /// May be executed.
    pub executable: bool,
}

impl Segment {
    /// The virtual addresses that the segment covers.
    #[must_use]
    pub fn virt_range(&self) -> Range<u64> {
        self.virt..self.virt + self.mem_bytes
    }

    /// The physical addresses that the segment covers.
    #[must_use]
    pub fn phys_range(&self) -> Range<u64> {
        self.phys..self.phys + self.mem_bytes
    }
}

/// A checked executable: segments in ascending virtual order, none overlapping.
#[derive(Clone, Debug)]
pub struct Executable {
    /// What messages call it.
    pub name: String,
    /// Entry point (virtual).
    pub entry: u64,
    /// The segments, at least one.
    pub segments: Vec<Segment>,
}

impl Executable {
    /// Parses `data`; `name` appears in every message.
    ///
    /// # Errors
    /// A sentence when the file is not a static x86-64 executable with sound
    /// segments and an entry point inside one of them.
    pub fn parse(name: &str, data: &[u8]) -> Result<Self> {
        let header = file_header(name, data)?;
        let mut segments = load_segments(name, header, data)?;
        ensure!(
            !segments.is_empty(),
            "{name} has no loadable segment (PT_LOAD); check its linker script"
        );
        segments.sort_by_key(|segment| segment.virt);
        refuse_overlap(name, &segments)?;
        let entry = header.e_entry(LittleEndian);
        ensure!(
            segments.iter().any(|s| s.virt_range().contains(&entry)),
            "the entry point {entry:#x} of {name} lies in none of its segments; \
             set it with ENTRY(_start) in the linker script"
        );
        Ok(Self { name: name.to_owned(), entry, segments })
    }

    /// The physical range from the first to the last loaded byte.
    #[must_use]
    pub fn phys_span(&self) -> Range<u64> {
        let low = self.segments.iter().map(|s| s.phys).min().unwrap_or(0);
        let high = self.segments.iter().map(|s| s.phys_range().end).max().unwrap_or(0);
        low..high
    }
}

/// Checks identification, machine and type.
fn file_header<'a>(name: &str, data: &'a [u8]) -> Result<&'a FileHeader64<LittleEndian>> {
    ensure!(
        data.len() >= FILE_HEADER_BYTES,
        "{name} is too short for an ELF file ({} bytes; the header alone has {FILE_HEADER_BYTES})",
        data.len()
    );
    ensure!(data.starts_with(&elf::ELFMAG), "{name} is not an ELF file (its first bytes differ)");
    ensure!(
        data[4] == ELFCLASS64.0 && data[5] == ELFDATA2LSB.0,
        "{name} is not a little-endian 64-bit ELF file; compile it for x86-64"
    );
    let header = FileHeader64::<LittleEndian>::parse(data)
        .with_context(|| format!("{name} has a broken ELF header"))?;
    let machine = header.e_machine(LittleEndian);
    ensure!(
        machine == EM_X86_64,
        "{name} is for machine type {}, not for x86-64 ({})",
        machine.0,
        EM_X86_64.0
    );
    match header.e_type(LittleEndian) {
        ET_EXEC => Ok(header),
        ET_DYN => bail!(
            "{name} is position independent (ET_DYN); link it statically \
             (-static -no-pie, or -Crelocation-model=static)"
        ),
        other => bail!("{name} is not an executable (ELF type {}); link it first", other.0),
    }
}

/// The PT_LOAD segments that occupy memory.
fn load_segments(
    name: &str,
    header: &FileHeader64<LittleEndian>,
    data: &[u8],
) -> Result<Vec<Segment>> {
    let headers = header
        .program_headers(LittleEndian, data)
        .with_context(|| format!("{name} is truncated: its program headers lie beyond its end"))?;
    headers
        .iter()
        .filter(|ph| ph.p_type(LittleEndian) == PT_LOAD && ph.p_memsz(LittleEndian) > 0)
        .map(|ph| segment(name, ph, data))
        .collect()
}

/// One segment, its bytes copied.
fn segment(
    name: &str,
    header: &elf::ProgramHeader64<LittleEndian>,
    data: &[u8],
) -> Result<Segment> {
    let (virt, phys) = (header.p_vaddr(LittleEndian), header.p_paddr(LittleEndian));
    let (file_bytes, mem_bytes) = (header.p_filesz(LittleEndian), header.p_memsz(LittleEndian));
    let Ok(bytes) = header.data(LittleEndian, data) else {
        bail!(
            "{name} is truncated: the segment at {virt:#x} wants {file_bytes} bytes at file \
             offset {}, but the file has {}",
            header.p_offset(LittleEndian),
            data.len()
        );
    };
    ensure!(
        file_bytes <= mem_bytes,
        "the segment at {virt:#x} of {name} has more bytes in the file ({file_bytes}) than in \
         memory ({mem_bytes})"
    );
    ensure!(
        virt.checked_add(mem_bytes).is_some() && phys.checked_add(mem_bytes).is_some(),
        "the segment at {virt:#x} of {name} runs beyond the end of the address space"
    );
    let flags = header.p_flags(LittleEndian);
    Ok(Segment {
        phys,
        virt,
        bytes: bytes.to_vec(),
        mem_bytes,
        writable: flags.contains(PF_W),
        executable: flags.contains(PF_X),
    })
}

/// Refuses two segments on the same virtual address; `segments` are sorted.
fn refuse_overlap(name: &str, segments: &[Segment]) -> Result<()> {
    for pair in segments.windows(2) {
        ensure!(
            pair[0].virt_range().end <= pair[1].virt,
            "two segments of {name} overlap: {:#x?} and {:#x?}; check its linker script",
            pair[0].virt_range(),
            pair[1].virt_range()
        );
    }
    Ok(())
}
