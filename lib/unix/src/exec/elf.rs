//! ELF files: their headers, checked. Whatever is wrong with a file is `ENOEXEC`.

use alloc::vec;
use alloc::vec::Vec;

use linux_raw_sys::elf as linux;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::image::Image;
use crate::errno::Errno;
use crate::machine::Access;
use crate::mm::{PAGE, USER_END, USER_START, page_of, page_up};

/// x86-64, in `e_machine`.
const EM_X86_64: u16 = 62;
/// A program at fixed addresses, in `e_type`.
const ET_EXEC: u16 = 2;
/// Most bytes of program headers.
const SEGMENTS_MAX: usize = 65536 / size_of::<Segment>();
/// Longest path of an interpreter, with its zero.
const PATH_MAX: u64 = 4096;

/// The ELF header.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Header {
    pub ident: [u8; 16],
    pub kind: u16,
    pub machine: u16,
    pub version: u32,
    pub entry: u64,
    pub segments_at: u64,
    pub sections_at: u64,
    pub flags: u32,
    pub size: u16,
    pub segment_size: u16,
    pub segments: u16,
    pub section_size: u16,
    pub sections: u16,
    pub names: u16,
}

/// A program header.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Segment {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub address: u64,
    pub physical: u64,
    pub file_len: u64,
    pub len: u64,
    pub align: u64,
}

impl Segment {
    /// What the program may do with it.
    #[must_use]
    pub fn access(&self) -> Access {
        let mut access = Access::empty();
        access.set(Access::READ, self.flags & linux::PF_R != 0);
        access.set(Access::WRITE, self.flags & linux::PF_W != 0);
        access.set(Access::EXECUTE, self.flags & linux::PF_X != 0);
        access
    }

    /// Whether the file can be mapped as the segment says.
    fn check(&self) -> Result<(), Errno> {
        let end = self.address.checked_add(self.len).ok_or(Errno::ENOEXEC)?;
        let file_end = self.offset.checked_add(self.file_len).ok_or(Errno::ENOEXEC)?;
        let fits = self.file_len <= self.len
            && end <= USER_END
            && file_end <= i64::MAX as u64 - PAGE
            && (self.address ^ self.offset).is_multiple_of(PAGE);
        if fits { Ok(()) } else { Err(Errno::ENOEXEC) }
    }
}

/// What an ELF file says about how to run it.
pub struct Elf {
    /// Its header.
    pub header: Header,
    /// The segments to be loaded.
    pub loads: Vec<Segment>,
    /// The interpreter's path.
    pub interpreter: Option<Vec<u8>>,
    /// Whether the stack is to be executable.
    pub executable_stack: bool,
    /// Where the program headers will be in memory (before the bias); 0 is nowhere.
    pub headers_at: u64,
}

impl Elf {
    /// Reads the headers of `image`.
    ///
    /// # Errors
    /// `ENOEXEC`, and what reading gives.
    pub fn read(image: &Image) -> Result<Self, Errno> {
        let mut header = Header::new_zeroed();
        let got = image.read(0, header.as_mut_bytes())?;
        let known = got == size_of::<Header>()
            && header.ident[..4] == linux::ELFMAG
            && header.ident[linux::EI_CLASS] == linux::ELFCLASS
            && header.ident[linux::EI_DATA] == linux::ELFDATA
            && matches!(header.kind, ET_EXEC | linux::ET_DYN)
            && header.machine == EM_X86_64
            && usize::from(header.segment_size) == size_of::<Segment>()
            && (1..=SEGMENTS_MAX).contains(&usize::from(header.segments));
        if !known {
            return Err(Errno::ENOEXEC);
        }
        let mut segments = vec![Segment::new_zeroed(); usize::from(header.segments)];
        let bytes = segments.as_mut_bytes();
        let len = bytes.len();
        if image.read(header.segments_at, bytes)? != len {
            return Err(Errno::ENOEXEC);
        }
        Self::from_segments(image, header, &segments)
    }

