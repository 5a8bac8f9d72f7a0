//! What the checker needs of an ELF file: bytes by address, symbols, relocations,
//! needed libraries.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use object::elf::{R_X86_64_IRELATIVE, R_X86_64_RELATIVE, RelocationType};
use object::read::elf::ElfFile64;
use object::{
    LittleEndian, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags,
    RelocationTarget, SectionKind, SymbolKind,
};

/// The addend is an address.
const ADDRESS_RELOCATIONS: [RelocationType; 2] = [R_X86_64_RELATIVE, R_X86_64_IRELATIVE];
const DT_NEEDED: u64 = 1;

/// A piece of memory.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its addresses.
    pub range: Range<u64>,
    /// Its bytes; none if it is all zero.
    pub bytes: Vec<u8>,
    /// Whether it is code.
    pub code: bool,
}

/// What the loader puts into a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filled {
    /// An address in the same file.
    Address(u64),
    /// The address of a symbol, here or elsewhere.
    Symbol(String),
}

/// A program, its interpreter, or a library.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// What messages call it.
    pub name: String,
    /// Where it starts.
    pub entry: u64,
    /// Sections with memory behind them, by address.
    pub sections: Vec<Section>,
    /// Functions and objects that others can name (or, unstripped, all).
    pub symbols: BTreeMap<String, u64>,
    /// Words that the loader fills.
    pub filled: BTreeMap<u64, Filled>,
    /// Addresses at which functions run before and after the program.
    pub at_start: Vec<u64>,
    /// File names of libraries.
    pub needed: Vec<String>,
    /// The interpreter's path.
    pub interpreter: Option<PathBuf>,
    /// Whether words of memory can be addresses without the loader's doing.
    pub fixed: bool,
}

impl Image {
    /// Reads the file.
    ///
    /// # Errors
    /// A sentence when it is no ELF file for this processor.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self::parse(&name, &bytes).with_context(|| format!("{} cannot be checked", path.display()))
    }

    fn parse(name: &str, bytes: &[u8]) -> Result<Self> {
        let file = ElfFile64::<LittleEndian>::parse(bytes).context("it is no 64-bit ELF file")?;
        ensure!(
            file.architecture() == object::Architecture::X86_64,
            "it is made for another processor than x86-64"
        );
        let mut image = Self {
            name: name.to_owned(),
            entry: file.entry(),
            fixed: file.kind() == object::ObjectKind::Executable,
            ..Self::default()
        };
        image.take_sections(&file)?;
        image.take_symbols(&file);
        image.take_relocations(&file);
        image.needed = needed(&file)?;
        image.interpreter = file.section_by_name(".interp").and_then(|section| {
            let bytes = section.data().ok()?;
            let text = String::from_utf8_lossy(bytes);
            Some(PathBuf::from(text.trim_end_matches('\0')))
        });
        Ok(image)
    }

    fn take_sections(&mut self, file: &ElfFile64<'_, LittleEndian>) -> Result<()> {
        for section in file.sections().filter(|section| section.address() != 0) {
            let name = section.name().unwrap_or_default();
            if section.kind() == SectionKind::Other && !name.starts_with('.') {
                continue;
            }
            let range = section.address()..section.address() + section.size();
            if [".init", ".fini"].contains(&name) {
                self.at_start.push(range.start);
            } else if [".init_array", ".fini_array", ".preinit_array"].contains(&name) {
                self.at_start.extend(range.clone().step_by(8));
            }
            let bytes = section.data().context("a section reaches beyond the file")?.to_vec();
            let code = section.kind() == SectionKind::Text;
            self.sections.push(Section { range, bytes, code });
        }
        self.sections.sort_by_key(|section| section.range.start);
        Ok(())
    }

    fn take_symbols(&mut self, file: &ElfFile64<'_, LittleEndian>) {
        for symbol in file.dynamic_symbols().chain(file.symbols()) {
            let is_here = symbol.is_definition()
                && matches!(
                    symbol.kind(),
                    SymbolKind::Text | SymbolKind::Data | SymbolKind::Unknown
                );
            if let (true, Ok(name)) = (is_here, symbol.name()) {
                self.symbols.entry(name.to_owned()).or_insert_with(|| symbol.address());
            }
        }
    }

    fn take_relocations(&mut self, file: &ElfFile64<'_, LittleEndian>) {
        use object::ObjectSymbolTable as _;
        let table = file.dynamic_symbol_table();
        for (at, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let filled = match relocation.target() {
                _ if ADDRESS_RELOCATIONS.contains(&r_type) => {
                    Some(Filled::Address(relocation.addend() as u64))
                }
                RelocationTarget::Symbol(index) => table
                    .and_then(|table| table.symbol_by_index(index).ok())
                    .and_then(|symbol| symbol.name().ok().map(str::to_owned))
                    .map(Filled::Symbol),
                _ => None,
            };
            if let Some(filled) = filled {
                self.filled.insert(at, filled);
            }
        }
    }

    /// Whether `address` is in one of the sections.
    #[must_use]
    pub fn has(&self, address: u64) -> bool {
        self.section(address).is_some()
    }

    /// The section at `address`.
    #[must_use]
    pub fn section(&self, address: u64) -> Option<&Section> {
        let index = self.sections.partition_point(|section| section.range.start <= address);
        let section = self.sections.get(index.checked_sub(1)?)?;
        section.range.contains(&address).then_some(section)
    }
}

/// The names in `.dynamic`.
fn needed(file: &ElfFile64<'_, LittleEndian>) -> Result<Vec<String>> {
    let data = |name| file.section_by_name(name).and_then(|section| section.data().ok());
    let (Some(dynamic), Some(strings)) = (data(".dynamic"), data(".dynstr")) else {
        return Ok(Vec::new());
    };
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let entries = dynamic.chunks_exact(16).map(|entry| (word(&entry[..8]), word(&entry[8..])));
    let mut names = Vec::new();
    for (_, at) in entries.filter(|(tag, _)| *tag == DT_NEEDED) {
        let rest = strings.get(at as usize..).context("a library's name is outside the names")?;
        let name = rest.split(|byte| *byte == 0).next().unwrap_or_default();
        names.push(String::from_utf8_lossy(name).into_owned());
    }
    Ok(names)
}
