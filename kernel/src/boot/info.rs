//! What a boot loader told us, in one form for all loaders.

use core::fmt;

use abi::Framebuffer;
use abi::framebuffer::Defect;

use super::memory::{PhysicalMemory, Range, Regions};

/// Which loader started the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loader {
    /// PVH (QEMU's -kernel).
    Pvh,
    /// Multiboot2 (GRUB).
    Multiboot2,
}

impl fmt::Display for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pvh => "PVH",
            Self::Multiboot2 => "multiboot2",
        })
    }
}

/// The most bytes of the command line that are kept.
pub const COMMAND_LINE_BYTES: usize = 512;

/// The kernel's command line: printable ASCII.
#[derive(Clone, Debug)]
pub struct CommandLine {
    bytes: [u8; COMMAND_LINE_BYTES],
    len: usize,
}

impl CommandLine {
    /// Nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; COMMAND_LINE_BYTES], len: 0 }
    }

    /// The zero-terminated text at physical address `start`, as far as it can be
    /// read and kept. Bytes that are not printable become spaces.
    #[must_use]
    pub fn read(memory: &impl PhysicalMemory, start: u64) -> Self {
        let mut line = Self::new();
        let byte_at = |index: usize| {
            let address = start.checked_add(index as u64)?;
            memory.bytes(Range::sized(address, 1)?)?.first().copied()
        };
        for (index, slot) in line.bytes.iter_mut().enumerate() {
            match byte_at(index) {
                None | Some(0) => break,
                Some(byte) => *slot = if byte.is_ascii_graphic() { byte } else { b' ' },
            }
            line.len = index + 1;
        }
        line
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        core::str::from_utf8(self.bytes.get(..self.len).unwrap_or_default()).unwrap_or_default()
    }

    /// Whether the word `word` is there.
    #[must_use]
    pub fn has_word(&self, word: &str) -> bool {
        self.text().split(' ').any(|other| other == word)
    }

    /// The value of the last option `name=value`.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        let pairs = self.text().split(' ').filter_map(|word| word.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next_back()
    }

    /// The value of `name=SIZE`: bytes, or with suffix K, M or G.
    #[must_use]
    pub fn size_option(&self, name: &str) -> Option<u64> {
        let value = self.option(name)?;
        let (digits, shift) = match value.as_bytes().last()? {
            b'k' | b'K' => (&value[..value.len() - 1], 10),
            b'm' | b'M' => (&value[..value.len() - 1], 20),
            b'g' | b'G' => (&value[..value.len() - 1], 30),
            _ => (value, 0),
        };
        digits.parse::<u64>().ok()?.checked_mul(1 << shift)
    }
}

impl Default for CommandLine {
    fn default() -> Self {
        Self::new()
    }
}

/// Everything that the kernel takes from a loader.
#[derive(Clone, Debug)]
pub struct BootInfo {
    /// Who loaded the kernel.
    pub loader: Loader,
    /// The machine's memory.
    pub regions: Regions,
    /// Physical range of the boot image: the first module; empty if there is none.
    pub image: Range,
    /// The kernel's command line.
    pub command_line: CommandLine,
    /// ACPI's root table, if the loader passed a sound pointer to it.
    pub acpi: Option<super::acpi::RootTable>,
    /// The picture that the loader has set up, if it has, and if that can be true.
    pub framebuffer: Option<Result<Framebuffer, Defect>>,
}

impl BootInfo {
    /// Nothing known yet.
    #[must_use]
    pub const fn new(loader: Loader) -> Self {
        Self {
            loader,
            regions: Regions::new(),
            image: Range::EMPTY,
            command_line: CommandLine::new(),
            acpi: None,
            framebuffer: None,
        }
    }

    /// The loader's picture, if it can be used.
    #[must_use]
    pub fn screen(&self) -> Option<Framebuffer> {
        self.framebuffer?.ok()
    }
}

/// Why a loader's information is unusable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoaderError {
    /// The entry code passed a protocol number that does not exist.
    Protocol(u32),
    /// The information lies where it cannot be read.
    Unreadable(u64),
    /// The information does not start as it must.
    Magic(u64),
    /// There is no memory map.
    NoMemoryMap,
}

impl fmt::Display for LoaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol(number) => {
                write!(f, "the entry code named the unknown boot protocol {number}")
            }
            Self::Unreadable(address) => {
                write!(
                    f,
                    "its information at {address:#x} cannot be read; it must lie below 4 GiB and be whole"
                )
            }
            Self::Magic(found) => {
                write!(f, "its information starts with {found:#x}, which no known version does")
            }
            Self::NoMemoryMap => f.write_str("it passed no memory map; use one that does"),
        }
    }
}

/// Little-endian words out of bytes that may be too short.
pub(super) mod field {
    /// The 32-bit word at byte `at`.
    #[must_use]
    pub fn u32(bytes: &[u8], at: usize) -> Option<u32> {
        let end = at.checked_add(4)?;
        Some(u32::from_le_bytes(bytes.get(at..end)?.try_into().ok()?))
    }

    /// The 64-bit word at byte `at`.
    #[must_use]
    pub fn u64(bytes: &[u8], at: usize) -> Option<u64> {
        let end = at.checked_add(8)?;
        Some(u64::from_le_bytes(bytes.get(at..end)?.try_into().ok()?))
    }
}
