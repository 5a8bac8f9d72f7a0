//! ELF files laid out by hand, for the tests of the image tool and of what uses it.

use super::PAGE;

/// A segment of a hand-made ELF file.
#[derive(Clone)]
pub struct Part {
    pub virt: u64,
    pub phys: u64,
    pub bytes: Vec<u8>,
    pub mem: u64,
    pub flags: u32,
}

pub const X: u32 = 1;
pub const W: u32 = 2;
pub const R: u32 = 4;

/// A segment whose physical address is its virtual one.
pub fn part(at: u64, bytes: &[u8], mem: u64, flags: u32) -> Part {
    Part { virt: at, phys: at, bytes: bytes.to_vec(), mem, flags }
}

/// A static x86-64 executable: header, program headers, contents.
pub fn elf_file(entry: u64, parts: &[Part]) -> Vec<u8> {
    let mut file = vec![0x7F, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend(2u16.to_le_bytes()); // ET_EXEC
    file.extend(62u16.to_le_bytes()); // x86-64
    file.extend(1u32.to_le_bytes());
    file.extend(entry.to_le_bytes());
    file.extend(64u64.to_le_bytes()); // program headers
    file.extend(0u64.to_le_bytes()); // section headers
    file.extend(0u32.to_le_bytes());
    for half in [64u16, 56, parts.len() as u16, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    let mut offset = 64 + 56 * parts.len() as u64;
    for part in parts {
        file.extend(1u32.to_le_bytes()); // PT_LOAD
        file.extend(part.flags.to_le_bytes());
        for word in [offset, part.virt, part.phys, part.bytes.len() as u64, part.mem, PAGE] {
            file.extend(word.to_le_bytes());
        }
        offset += part.bytes.len() as u64;
    }
    for part in parts {
        file.extend(&part.bytes);
    }
    file
}