    fn from_segments(image: &Image, header: Header, segments: &[Segment]) -> Result<Self, Errno> {
        let loads: Vec<Segment> =
            segments.iter().filter(|s| s.kind == linux::PT_LOAD && s.len != 0).copied().collect();
        if loads.is_empty() {
            return Err(Errno::ENOEXEC);
        }
        for load in &loads {
            load.check()?;
            if header.kind == ET_EXEC && load.address < USER_START {
                return Err(Errno::ENOEXEC);
            }
        }
        let interpreter = match segments.iter().find(|s| s.kind == linux::PT_INTERP) {
            Some(segment) => Some(interpreter(image, segment)?),
            None => None,
        };
        let stack = segments.iter().find(|s| s.kind == linux::PT_GNU_STACK);
        let holds = |s: &&Segment| {
            header.segments_at >= s.offset && header.segments_at - s.offset < s.file_len
        };
        let named = segments.iter().find(|s| s.kind == linux::PT_PHDR).map(|s| s.address);
        let found = loads.iter().find(holds).map(|s| header.segments_at - s.offset + s.address);
        let elf = Self {
            header,
            loads,
            interpreter,
            executable_stack: stack.is_some_and(|s| s.flags & linux::PF_X != 0),
            headers_at: named.or(found).unwrap_or(0),
        };
        if elf.len() > USER_END / 2 { Err(Errno::ENOEXEC) } else { Ok(elf) }
    }

    /// Whether it can be loaded anywhere.
    #[must_use]
    pub fn moves(&self) -> bool {
        self.header.kind == linux::ET_DYN
    }

    /// First page of its lowest segment.
    #[must_use]
    pub fn start(&self) -> u64 {
        page_of(self.loads.iter().map(|load| load.address).min().unwrap_or(0))
    }

    /// First page behind its highest segment.
    #[must_use]
    pub fn end(&self) -> u64 {
        let end = self.loads.iter().map(|load| load.address + load.len).max().unwrap_or(0);
        page_up(end).unwrap_or(USER_END)
    }

    /// Bytes from the first to the last page.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.end() - self.start()
    }

    /// Whether there is nothing to load (never, once read).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    /// The strongest alignment that a segment asks for.
    #[must_use]
    pub fn align(&self) -> u64 {
        let asked = self.loads.iter().map(|load| load.align).filter(|a| a.is_power_of_two());
        asked.max().unwrap_or(PAGE).clamp(PAGE, 1 << 30)
    }
}

/// The path in a `PT_INTERP` segment.
fn interpreter(image: &Image, segment: &Segment) -> Result<Vec<u8>, Errno> {
    if !(2..=PATH_MAX).contains(&segment.file_len) {
        return Err(Errno::ENOEXEC);
    }
    let mut path = vec![0; segment.file_len as usize];
    let got = image.read(segment.offset, &mut path)?;
    if got != path.len() || path.last() != Some(&0) {
        return Err(Errno::ENOEXEC);
    }
    let end = path.iter().position(|byte| *byte == 0).unwrap_or(0);
    path.truncate(end);
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;
    use linux_raw_sys::elf as uapi;

    #[test]
    fn layouts_are_linux_s() {
        assert_eq!(size_of::<Header>(), size_of::<uapi::Elf_Ehdr>());
        assert_eq!(offset_of!(Header, entry), offset_of!(uapi::Elf_Ehdr, e_entry));
        assert_eq!(offset_of!(Header, segments), offset_of!(uapi::Elf_Ehdr, e_phnum));
        assert_eq!(size_of::<Segment>(), size_of::<uapi::Elf_Phdr>());
        assert_eq!(offset_of!(Segment, file_len), offset_of!(uapi::Elf_Phdr, p_filesz));
        assert_eq!(offset_of!(Segment, flags), offset_of!(uapi::Elf_Phdr, p_flags));
    }
}
